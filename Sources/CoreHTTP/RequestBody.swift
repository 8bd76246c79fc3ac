import Core
import HTTPServer
import JSON

extension HTTPRequest {
    /// The bytes a JSON body may have: the longest description, escaped, fits.
    public static let jsonBytesMax = 1 << 20

    /// The body as JSON, `{}` when there is none.
    /// - Throws: `unsupportedType` unless it is sent as JSON, `HTTPError` 415 when it is in a content coding, `invalid`
    ///   when it is not JSON.
    public func json() async throws -> JSONValue {
        let type = mediaType
        guard type == "application/json" || body.isEmpty else {
            throw AppError(.unsupportedType, "Send the body as application/json.")
        }
        try requirePlainBody()
        let bytes = try await body.collect(max: Self.jsonBytesMax)
        guard !bytes.isEmpty else { return .object([:]) }
        do throws(JSONFault) {
            return try JSONValue(parsing: bytes)
        } catch {
            throw AppError(.invalid, "The body is not valid JSON: \(error.reason), at byte \(error.offset).")
        }
    }

    /// The fields of a JSON object; of its `data` when it has the envelope.
    public func fields() async throws -> Fields {
        try Self.fields(of: try await json())
    }

    static func fields(of value: JSONValue) throws(AppError) -> Fields {
        guard case .object(let object) = value else { throw AppError(.invalid, "The body must be a JSON object.") }
        switch object["data"] {
        case .object(let inner): return Fields(inner)
        case nil: return Fields(object)
        default: throw .invalid("data", "data must be an object")
        }
    }

    /// Without parameters, in lower case.
    public var mediaType: String {
        guard let header = headers["Content-Type"] else { return "" }
        let type = header.split(separator: ";", maxSplits: 1, omittingEmptySubsequences: false)[0]
        return type.lowercased().filter { !$0.isWhitespace }
    }

    /// The id in the path. What is no id is nothing that exists.
    public func id<Entity>(_ name: String = "id", as: Entity.Type) throws(AppError) -> Identifier<Entity> {
        guard let text = parameters[name], let id = Identifier<Entity>(text: text) else { throw .notFound }
        return id
    }
}

extension HTTPResponse {
    public static func json(
        _ status: Int = 200, headers: HTTPHeaders = [:], capacity: Int = 512, _ write: (inout JSONWriter) throws -> Void
    ) rethrows -> HTTPResponse {
        var json = JSONWriter(capacity: capacity)
        try write(&json)
        var headers = headers
        headers.add("Content-Type", "application/json; charset=utf-8")
        return HTTPResponse(status: status, headers: headers, body: .bytes(json.finish()))
    }

    public static let noContent = HTTPResponse(status: 204)
}
