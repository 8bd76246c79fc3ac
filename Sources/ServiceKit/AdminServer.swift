import EventLoop
import Foundation
import HTTPServer

/// `/livez`, `/readyz` and `/metrics`, on a port of their own that no proxy shows to the world.
struct AdminServer {
    let health: Health
    let metrics: Metrics

    func router() -> Router {
        var router = Router()
        router.on(.get, "/livez") { _ in Self.text(200, "ok\n") }
        router.on(.get, "/readyz") { [health] _ in
            let problems = health.problems()
            let lines = (problems + health.remarks()).map { "\($0.name): \($0.problem)\n" }.joined()
            return Self.text(problems.isEmpty ? 200 : 503, problems.isEmpty ? "ready\n" + lines : lines)
        }
        router.on(.get, "/metrics") { [metrics] _ in
            var response = Self.text(200, await metrics.page())
            response.headers.set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            return response
        }
        return router
    }

    func server(loops: LoopGroup, address: SocketAddress) -> HTTPServer {
        let router = router()
        return HTTPServer(
            loops: loops, address: address,
            onError: { error, _ in
                (error as? HTTPError ?? HTTPError(500, "The server could not answer.")).response
            },
            handler: { try await router.handle($0) })
    }

    private static func text(_ status: Int, _ text: String) -> HTTPResponse {
        HTTPResponse(
            status: status, headers: ["Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store"],
            body: .bytes(Array(text.utf8)))
    }
}
