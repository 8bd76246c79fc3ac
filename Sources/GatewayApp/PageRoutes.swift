import Core
import CoreHTTP
import Crypto
import HTTPServer
import SafeHTML

/// The few things people see in a browser: what this is, and the end of an alert.
struct PageRoutes: Sendable {
    let alerts: any AlertRepository
    let tokens: UnsubscribeToken
    let openAPI: [UInt8]

    func register(on router: inout Router) {
        router.on(.get, "/", index)
        router.on(.get, "/openapi.json", document)
        router.on(.get, "/unsubscribe/:token", confirm)
        router.on(.post, "/unsubscribe/:token", unsubscribe)
    }

    @Sendable func index(_ request: HTTPRequest) async throws -> HTTPResponse { Self.index }

    /// Made once: whatever looks whether the site is there asks for it.
    private static let index = HTMLPage.answer(
        "Martlet",
        """
        <h1>Martlet</h1>
        <p>A job board's backend. There is nothing to see here for people; programs find</p>
        <ul><li><a href="/openapi.json">the API</a></li>
        <li><a href="/api/jobs/search?q=engineer">a search</a></li></ul>
        """)

    @Sendable func document(_ request: HTTPRequest) async throws -> HTTPResponse {
        HTTPResponse(
            status: 200, headers: ["Content-Type": "application/json; charset=utf-8", "Cache-Control": "max-age=300"],
            body: .bytes(openAPI))
    }

    /// Only shows a page: link scanners follow links (RFC 8058, 3.1), and ending takes a POST.
    @Sendable func confirm(_ request: HTTPRequest) async throws -> HTTPResponse {
        let id = try alert(request)
        let (name, email) = try await alerts.describe(id)
        return HTMLPage.answer(
            "Stop this alert?",
            """
            <h1>Stop this alert?</h1>
            <p>The alert <strong>\(SafeHTML.escaped(name))</strong> sends mail to \(SafeHTML.escaped(email)).</p>
            <form method="post"><button type="submit">Stop it</button></form>
            """)
    }

    /// One click, without signing in: the token says which alert (RFC 8058).
    @Sendable func unsubscribe(_ request: HTTPRequest) async throws -> HTTPResponse {
        let id = try alert(request)
        _ = try await request.body.collect(max: 1024)
        try await alerts.unsubscribe(id)
        return HTMLPage.answer("Stopped", "<h1>Stopped</h1><p>This alert sends no more mail.</p>")
    }

    private func alert(_ request: HTTPRequest) throws(AppError) -> JobAlert.ID {
        guard let token = request.parameters["token"], let id = tokens.check(token) else { throw .notFound }
        return JobAlert.ID(id)
    }
}
