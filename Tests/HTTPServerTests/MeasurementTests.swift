import EventLoop
import Testing

@testable import HTTPServer

@Suite("What a server counts")
struct MeasurementTests {
    @Test("durations fall into the bucket whose bound they do not pass, and add up")
    func durations() {
        var counts = DurationCounts()
        counts.record(nanoseconds: 250_000)
        counts.record(nanoseconds: 251_000)
        counts.record(nanoseconds: 3_600_000_000_000)
        #expect(counts.buckets.first == 1 && counts.buckets[1] == 1 && counts.buckets.last == 1)
        #expect(counts.buckets.count == DurationCounts.boundsMicroseconds.count + 1)
        var twice = counts
        twice.add(counts)
        #expect(twice.count == 6 && twice.nanoseconds == 2 * counts.nanoseconds)
    }

    private static func get(_ path: String) -> String { "GET \(path) HTTP/1.1\r\nHost: x\r\n\r\n" }

    private static func router() -> Router {
        var router = Router()
        router.on(.get, "/things/:id", echo)
        router.on(.get, "/wrong") { _ in throw HTTPError(409, "No.") }
        return router
    }

    @Test("requests count under the route that answered, whatever it answered; what none did, apart")
    func routes() async throws {
        let router = Self.router()
        try await withServer(loops: 2, handler: { try await router.handle($0) }) { server in
            let asked = ["/things/1", "/things/2?a=b", "/wrong", "/nowhere"].map(Self.get)
            for text in asked {
                let client = try await server.connect()
                _ = try await client.ask(text)
            }
            let refused = try await server.connect()
            let nonsense = "NONSENSE\r\n\r\n"
            await refused.send(nonsense)
            #expect(try await refused.response().status == 400)

            let measured = await server.server.measurements
            #expect(router.routes.map(\.pattern) == ["/things/:id", "/wrong"])
            #expect(measured.routes.map(\.classes) == [[0, 0, 2, 0, 0, 0], [0, 0, 0, 0, 1, 0]])
            #expect(measured.routes.map(\.durations.count) == [2, 1])
            #expect(measured.unrouted.classes == [0, 0, 0, 0, 2, 0])
            #expect(measured.unrouted.durations.count == 1, "what is no request took no time")
            #expect(measured.requestsActive == 0 && measured.connectionsAccepted == 5)
            #expect(measured.connectionsOpen >= 4 && measured.connectionsOpen <= 5)
            #expect(measured.receivedBytes == (asked + [nonsense]).reduce(0) { $0 + $1.utf8.count })
            #expect(measured.sentBytes > 5 * 50)
        }
    }

    @Test("a request is active until its answer is out; one whose client left is told as aborted, once")
    func aborted() async throws {
        var router = Router()
        let (came, leaving) = (Latch(), Latch())
        router.on(.get, "/wait") { _ in
            .later { _ in
                came.open()
                return { leaving.open() }
            }
        }
        let routes = router
        try await withServer(handler: { try await routes.handle($0) }) { server in
            let client = try await server.connect()
            await client.send(Self.get("/wait"))
            await came.wait()
            #expect(await server.server.measurements.requestsActive == 1)
            await client.reset()
            await leaving.wait()
            let measured = await server.server.measurements
            #expect(measured.requestsActive == 0)
            #expect(measured.routes.map(\.classes) == [[1, 0, 0, 0, 0, 0]])
        }
    }
}
