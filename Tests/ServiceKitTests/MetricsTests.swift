import EventLoop
import Foundation
import HTTPServer
import Testing

@testable import ServiceKit

@Suite("The page of metrics")
struct MetricsTests {
    @Test("what is collected stands beside what is kept; a name of two collectors is one metric")
    func collectors() async {
        let metrics = Metrics()
        metrics.counter("kept_total", "Kept.").add()
        for loop in 1...2 {
            metrics.collect {
                var family = MetricFamily("level", "Level.", .gauge)
                family.add(loop, ["loop": "\(loop)"])
                return [family]
            }
        }
        // One without a series is not told: a type without a value is of no use to anybody.
        metrics.collect { [MetricFamily("empty", "Nothing.", .gauge)] }
        let page = await metrics.page()
        #expect(
            page == """
                # HELP kept_total Kept.
                # TYPE kept_total counter
                kept_total 1
                # HELP level Level.
                # TYPE level gauge
                level{loop="1"} 1
                level{loop="2"} 2

                """)
        #expect(!metrics.text().contains("level"))
    }

    @Test("a histogram counts what is at its bound within it, and everything in +Inf")
    func histogram() {
        let metrics = Metrics()
        let sizes = metrics.histogram("size", "Size.", labels: ["of": "x"], bounds: [1, 10])
        sizes.record([1, 1.5, 11])
        #expect(
            metrics.text() == """
                # HELP size Size.
                # TYPE size histogram
                size_bucket{of="x",le="1.0"} 1
                size_bucket{of="x",le="10.0"} 2
                size_bucket{of="x",le="+Inf"} 3
                size_sum{of="x"} 13.5
                size_count{of="x"} 3

                """)
    }

    /// Returns when the answer is there whole.
    private static func ask(_ path: String, of address: SocketAddress, on loop: EventLoop) async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            loop.execute {
                TCPStream.connect(to: address, on: loop) { result in
                    guard case .success(let stream) = result else { return continuation.resume() }
                    stream.onRead = { _ in }
                    stream.onEnd = {
                        stream.close()
                        continuation.resume()
                    }
                    stream.startReading()
                    stream.write(Array("GET \(path) HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".utf8))
                }
            }
        }
    }

    @Test("a server's requests are told by the route's pattern, and of the process what the kernel knows")
    func server() async throws {
        let loops = LoopGroup(count: 1, name: "metrics")
        var router = Router()
        router.on(.get, "/people/:name") { _ in HTTPResponse(status: 204) }
        let routes = router
        let server = HTTPServer(
            loops: loops, address: SocketAddress(host: "127.0.0.1", port: 0),
            onError: { _, _ in HTTPResponse(status: 404) }, handler: { try await routes.handle($0) })
        let metrics = Metrics()
        metrics.show(server, routes: router.routes)
        metrics.collect { await ProcessMetrics.families() }
        let address = try await server.start()
        for name in ["alice", "bob"] { await Self.ask("/people/\(name)", of: address, on: loops.loops[0]) }
        let page = await metrics.page()
        #expect(page.contains(#"martlet_http_requests_total{method="GET",route="/people/:name",class="2xx"} 2"#))
        #expect(page.contains(#"martlet_http_requests_total{method="GET",route="/people/:name",class="5xx"} 0"#))
        #expect(page.contains(#"martlet_http_request_seconds_count{method="GET",route="/people/:name"} 2"#))
        #expect(!page.contains("alice"))
        for name in ["cpu_seconds_total", "resident_memory_bytes", "start_time_seconds", "open_fds", "max_fds"] {
            let line = page.split(separator: "\n").first { $0.hasPrefix("process_\(name) ") }
            #expect((line?.split(separator: " ").last.flatMap { Double($0) } ?? 0) > 0, "\(name)")
        }
        let began = page.split(separator: "\n").first { $0.hasPrefix("process_start_time_seconds ") }
        let at = try #require(began?.split(separator: " ").last.flatMap { Double($0) })
        #expect(abs(Date().timeIntervalSince1970 - at) < 86_400)
        await server.drain(graceSeconds: 0)
        await loops.stop()
    }
}
