import Core
import Crypto
import EventLoop
import Foundation
import Glibc
import HTTPServer
import ServiceKit
import Synchronization
import TestSupport
import Testing

@testable import ChatApp

@Suite("Passing on")
struct PassOnTests {
    static let unknown = #"{"code":1,"message":"Session ID unknown"}"#

    @Test("a request reaches its owner with what its answer depends on, and the answer comes back whole")
    func whole() async throws {
        try await withPair(handler: { request in
            let body = String(decoding: try await request.body.collect(), as: UTF8.self)
            let seen = [
                request.method.rawValue, request.target, request.headers["Origin"] ?? "-",
                request.headers["Content-Type"] ?? "-", request.headers["Authorization"] ?? "-",
                request.headers["X-Forwarded-For"] ?? "-", request.headers["Host"] ?? "-",
                request.headers[PassOnSeal.header] ?? "-", body,
            ]
            return HTTPResponse(
                status: 201,
                headers: ["Access-Control-Allow-Origin": "https://a.example", "Content-Type": "text/plain"],
                body: .bytes(Array(seen.joined(separator: "|").utf8)))
        }) { pair in
            let client = try await RawClient(port: pair.port, on: pair.loops.loops[0])
            let answer = try await client.ask(
                "POST", "/socket.io/?to=owner&sid=%20x",
                headers: [
                    "Origin: https://a.example", "Content-Type: text/plain;charset=UTF-8", "Authorization: Bearer x",
                    "X-Forwarded-For: 192.0.2.1",
                ], body: "4hello €")
            #expect(answer.status == 201)
            #expect(answer.head.contains("Access-Control-Allow-Origin: https://a.example"))
            #expect(
                answer.body == "POST|/socket.io/?to=owner&sid=%20x|https://a.example|text/plain;charset=UTF-8|-"
                    + "|192.0.2.1, 127.0.0.1|chat.example.org|-|4hello €")
            let empty = try await client.ask("GET", "/socket.io/?to=owner")
            #expect(empty.body.hasPrefix("GET|/socket.io/?to=owner|-|-|-|127.0.0.1|"))
        }
    }

    @Test(
        "a body is the request's own whatever its method: nothing of it stands before another client's request",
        arguments: ["GET", "DELETE", "OPTIONS"])
    func announced(_ method: String) async throws {
        try await withPair(handler: { request in
            let body = String(decoding: try await request.body.collect(), as: UTF8.self)
            return HTTPResponse(status: 200, body: .bytes(Array("\(request.target) \(body)".utf8)))
        }) { pair in
            let attacker = try await RawClient(port: pair.port, on: pair.loops.loops[0])
            let other = try await RawClient(port: pair.port, on: pair.loops.loops[0])
            // All come by the connection that is kept: the first head is made whole by whatever comes next.
            for body in ["GET /x HTTP/1.1\r\nX: ", "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 400\r\n\r\n"] {
                #expect(try await attacker.ask(method, "/?to=owner&a", body: body).body == "/?to=owner&a \(body)")
                #expect(try await other.ask("POST", "/?to=owner&b", body: "4b").body == "/?to=owner&b 4b")
                #expect(try await other.ask("GET", "/?to=owner&c").body == "/?to=owner&c ")
            }
        }
    }

    @Test("a poll waits as long as its owner makes it wait, others pass it by, and connections are used again")
    func waits() async throws {
        let arrived = Signal<Bool>()
        let release = Signal<Bool>()
        try await withPair(handler: { request in
            if request.query.contains("wait") {
                arrived.send(true)
                try await release.wait(count: 1)
            }
            return HTTPResponse(status: 200, body: .bytes(Array(request.query.utf8)))
        }) { pair in
            let poll = try await RawClient(port: pair.port, on: pair.loops.loops[0])
            await poll.send("GET /?to=owner&wait HTTP/1.1\r\nHost: a\r\n\r\n")
            try await arrived.wait(count: 1)
            let other = try await RawClient(port: pair.port, on: pair.loops.loops[1])
            for number in 1...5 {
                #expect(try await other.ask("POST", "/?to=owner&n=\(number)", body: "x").body == "to=owner&n=\(number)")
            }
            #expect(await pair.passOn.counts.waiting == 1)
            #expect(await pair.passOn.counts.kept == 1)
            #expect(poll.received.values.isEmpty)
            release.send(true)
            #expect(try await poll.answer().body == "to=owner&wait")
        }
    }

    @Test("a client that leaves takes its poll away from the owner")
    func leaves() async throws {
        let arrived = Signal<Bool>()
        let cancelled = Signal<Bool>()
        try await withPair(handler: { _ in
            arrived.send(true)
            await withTaskCancellationHandler {
                _ = try? await cancelled.wait(count: 1)
            } onCancel: {
                cancelled.send(true)
            }
            return HTTPResponse(status: 200)
        }) { pair in
            let client = try await RawClient(port: pair.port, on: pair.loops.loops[0])
            await client.send("GET /?to=owner HTTP/1.1\r\nHost: a\r\n\r\n")
            try await arrived.wait(count: 1)
            await client.reset()
            try await cancelled.wait(count: 1)
            try await eventually { await pair.passOn.counts.waiting == 0 }
        }
    }

    @Test(
        "an instance that nobody knows, that takes nothing, or that has died, is an unknown session",
        arguments: ["nobody", "", "closed", "dead", "ho st", "a;b"])
    func unknown(_ name: String) async throws {
        try await withPair(handler: { _ in HTTPResponse(status: 200) }) { pair in
            pair.instances.put("closed", "")
            let gone = try await RawOwner(on: pair.loops.loops[0])
            pair.instances.put("dead", await gone.address.description)
            await gone.die()
            let client = try await RawClient(port: pair.port, on: pair.loops.loops[0])
            let target = "/?to=" + name.replacing(" ", with: "%20")
            let answer = try await client.ask("POST", target, body: "2")
            #expect(answer.status == 400)
            #expect(answer.body == Self.unknown)
        }
    }

    @Test("an owner that is killed while a poll waits ends the poll at once, and the next one too")
    func killed() async throws {
        try await withPair(handler: { _ in HTTPResponse(status: 200) }) { pair in
            let owner = try await RawOwner(on: pair.loops.loops[1])
            pair.instances.put("killed", await owner.address.description)
            let client = try await RawClient(port: pair.port, on: pair.loops.loops[0])
            await client.send("GET /?to=killed HTTP/1.1\r\nHost: a\r\n\r\n")
            try await owner.requests.wait(count: 1)
            await owner.die()
            // A hang would be pollSecondsMax.
            #expect(try await client.answer(seconds: 50).body == Self.unknown)
            #expect(try await client.ask("GET", "/?to=killed").body == Self.unknown)
        }
    }

    @Test(
        "an owner that says nothing, or what no owner says, is given up",
        arguments: [
            nil, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "SMTP\r\n\r\n", "HTTP/1.1 101 Go on\r\n\r\n",
        ])
    func givenUp(_ words: String?) async throws {
        let limits: (inout PassOnLimits) -> Void = { limits in
            limits.answerSecondsMax = 1
            limits.pollSecondsMax = 1
        }
        try await withPair(limits: limits, handler: { _ in HTTPResponse(status: 200) }) { pair in
            let owner = try await RawOwner(on: pair.loops.loops[1], answer: words)
            pair.instances.put("odd", await owner.address.description)
            let client = try await RawClient(port: pair.port, on: pair.loops.loops[0])
            #expect(try await client.ask("GET", "/?to=odd").body == Self.unknown)
            #expect(try await client.ask("POST", "/?to=odd", body: "2").body == Self.unknown)
            try await owner.ends.wait(count: 2)
            #expect(await pair.passOn.counts.kept == 0)
        }
    }

    @Test("an owner whose machine takes no connections is given up within the time for connecting")
    func silentMachine() async throws {
        let (listener, address) = try Self.fullListener()
        defer { for descriptor in listener { close(descriptor) } }
        let limits: (inout PassOnLimits) -> Void = { limits in
            limits.connectMillisecondsMax = 300
            // A kernel that takes the connection all the same leaves the answer to be waited for.
            limits.pollSecondsMax = 1
        }
        try await withPair(limits: limits, handler: { _ in HTTPResponse(status: 200) }) { pair in
            pair.instances.put("silent", address)
            let client = try await RawClient(port: pair.port, on: pair.loops.loops[0])
            let before = ContinuousClock.now
            #expect(try await client.ask("GET", "/?to=silent").body == Self.unknown)
            #expect(ContinuousClock.now - before < .seconds(30))
        }
    }

    /// A listener that accepts nobody and whose queue is full: the kernel drops what knocks. Its descriptors.
    private static func fullListener() throws -> (descriptors: [Int32], address: String) {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        var descriptors = [listener]
        withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                bind(listener, pointer, length)
                listen(listener, 0)
                getsockname(listener, pointer, &length)
                for _ in 0..<4 {
                    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
                    connect(descriptor, pointer, length)
                    descriptors.append(descriptor)
                }
            }
        }
        return (descriptors, "127.0.0.1:\(UInt16(bigEndian: address.sin_port))")
    }

    @Test("a body for an instance that there is not is not waited for")
    func unknownBody() async throws {
        try await withPair(handler: { _ in HTTPResponse(status: 200) }) { pair in
            let client = try await RawClient(port: pair.port, on: pair.loops.loops[0])
            let answer = try await client.ask("POST", "/?to=nobody", headers: ["Content-Length: 5"])
            #expect(answer.status == 400 && answer.body == Self.unknown)
        }
    }

    private struct Odd: Error {}

    @Test("what nobody expected is logged, without the query, and the client is told nothing of it")
    func unexpected() async throws {
        let pipe = Pipe()
        let sink = LogSink(descriptor: pipe.fileHandleForWriting.fileDescriptor)
        try await withPair(log: Log(service: "test", sink: sink), handler: { _ in throw Odd() }) { pair in
            let client = try await RawClient(port: pair.port, on: pair.loops.loops[0])
            let answer = try await client.ask("GET", "/socket.io/?to=owner&sid=hidden")
            #expect(answer.status == 500 && !answer.body.contains("Odd"))
        }
        sink.flush()
        try pipe.fileHandleForWriting.close()
        let text = String(decoding: try pipe.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        #expect(text.contains("Odd()") && text.contains("/socket.io/") && !text.contains("hidden"))
    }

    @Test("a body that is larger than an owner would take is refused before it is passed on")
    func tooLarge() async throws {
        try await withPair(limits: { $0.bodyBytesMax = 10 }, handler: { _ in HTTPResponse(status: 200) }) { pair in
            let client = try await RawClient(port: pair.port, on: pair.loops.loops[0])
            #expect(try await client.ask("POST", "/?to=owner", body: "0123456789").status == 200)
            #expect(try await client.ask("POST", "/?to=owner", body: "0123456789a").status == 413)
            try await eventually { await pair.passOn.counts.waiting == 0 }
        }
    }

    @Test("more than may wait is refused, and an answer larger than it may be is none")
    func bounded() async throws {
        let arrived = Signal<Bool>()
        let release = Signal<Bool>()
        let limits: (inout PassOnLimits) -> Void = { limits in
            limits.hopsMax = 1
            limits.answerBytesMax = 20
        }
        try await withPair(
            limits: limits,
            handler: { request in
                if request.query.contains("wait") {
                    arrived.send(true)
                    try await release.wait(count: 1)
                }
                let size = request.query.contains("large") ? 21 : 20
                return HTTPResponse(status: 200, body: .bytes([UInt8](repeating: 0x61, count: size)))
            }
        ) { pair in
            // Both on the loop of the waiting one, by asking on its own connection's loop until it is the same.
            let poll = try await RawClient(port: pair.port, on: pair.loops.loops[0])
            await poll.send("GET /?to=owner&wait HTTP/1.1\r\nHost: a\r\n\r\n")
            try await arrived.wait(count: 1)
            var statuses: [Int] = []
            while !statuses.contains(503), statuses.count < 64 {
                let other = try await RawClient(port: pair.port, on: pair.loops.loops[1])
                statuses.append(try await other.ask("GET", "/?to=owner").status)
            }
            #expect(Set(statuses).isSubset(of: [200, 503]) && statuses.contains(503))
            release.send(true)
            #expect(try await poll.answer().status == 200)
            #expect(try await poll.ask("GET", "/?to=owner&large").body == Self.unknown)
        }
    }

    @Test("draining ends what waits, and passes nothing on any more")
    func drains() async throws {
        let arrived = Signal<Bool>()
        try await withPair(handler: { _ in
            arrived.send(true)
            try await Signal<Bool>().wait(count: 1)
            return HTTPResponse(status: 200)
        }) { pair in
            let client = try await RawClient(port: pair.port, on: pair.loops.loops[0])
            await client.send("GET /?to=owner HTTP/1.1\r\nHost: a\r\n\r\n")
            try await arrived.wait(count: 1)
            await pair.passOn.drain()
            #expect(try await client.answer().body == Self.unknown)
            #expect(try await client.ask("GET", "/?to=owner").body == Self.unknown)
            #expect(arrived.values.count == 1)
        }
    }
}

