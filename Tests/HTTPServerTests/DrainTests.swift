import EventLoop
import Testing

@testable import HTTPServer

@Suite("Draining")
struct DrainTests {
    private static let get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

    @Test("finishes what was begun, tells idle clients, and then takes no more connections")
    func finishes() async throws {
        let entered = Latch()
        let latch = Latch()
        // One loop: while it has a request in hand, its idle connections stay.
        try await withServer(handler: { request in
            if request.path == "/slow" {
                entered.open()
                await latch.wait()
            }
            return HTTPResponse(status: 200)
        }) { server in
            let idle = try await server.connect()
            #expect(try await idle.ask(Self.get).headers["connection"] == nil)
            let silent = try await server.connect()
            let slow = try await server.connect()
            await slow.send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
            await entered.wait()

            async let drained: Void = server.server.drain(graceSeconds: 30)
            while await !server.server.isDraining { await Task.yield() }
            // Idle connections are still answered, and told to go.
            let last = try await idle.ask(Self.get)
            #expect(last.status == 200 && last.headers["connection"] == "close")
            latch.open()
            let answer = try await slow.response()
            #expect(answer.status == 200 && answer.headers["connection"] == "close")
            await server.server.advanceClock(seconds: 2)
            _ = try await silent.rest()
            _ = try await idle.rest()
            _ = try await slow.rest()
            await drained
            await #expect(throws: LoopError.self) { try await server.connect() }
        }
    }

    @Test("cuts off what is not finished when the grace is over")
    func grace() async throws {
        let entered = Latch()
        let cancelled = Latch()
        try await withServer(handler: { _ in
            entered.open()
            await withTaskCancellationHandler {
                await cancelled.wait()
            } onCancel: {
                cancelled.open()
            }
            return HTTPResponse(status: 200)
        }) { server in
            let client = try await server.connect()
            await client.send(Self.get)
            await entered.wait()
            async let drained: Void = server.server.drain(graceSeconds: 30)
            while await !server.server.isDraining { await Task.yield() }
            await server.server.advanceClock(seconds: 31)
            await drained
            await cancelled.wait()
            #expect(try await client.rest() == [])
        }
    }

    @Test("under load loses no request that a client could send", .timeLimit(.minutes(10)))
    func underLoad() async throws {
        try await withServer(
            loops: 2,
            handler: { request in
                await Task.yield()
                return HTTPResponse(status: 200)
            }
        ) { server in
            let answered = Counter()
            let lost = Counter()
            let warm = Latch()
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<16 {
                    group.addTask {
                        // Each client connects anew when told to close, until nobody listens.
                        while let client = try? await server.connect() {
                            var asked = 0
                            while let answer = try? await client.ask(Self.get) {
                                asked += 1
                                if answered.increment() == 2_000 { warm.open() }
                                if answer.headers["connection"] == "close" { break }
                                if asked == 500 { break }
                            }
                            if asked == 0 { lost.increment() }
                            await client.close()
                        }
                    }
                }
                group.addTask {
                    await warm.wait()
                    await server.server.drain(graceSeconds: 20)
                }
                await group.waitForAll()
            }
            #expect(answered.value >= 2_000)
            // The kernel may reset a connection whose handshake ended just as the listener closed.
            #expect(lost.value <= 16)
        }
    }
}
