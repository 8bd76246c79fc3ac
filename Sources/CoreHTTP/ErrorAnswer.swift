import Core
import HTTPServer
import JSON

/// Errors as the clients know them: `{"data":null,"error":{"status","name","message","details"}}` (contracts: Strapi
/// v4).
public enum ErrorAnswer {
    /// Without `default`: a new code does not compile until someone decides.
    static func status(_ code: AppError.Code) -> (status: Int, name: String) {
        switch code {
        case .invalid: (400, "ValidationError")
        case .refused: (400, "ApplicationError")
        case .unauthenticated: (401, "UnauthorizedError")
        case .forbidden: (403, "ForbiddenError")
        case .notFound: (404, "NotFoundError")
        case .conflict: (409, "ConflictError")
        case .gone: (410, "GoneError")
        case .tooLarge: (413, "PayloadTooLargeError")
        case .unsupportedType: (415, "UnsupportedMediaTypeError")
        case .tooMany: (429, "RateLimitError")
        case .unavailable: (503, "ServiceUnavailableError")
        }
    }

    static func name(ofStatus status: Int) -> String {
        switch status {
        case 400: "BadRequestError"
        case 401: "UnauthorizedError"
        case 403: "ForbiddenError"
        case 404: "NotFoundError"
        case 405: "MethodNotAllowedError"
        case 408: "RequestTimeoutError"
        case 413: "PayloadTooLargeError"
        case 414: "URITooLongError"
        case 415: "UnsupportedMediaTypeError"
        case 429: "RateLimitError"
        case 431: "RequestHeaderFieldsTooLargeError"
        case 501: "NotImplementedError"
        case 503: "ServiceUnavailableError"
        case 500...: "InternalServerError"
        default: "BadRequestError"
        }
    }

    /// What stands in the answer beside `data` and `error`; the message of the error is its argument.
    public typealias Beside = (String, inout JSONWriter) -> Void

    public static func response(_ error: AppError, beside: Beside? = nil) -> HTTPResponse {
        let (status, name) = status(error.code)
        var headers: HTTPHeaders = [:]
        if let seconds = error.retryAfterSeconds { headers.add("Retry-After", String(seconds)) }
        if let location = error.location { headers.add("Location", location) }
        if error.code == .unauthenticated { headers.add("WWW-Authenticate", "Bearer") }
        return response(status: status, name: name, message: error.message, headers: headers, beside: beside) {
            details in
            if let location = error.location { details.field("location", location) }
            if !error.issues.isEmpty {
                details.array("errors", error.issues) { list, issue in
                    list.object {
                        $0.array("path", issue.path) { $0.value($1) }
                        $0.field("message", issue.message)
                        $0.field("name", "ValidationError")
                    }
                }
            }
        }
    }

    public static func response(_ error: HTTPError, beside: Beside? = nil) -> HTTPResponse {
        response(
            status: error.status, name: name(ofStatus: error.status),
            message: error.status == 404 ? "Not Found" : error.message, headers: error.headers, beside: beside
        ) { _ in }
    }

    /// An outage or a bug: the client is told nothing of it.
    public static func internalError(beside: Beside? = nil) -> HTTPResponse {
        response(
            status: 500, name: "InternalServerError", message: "Internal Server Error", headers: [:], beside: beside
        ) { _ in }
    }

    private static func response(
        status: Int, name: String, message: String, headers: HTTPHeaders, beside: Beside?,
        details: (inout JSONWriter) -> Void
    ) -> HTTPResponse {
        var json = JSONWriter(capacity: 256)
        json.object { document in
            document.nullField("data")
            document.object("error") { error in
                error.field("status", status)
                error.field("name", name)
                error.field("message", message)
                error.object("details", details)
            }
            beside?(message, &document)
        }
        var headers = headers
        headers.set("Content-Type", "application/json; charset=utf-8")
        headers.set("Cache-Control", "no-store")
        return HTTPResponse(status: status, headers: headers, body: .bytes(json.finish()))
    }
}