@Suite("Where instances are")
struct InstanceDirectoryTests {
    @Test("an instance that has come back at another address is found there")
    func moved() async throws {
        try await withPair(handler: { _ in HTTPResponse(status: 200, body: .bytes([0x61])) }) { pair in
            let former = try await RawOwner(on: pair.loops.loops[1])
            let now = pair.ownerAddress.description
            pair.instances.put("owner", await former.address.description)
            let client = try await RawClient(port: pair.port, on: pair.loops.loops[0])
            await client.send("GET /?to=owner HTTP/1.1\r\nHost: a\r\n\r\n")
            try await former.requests.wait(count: 1)
            await former.die()
            #expect(try await client.answer().status == 400)
            pair.instances.put("owner", now)
            #expect(try await client.ask("GET", "/?to=owner").body == "a")
        }
    }

    @Test("a request at an address that another instance has now is taken to the right one, or is an unknown session")
    func misdirected() async throws {
        try await withPair(handler: { _ in HTTPResponse(status: 200, body: .bytes([0x61])) }) { pair in
            pair.instances.put("second", pair.ownerAddress.description)
            let client = try await RawClient(port: pair.port, on: pair.loops.loops[0])
            #expect(try await client.ask("GET", "/?to=second").body == PassOnTests.unknown)
            let second = try await PassOnPair(name: "second") { _ in HTTPResponse(status: 200, body: .bytes([0x62])) }
            pair.instances.put("second", second.ownerAddress.description)
            #expect(try await client.ask("GET", "/?to=second").body == "b")
            await second.stop()
        }
    }

