import Crypto
import EventLoop
import HTTPServer
import ServiceKit
import TestSupport
import Testing

@testable import ChatApp

@Suite("The seal of passed-on requests")
struct PassOnSealTests {
    static let now: Int64 = 1_800_000_000
    private let seal = PassOnSeal(keys: PassOnPair.keys)
    private let loop = EventLoop(name: "seal")

    private func made(_ seal: PassOnSeal, now: Int64 = Self.now) -> String {
        seal.make(method: .post, target: "/socket.io/?sid=a", body: Array("2".utf8), instance: "chat-1", now: now)
    }

    private func check(
        _ value: String?, method: HTTPMethod = .post, target: String = "/socket.io/?sid=a", instance: String = "chat-1",
        now: Int64 = Self.now, twice: Bool = false
    ) throws -> String {
        var headers: HTTPHeaders = [:]
        if let value { headers.add(PassOnSeal.header, value) }
        if twice, let value { headers.add(PassOnSeal.header, value) }
        return try seal.check(
            HTTPRequest(method, target, headers: headers, on: loop), instance: instance, now: now)
    }

    @Test("what was sealed is taken within half a minute, both ways, and names the digest of its body")
    func time() throws {
        let value = made(seal)
        for offset: Int64 in [-30, 0, 29] {
            let digest = try check(value, now: Self.now + offset)
            #expect(PassOnSeal.matches(Array("2".utf8), digest))
            #expect(!PassOnSeal.matches(Array("3".utf8), digest) && !PassOnSeal.matches([], digest))
        }
        for offset: Int64 in [-31, 30, 3_600] {
            #expect(throws: PassOnSeal.Refusal.unsealed) { try check(value, now: Self.now + offset) }
        }
    }

    @Test("a seal holds for one method, one target and one instance")
    func bound() throws {
        let value = made(seal)
        #expect(throws: PassOnSeal.Refusal.unsealed) { try check(value, method: .get) }
        #expect(throws: PassOnSeal.Refusal.unsealed) { try check(value, target: "/socket.io/?sid=b") }
        #expect(throws: PassOnSeal.Refusal.misdirected) { try check(value, instance: "chat-2") }
        #expect(throws: PassOnSeal.Refusal.unsealed) { try check(value, twice: true) }
        #expect(throws: PassOnSeal.Refusal.unsealed) { try check(nil) }
        let other = value.replacing("chat-1;", with: "chat-2;")
        #expect(throws: PassOnSeal.Refusal.unsealed) { try check(other, instance: "chat-2") }
        for garbage in ["", ";;", "chat-1;x;1.x", value + "x", value + ";", String(repeating: "a", count: 300)] {
            #expect(throws: PassOnSeal.Refusal.unsealed) { try check(garbage) }
        }
    }

    @Test("the former secret is taken while it is configured, and another purpose or secret never is")
    func keys() throws {
        let (former, present) = ([UInt8](repeating: 1, count: 32), [UInt8](repeating: 2, count: 32))
        let value = made(PassOnSeal(keys: try SigningKeys([former])))
        let request = try HTTPRequest(
            .post, "/socket.io/?sid=a", headers: [PassOnSeal.header: value], on: loop)
        let both = PassOnSeal(keys: try SigningKeys([present, former]))
        #expect(try both.check(request, instance: "chat-1", now: Self.now).count == 64)
        let new = PassOnSeal(keys: try SigningKeys([present]))
        #expect(throws: PassOnSeal.Refusal.unsealed) {
            try new.check(request, instance: "chat-1", now: Self.now)
        }
        let digest = Hex.encode(SHA256.hash("2"))
        let foreign = CapabilitySigner(keys: PassOnPair.keys, purpose: "media")
            .sign(path: "/socket.io/?sid=a", subject: "POST \(digest) chat-1", expires: Self.now + 30)
        #expect(throws: PassOnSeal.Refusal.unsealed) { try check("chat-1;\(digest);\(foreign)") }
    }

    @Test("the internal port answers 403 to whatever is not sealed, or not as it was sealed")
    func port() async throws {
        let handled = Signal<Bool>()
        try await withPair(
            ownerKeys: try SigningKeys([[UInt8](repeating: 9, count: 32)]),
            handler: { _ in
                handled.send(true)
                return HTTPResponse(status: 200)
            }
        ) { pair in
            // Instances with different secrets do not believe each other.
            let client = try await RawClient(port: pair.port, on: pair.loops.loops[0])
            #expect(try await client.ask("GET", "/?to=owner").status == 403)
        }
        try await withPair(handler: { _ in
            handled.send(true)
            return HTTPResponse(status: 200)
        }) { pair in
            let client = try await RawClient(port: pair.ownerAddress.port, on: pair.loops.loops[0])
            for target in ["/", "/socket.io/?EIO=4&transport=polling", "/chat", "/readyz", "/metrics"] {
                #expect(try await client.ask("GET", target).status == 403)
            }
            // A sealed head with another body of the same length.
            let value = made(seal, now: SystemClock().seconds).replacing("chat-1", with: "owner")
            #expect(
                try await client.ask(
                    "POST", "/socket.io/?sid=a", headers: ["\(PassOnSeal.header): \(value)"],
                    body: "3"
                ).status == 403)
            let right = seal.make(
                method: .post, target: "/x", body: Array("2".utf8), instance: "owner", now: SystemClock().seconds)
            let headers = ["\(PassOnSeal.header): \(right)"]
            #expect(try await client.ask("POST", "/x", headers: headers, body: "3").status == 403)
            #expect(handled.values.isEmpty)
            #expect(try await client.ask("POST", "/x", headers: headers, body: "2").status == 200)
            #expect(handled.values.count == 1)
        }
    }
}

