import EventLoop
import Foundation
import Testing

@testable import HTTPServer

/// Each test has loopback addresses that nobody else uses, so a port that is free there stays free.
@Suite("Who listens on an address")
struct ListeningTests {
    private static let get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

    private func server(_ loops: LoopGroup, _ host: String, _ port: Int) -> HTTPServer {
        HTTPServer(
            loops: loops, address: SocketAddress(host: host, port: port),
            onError: { _, _ in HTTPResponse(status: 500) }, handler: echo)
    }

    private func code(of server: HTTPServer) async -> Int32? {
        do {
            _ = try await server.start()
            return nil
        } catch {
            return (error as? LoopError)?.code
        }
    }

    @Test("an address where a server listens is refused to another, and so is all addresses; its neighbour is not")
    func taken() async throws {
        let (loops, others) = (LoopGroup(count: 2, name: "first"), LoopGroup(count: 2, name: "other"))
        let clients = EventLoop(name: "clients")
        let first = server(loops, "127.83.0.1", 0)
        let address = try await first.start()
        let every = ["0.0.0.0"] + (FileManager.default.fileExists(atPath: "/proc/net/if_inet6") ? ["::"] : [])
        for host in ["127.83.0.1"] + every {
            #expect(await code(of: server(others, host, address.port)) == -EADDRINUSE, "\(host)")
        }
        let neighbour = server(others, "127.83.0.2", address.port)
        #expect(await code(of: neighbour) == nil)
        // The kernel chooses by hash: that one of two loops gets none of these is as good as impossible.
        for _ in 0..<64 {
            let client = try await TestClient.connect(address, on: clients)
            #expect(try await client.ask(Self.get).status == 200)
            await client.close()
        }
        for loop in first.loops { #expect(await loop.accepted > 0) }
        for loop in neighbour.loops { #expect(await loop.accepted == 0) }
        for each in [first, neighbour] { await each.drain(graceSeconds: 1) }
        for each in [loops, others] { await each.stop() }
        await clients.stop()
    }

    @Test("all addresses are refused to a server while one of them is listened on, and the other way round")
    func everyAddress() async throws {
        let (loops, others) = (LoopGroup(count: 2, name: "first"), LoopGroup(count: 2, name: "other"))
        let first = server(loops, "0.0.0.0", 0)
        let port = try await first.start().port
        #expect(await code(of: server(others, "127.83.0.3", port)) == -EADDRINUSE)
        #expect(await code(of: server(others, "0.0.0.0", port)) == -EADDRINUSE)
        await first.drain(graceSeconds: 1)
        for each in [loops, others] { await each.stop() }
    }

    @Test("a port is free as soon as nobody listens, though the kernel remembers connections of it")
    func freed() async throws {
        let (loops, others) = (LoopGroup(count: 2, name: "first"), LoopGroup(count: 2, name: "other"))
        let clients = EventLoop(name: "clients")
        let first = server(loops, "127.83.0.4", 0)
        let address = try await first.start()
        let client = try await TestClient.connect(address, on: clients)
        #expect(try await client.ask("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").status == 200)
        #expect(try await client.rest() == [])
        await client.close()
        await first.drain(graceSeconds: 60)
        // proc(5): the address in memory's order, the port, the other end, and the state. 05 and 06 are FIN_WAIT2 and
        // TIME_WAIT: no process has it any more, and the kernel keeps it.
        let own = "0400537F:" + String(address.port, radix: 16, uppercase: true)
        let file = try #require(FileHandle(forReadingAtPath: "/proc/net/tcp"))
        let table = String(decoding: try #require(try file.readToEnd()), as: UTF8.self).split(separator: "\n")
        let states = table.map { $0.split(separator: " ") }.filter { $0.count > 3 && $0[1] == own }.map { $0[3] }
        #expect(states.count == 1 && states.allSatisfy { $0 == "05" || $0 == "06" }, "\(states)")

        let second = server(others, "127.83.0.4", address.port)
        #expect(await code(of: second) == nil)
        let late = try await TestClient.connect(address, on: clients)
        #expect(try await late.ask(Self.get).status == 200)
        await late.close()
        await second.drain(graceSeconds: 1)
        for each in [loops, others] { await each.stop() }
        await clients.stop()
    }

    @Test("of servers that start at once, one has the address at most, and the next that starts alone has it")
    func atOnce() async throws {
        let groups = (0..<3).map { LoopGroup(count: 2, name: "group-\($0)") }
        for _ in 0..<50 {
            let before = server(groups[0], "127.83.0.5", 0)
            let port = try await before.start().port
            await before.drain(graceSeconds: 0)
            let rivals = groups.map { server($0, "127.83.0.5", port) }
            let codes = await withTaskGroup(of: Int32?.self) { group in
                for rival in rivals { group.addTask { await code(of: rival) } }
                return await group.reduce(into: []) { $0.append($1) }
            }
            // None, where the kernel looks at two that are about to listen: each is in the other's way.
            #expect(codes.count { $0 == nil } <= 1)
            #expect(codes.allSatisfy { $0 == nil || $0 == -EADDRINUSE })
            for rival in rivals { await rival.drain(graceSeconds: 0) }
            let next = server(groups[0], "127.83.0.5", port)
            #expect(await code(of: next) == nil)
            await next.drain(graceSeconds: 0)
        }
        for group in groups { await group.stop() }
    }
}