    @Test("names that nobody has cost few reads, and a new instance is found all the same")
    func floods() async throws {
        let limits: (inout PassOnLimits) -> Void = { limits in
            limits.directoryMillisecondsMin = 200
            limits.directorySecondsMax = 3_600
        }
        try await withPair(limits: limits, handler: { _ in HTTPResponse(status: 200) }) { pair in
            let client = try await RawClient(port: pair.port, on: pair.loops.loops[0])
            #expect(try await client.ask("GET", "/?to=owner").status == 200)
            let reads = pair.instances.reads
            let before = ContinuousClock.now
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<100 {
                    group.addTask {
                        let client = try await RawClient(port: pair.port, on: pair.loops.loops[number % 2])
                        #expect(try await client.ask("GET", "/?to=nobody-\(number)").status == 400)
                    }
                }
                try await group.waitForAll()
            }
            let periods = Int((ContinuousClock.now - before) / .milliseconds(200)) + 1
            #expect(pair.instances.reads - reads <= 2 * periods + 2)
            pair.instances.put("new", pair.ownerAddress.description)
            // Sealed for "new", so "owner" refuses it: the name was found.
            #expect(try await client.ask("GET", "/?to=new").status == 400)
            let known = pair.instances.reads
            #expect(try await client.ask("GET", "/?to=owner").status == 200)
            #expect(pair.instances.reads == known)
        }
    }

    @Test("without its database an instance goes on with what it knows, and says 503 of what it does not")
    func away() async throws {
        try await withPair(limits: { $0.directorySecondsMax = 0 }, handler: { _ in HTTPResponse(status: 200) }) {
            pair in
            // One client, so one loop: each has its own knowledge.
            let client = try await RawClient(port: pair.port, on: pair.loops.loops[0])
            #expect(try await client.ask("GET", "/?to=owner").status == 200)
            pair.instances.away(true)
            #expect(try await client.ask("GET", "/?to=owner").status == 200)
            #expect(try await client.ask("GET", "/?to=nobody").status == 503)
            pair.instances.away(false)
            #expect(try await client.ask("GET", "/?to=nobody").status == 400)
        }
    }
}
