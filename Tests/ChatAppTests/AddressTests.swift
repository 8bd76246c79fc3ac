import Foundation
import TestSupport
import Testing

@testable import ChatApp

@Suite("What clients of one address may take")
struct AddressTests {
    private func isRefused(_ instance: Instance, _ address: String) async -> Bool {
        do {
            _ = try await ChatClient(port: instance.port, address: address)
            return false
        } catch {
            return (error as? WebSocketClient.Failure)?.description.contains("HTTP/1.1 429") == true
        }
    }

    /// One that is counted: the answer to the upgrade goes out a moment before.
    private func stranger(_ instance: Instance, _ address: String) async throws -> ChatClient {
        let client = try await ChatClient(port: instance.port, address: address)
        try await client.ping()
        return client
    }

    @Test("sockets that have not greeted are few for an address; greeting and leaving make room")
    func strangers() async throws {
        try await withInstances(
            ["chat-1"], users: 1, rooms: [[1]], limits: { $0.strangersPerAddressMax = 2 }
        ) { instances, _ in
            let one = try await stranger(instances[0], "192.0.2.1")
            let two = try await stranger(instances[0], "192.0.2.1")
            #expect(await isRefused(instances[0], "192.0.2.1"))
            #expect(await !isRefused(instances[0], "192.0.2.2"))
            // Of IPv6 a network is one client.
            let four = try await stranger(instances[0], "2001:db8::1")
            let five = try await stranger(instances[0], "2001:db8::2")
            #expect(await isRefused(instances[0], "2001:db8::3"))
            for client in [four, five] { try await client.ping() }
            one.hello(Instance.token(user: 1))
            try await one.awaitReady()
            let three = try await stranger(instances[0], "192.0.2.1")
            #expect(await isRefused(instances[0], "192.0.2.1"))
            three.hello("wrong")
            #expect(try await three.closeCode() == 4401)
            // Leaving is noticed on another loop, perhaps.
            try await eventually { await !isRefused(instances[0], "192.0.2.1") }
            // Whose address nobody says is not counted: a proxy's own stands for everybody.
            for _ in 0..<5 { _ = try await ChatClient(port: instances[0].port) }
            try await two.ping()
        }
    }

    @Test("so are all sockets, of both protocols together, signed in or not")
    func sockets() async throws {
        try await withInstances(
            ["chat-1"], users: 2, rooms: [[1, 2]], limits: { $0.socketsPerAddressMax = 2 }
        ) { instances, _ in
            let one = try await ChatClient(port: instances[0].port, address: "192.0.2.1")
            one.hello(Instance.token(user: 1))
            try await one.awaitReady()
            let two = try await SocketIOClient(port: instances[0].port, address: "192.0.2.1")
            #expect(await isRefused(instances[0], "192.0.2.1"))
            let failure = await #expect(throws: WebSocketClient.Failure.self) {
                try await SocketIOClient(port: instances[0].port, address: "192.0.2.1")
            }
            #expect(failure?.description.contains("HTTP/1.1 429") == true)
            _ = try await ChatClient(port: instances[0].port, address: "192.0.2.2")
            two.socket.send(frame: 8, [3, 232])
            try await eventually { await !isRefused(instances[0], "192.0.2.1") }
            try await one.ping()
        }
    }

    @Test("what users of one address send is counted together, by whatever protocol")
    func sends() async throws {
        try await withInstances(
            ["chat-1"], users: 4, rooms: [[1, 2, 3, 4]],
            limits: {
                $0.sendsPerSecond = 1
                $0.sendsBurstMax = 10
                $0.sendersPerAddressMax = 2
            }
        ) { instances, _ in
            func client(_ user: Int, _ address: String) async throws -> ChatClient {
                let client = try await ChatClient(port: instances[0].port, address: address)
                client.hello(Instance.token(user: user))
                try await client.awaitReady()
                return client
            }
            let one = try await client(1, "192.0.2.1")
            for number in 1...10 { one.send(1, "\(number)", "x") }
            for _ in 1...10 { _ = try await one.next("ack") }
            let two = try await SocketIOClient(port: instances[0].port, address: "192.0.2.1")
            two.connect(Instance.token(user: 2))
            guard case .connected = try await two.next() else { throw CancellationError() }
            for number in 1...10 { two.send("rep_1_jane", "x", ack: number) }
            #expect(try await two.acknowledgement(9).contains("ok"))
            // Theirs is used up, and two a second come back.
            let three = try await client(3, "192.0.2.1")
            for number in 1...9 { three.send(1, "\(number)", "x") }
            #expect(try await three.next("error").string("code") == "too_many")
            let four = try await client(4, "192.0.2.2")
            for number in 1...9 { four.send(1, "\(number)", "x") }
            for _ in 1...9 { _ = try await four.next("ack") }
        }
    }

    @Test("an address has the bursts of so many users, and a pause is only what time says")
    func burst() {
        var limits = ChatLimits()
        limits.sendsPerSecond = 1
        limits.sendsBurstMax = 3
        let book = AddressBook(limits: limits)
        #expect(book.enter("a", now: 1_000) == nil)
        for _ in 1...60 { #expect(book.takeSend("a", now: 1_000)) }
        #expect(!book.takeSend("a", now: 1_000) && book.takeSend(nil, now: 1_000) && book.takeSend("b", now: 1_000))
        // Another loop's clock is a little behind: that is no pause.
        #expect(!book.takeSend("a", now: 990))
        for _ in 1...20 { #expect(book.takeSend("a", now: 2_000)) }
        #expect(!book.takeSend("a", now: 2_000))
    }
}
