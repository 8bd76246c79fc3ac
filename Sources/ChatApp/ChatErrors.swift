import HTTPServer
import ServiceKit

/// What a client is told of an error that no handler has an answer for, and what the log is told.
struct ChatErrors: Sendable {
    let log: Log

    func response(to error: any Error, _ request: HTTPRequest) -> HTTPResponse {
        switch error {
        case let error as HTTPError: return error.response
        case is CancellationError: return HTTPError(503, "The service is ending.").response
        default:
            // Without the query, which has the name of a session.
            log.error(
                "request failed",
                [
                    "method": .string(request.method.rawValue), "path": .string(request.path),
                    "error": .string(String(describing: error)),
                ])
            return HTTPError(500, "The server could not answer.").response
        }
    }
}
