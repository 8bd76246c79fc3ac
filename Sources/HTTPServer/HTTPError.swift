/// A request that cannot be answered as asked, with what to answer instead.
///
/// Thrown by bodies (413 too large, 400 malformed or cut off, 408 too slow) and by the router (404, 405); handlers may
/// throw their own. The message is shown to the client as it stands.
public struct HTTPError: Error, Equatable, Sendable, CustomStringConvertible {
    public let status: Int
    public let message: String
    public let headers: HTTPHeaders

    public init(_ status: Int, _ message: String, headers: HTTPHeaders = [:]) {
        self.status = status
        self.message = message
        self.headers = headers
    }

    /// The answer where no hook makes a better one: the message as plain text.
    public var response: HTTPResponse {
        var headers = headers
        headers.set("Content-Type", "text/plain; charset=utf-8")
        return HTTPResponse(status: status, headers: headers, body: .bytes(Array((message + "\n").utf8)))
    }

    public var description: String { "\(status) \(message)" }

    static let aborted = HTTPError(400, "The connection ended before the request did.")
    static let bodyTooLarge = HTTPError(413, "The request body is too large.")
    static let bodyTooSlow = HTTPError(408, "The request body came too slowly.")
}
