/// A request method (RFC 9110 §9). The server lets through only those of `allowed`; others are answered 501.
public struct HTTPMethod: Sendable, Hashable, RawRepresentable, CustomStringConvertible {
    public let rawValue: String

    public init(rawValue: String) { self.rawValue = rawValue }

    public static let get = HTTPMethod(rawValue: "GET")
    public static let head = HTTPMethod(rawValue: "HEAD")
    public static let post = HTTPMethod(rawValue: "POST")
    public static let put = HTTPMethod(rawValue: "PUT")
    public static let delete = HTTPMethod(rawValue: "DELETE")
    public static let patch = HTTPMethod(rawValue: "PATCH")
    public static let options = HTTPMethod(rawValue: "OPTIONS")

    /// In the order in which `Allow` lists them.
    public static let allowed: [HTTPMethod] = [.get, .head, .post, .put, .patch, .delete, .options]

    public var description: String { rawValue }
}
