import EventLoop
import Foundation
import HTTPServer
import Synchronization
import Testing

@testable import ServiceKit

@Suite("What a front door and a container ask")
struct FrontDoorTests {
    @Test("the front door is told 204 from the first time ready until the process stops; all else is the handler's")
    func frontDoor() async throws {
        let loop = EventLoop(name: "test")
        let health = Health()
        let database = Mutex<String?>("not reachable")
        let handler = health.answeringFrontDoor { _ in HTTPResponse(status: 200) }
        func status(_ target: String) async throws -> Int {
            try await handler(try HTTPRequest(.get, target, on: loop)).status
        }
        health.require("database") { database.withLock { $0 } }
        #expect(try await status("/_health") == 503)
        #expect(try await status("/_healthy") == 200)
        database.withLock { $0 = nil }
        #expect(try await status("/_health") == 204)
        database.withLock { $0 = "gone" }
        #expect(try await status("/_health") == 204, "a front door could say no more than the process")
        database.withLock { $0 = nil }
        health.stop()
        #expect(try await status("/_health") == 503)
        #expect(try await status("/") == 200)
        await loop.stop()
    }

    @Test("health asks the service that runs: 0 when it is ready, 1 when it is not or nobody is there, 78 unset")
    func health() async throws {
        let loops = LoopGroup(count: 1, name: "health")
        let health = Health()
        let here = SocketAddress(host: "127.0.0.1", port: 0)
        let server = AdminServer(health: health, metrics: Metrics()).server(loops: loops, address: here)
        let address = try await server.start()
        func ask(_ address: String) async -> Int32 {
            let settings = ["MARTLET_ADMIN_ADDRESS": address]
            let words = ["program", "health"]
            return await ServiceRunner.run("asked", "", environment: settings, arguments: words) { _, _ in
                Service(start: {}, stop: { _ in })
            }
        }
        #expect(await ask(address.description) == 0)
        #expect(await ask("0.0.0.0:\(address.port)") == 0, "who listens everywhere listens here")
        health.require("database") { "not reachable" }
        #expect(await ask(address.description) == 1)
        #expect(await ask("") == ConfigurationError.exitStatus)
        #expect(await ask("nowhere:1") == ConfigurationError.exitStatus)
        await server.drain(graceSeconds: 1)
        await loops.stop()
        #expect(await ask(address.description) == 1)
    }

    @Test("a service that goes says so, serves on for its time, and only then stops, within what is left")
    func unreadyFirst() async {
        let clock = ManualClock()
        let loops = LoopGroup(count: 1, name: "unready")
        let health = Health()
        let context = ServiceContext(
            name: "x", log: Log(service: "x", level: .error, format: .json, sink: LogSink(discarding: true)),
            metrics: Metrics(), health: health, loops: loops, clock: clock, traces: nil)
        let graces = Mutex<[Int]>([])
        let service = Service(start: {}, stop: { grace in graces.withLock { $0.append(grace) } })
        #expect(health.isWelcoming)
        async let ended: Void = ServiceRunner.stop(service, context, unreadySeconds: 2)
        while clock.sleepers == 0 { await Task.yield() }
        #expect(!health.isWelcoming && graces.withLock { $0.isEmpty })
        clock.advance(seconds: 1.9)
        #expect(clock.sleepers == 1 && graces.withLock { $0.isEmpty })
        clock.advance(seconds: 0.1)
        await ended
        #expect(graces.withLock { $0 } == [ServiceRunner.graceSecondsMax - 2])
        await ServiceRunner.stop(service, context, unreadySeconds: 0)
        #expect(graces.withLock { $0.last } == ServiceRunner.graceSecondsMax)
        await loops.stop()
    }
}