@Suite("Owners' answers")
struct AnswerParserTests {
    private let loop = EventLoop(name: "answers")

    private func parse(
        _ text: String, pieces size: Int = .max, upgrade: Bool = false, head: Bool = false
    ) throws -> AnswerParser.Event {
        var limits = PassOnLimits()
        limits.headBytesMax = 200
        limits.answerBytesMax = 10
        let headers: HTTPHeaders = upgrade ? ["Connection": "Upgrade", "Upgrade": "websocket"] : [:]
        let request = try HTTPRequest(head ? .head : .get, "/", headers: headers, on: loop)
        var parser = AnswerParser(to: HopRequest(request, body: [], seal: ""), limits: limits)
        var event = AnswerParser.Event.needsMore
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty, event == .needsMore {
            let piece = Array(rest.prefix(size))
            rest = rest.dropFirst(size)
            event = try piece.withUnsafeBytes { try parser.feed($0) }
        }
        return event
    }

    @Test("an answer is the same however it is cut into pieces", arguments: [1, 2, 3, 7, 50, 1_000])
    func pieces(_ size: Int) throws {
        let text = "HTTP/1.1 200 OK\r\nContent-Type: \t text/plain \r\nX:\r\nContent-Length: 5\r\n\r\nhe\r\nl"
        let answer = HopAnswer(
            status: 200, headers: ["Content-Type": "text/plain", "X": "", "Content-Length": "5"],
            body: Array("he\r\nl".utf8))
        #expect(try parse(text, pieces: size) == .answer(answer, mayStay: true))
        let last = HopAnswer(status: 204, headers: ["Connection": "close"], body: [])
        #expect(
            try parse("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n", pieces: size)
                == .answer(last, mayStay: false))
        #expect(answer.response.headers == ["Content-Type": "text/plain", "X": ""])
    }

    @Test("a 101 answers an upgrade only, and what is behind it is the other protocol's")
    func upgrades() throws {
        let text = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"
        let answer = HopAnswer(status: 101, headers: ["Upgrade": "websocket"], body: [])
        #expect(try parse(text + "ab", upgrade: true) == .switched(answer, rest: Array("ab".utf8)))
        #expect(throws: AnswerParser.Fault()) { try parse(text) }
        let refused = HopAnswer(status: 400, headers: ["Content-Length": "1"], body: [0x61])
        #expect(
            try parse("HTTP/1.1 400 Bad Request\r\nContent-Length: 1\r\n\r\na", upgrade: true)
                == .answer(refused, mayStay: true))
    }

    @Test("to a HEAD there is no body, whatever its length")
    func heads() throws {
        let answer = HopAnswer(status: 200, headers: ["Content-Length": "99"], body: [])
        #expect(
            try parse("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n", head: true) == .answer(answer, mayStay: true))
    }

    @Test(
        "what is not exactly an answer of ours is a fault",
        arguments: [
            "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
            "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\na", "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n",
            "HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nA: b\rc\r\n\r\n", "HTTP/1.1 200 OK\r\nNo colon\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\n: b\r\n\r\n", "HTTP/1.1 200 OK\r\nA b: c\r\n\r\n",
            "HTTP/1.1 200 " + String(repeating: "a", count: 200),
        ])
    func faults(_ text: String) throws {
        #expect(throws: AnswerParser.Fault()) { try parse(text) }
        #expect(throws: AnswerParser.Fault()) { try parse(text, pieces: 1) }
    }

    @Test("more than was announced is a fault when it comes with the answer: later it belongs to nobody")
    func excess() throws {
        #expect(throws: AnswerParser.Fault()) { try parse("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab") }
    }

    @Test("random bytes are an answer, a fault, or need more, and never end the process")
    func fuzz() throws {
        var random = SystemRandomNumberGenerator()
        let words = [
            "HTTP/1.1 ", "200", " OK", "\r\n", "\r", "\n", "Content-Length: ", "5", "0", ":", "a", "\r\n\r\n", "101",
        ]
        for _ in 0..<5_000 {
            let text = (0..<Int.random(in: 1...12, using: &random)).map { _ in words.randomElement(using: &random) ?? ""
            }
            _ = try? parse(text.joined(), pieces: Int.random(in: 1...9, using: &random), upgrade: Bool.random())
        }
    }
}
