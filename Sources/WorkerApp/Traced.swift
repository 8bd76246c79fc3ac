import Clamd
import Tracing
import Transfer

/// Spans around what a mail server and clamd are asked, within an item of work that is recorded. Handlers know nothing
/// of it. No address of a person, no name of a file, nothing that a server says is in them.
enum Traced {
    static func mail(
        _ tracer: Tracer?, _ server: SMTPClient.Configuration, _ send: @escaping Measured.Send
    ) -> Measured.Send {
        guard let tracer else { return send }
        let attributes = [
            SpanAttribute("network.protocol.name", "smtp"), SpanAttribute("server.address", .string(server.host)),
            SpanAttribute("server.port", .int(server.port)),
        ]
        return { from, to, message in
            guard let span = tracer.beginWithin("SMTP send", .client, attributes) else {
                return try await send(from, to, message)
            }
            do {
                try await send(from, to, message)
                span.end()
            } catch {
                let (word, code) = word(for: error)
                // Without a reply there is no code.
                let status = SpanAttribute("martlet.smtp.response.status_code", .int(code))
                span.end(code > 0 ? [status] : [], error: word)
                throw error
            }
        }
    }

    private static func word(for error: any Error) -> (String, code: Int) {
        switch error {
        case SMTPError.temporary(let code, _): ("temporary", code)
        case SMTPError.recipientDeferred(let code, _): ("recipient_deferred", code)
        case SMTPError.refused(let code, _): ("refused", code)
        case SMTPError.recipientRefused(let code, _): ("recipient_refused", code)
        case SMTPError.malformed: ("malformed", 0)
        default: ("\(type(of: error))", 0)
        }
    }

    typealias Scan = @Sendable (_ path: String) async throws -> ClamdVerdict

    static func scan(_ tracer: Tracer?, _ server: ClamdAddress, _ scan: @escaping Scan) -> Scan {
        guard let tracer else { return scan }
        var attributes = [SpanAttribute("network.protocol.name", "clamd")]
        switch server {
        case .socket(let path):
            attributes += [SpanAttribute("network.transport", "unix"), SpanAttribute("server.address", .string(path))]
        case .tcp(let host, let port):
            attributes += [
                SpanAttribute("network.transport", "tcp"), SpanAttribute("server.address", .string(host)),
                SpanAttribute("server.port", .int(port)),
            ]
        }
        let always = attributes
        return { path in
            guard let span = tracer.beginWithin("clamd scan", .client, always) else { return try await scan(path) }
            do {
                let verdict = try await scan(path)
                span.end([SpanAttribute("martlet.scan.verdict", verdict == .clean ? "clean" : "infected")])
                return verdict
            } catch {
                span.end(error: (error as? ClamdError).map(word(for:)) ?? "\(type(of: error))")
                throw error
            }
        }
    }

    private static func word(for error: ClamdError) -> String {
        switch error {
        case .unreachable: "unreachable"
        case .timedOut: "timeout"
        case .closed: "closed"
        case .garbage: "garbage"
        case .failed: "failed"
        case .streamTooLong: "stream_too_long"
        case .unreadable: "unreadable"
        }
    }
}
