/// Reads the parts of a `multipart/form-data` request as they arrive. Nothing is read ahead of the caller, so a slow
/// consumer slows the client down.
///
///     var reader = try MultipartReader(request)
///     while let part = try await reader.nextPart() {
///         while let piece = try await reader.next() { … }
///     }
///
/// Not Sendable: one task reads.
public struct MultipartReader: ~Copyable {
    public struct Part: Sendable, Equatable {
        /// The form field.
        public let name: String
        /// Nil for a plain field. A name from outside: never a path.
        public let filename: String?
        /// As declared by the client, which proves nothing.
        public let contentType: String?
        public let headers: HTTPHeaders
    }

    private let body: HTTPBody
    private var parser: MultipartParser
    private var insidePart = false
    private var ended = false

    /// - Throws: 415 when the request is not `multipart/form-data`, or is in a content coding; 400 when its boundary is
    ///   missing or not a valid one.
    public init(_ request: HTTPRequest, limits: MultipartLimits = MultipartLimits()) throws(HTTPError) {
        guard let type = request.headers["Content-Type"], let value = HeaderValue(type),
            value.value.lowercased() == "multipart/form-data"
        else { throw HTTPError(415, "The body must be multipart/form-data.") }
        guard let boundary = value.parameters["boundary"] else {
            throw HTTPError(400, "The Content-Type has no boundary.")
        }
        try request.requirePlainBody()
        try self.init(request.body, boundary: boundary, limits: limits)
    }

    init(_ body: HTTPBody, boundary: String, limits: MultipartLimits) throws(HTTPError) {
        self.body = body
        parser = try MultipartParser(boundary: boundary, limits: limits)
    }

    /// The next part; what was left of the one before is skipped. Nil after the last.
    /// - Throws: `HTTPError`: 400 malformed or cut off, 413 too many parts or too large, 408 too slow.
    public mutating func nextPart() async throws -> Part? {
        while insidePart { _ = try await next() }
        while !ended {
            switch try parser.next() {
            case .needsMore: try await feed()
            case .partBegin(let headers):
                insidePart = true
                return try Self.part(headers)
            case .partData, .partEnd: break
            case .end:
                ended = true
                // What follows is nothing, but the connection lives on only when it has been read.
                while try await body.next() != nil {}
            }
        }
        return nil
    }

    /// The next piece of the current part's content, nil at its end.
    /// - Throws: as `nextPart()`.
    public mutating func next() async throws -> [UInt8]? {
        while insidePart {
            switch try parser.next() {
            case .needsMore: try await feed()
            case .partData(let data): return data
            case .partEnd: insidePart = false
            case .partBegin, .end: insidePart = false
            }
        }
        return nil
    }

    /// The rest of the current part's content.
    /// - Throws: as `nextPart()`; 413 beyond `max` bytes.
    public mutating func collect(max: Int) async throws -> [UInt8] {
        var whole: [UInt8] = []
        while let piece = try await next() {
            guard whole.count + piece.count <= max else { throw HTTPError(413, "A form field is too large.") }
            whole += piece
        }
        return whole
    }

    private mutating func feed() async throws {
        guard let piece = try await body.next() else {
            try parser.finish()
            ended = true
            insidePart = false
            return
        }
        parser.feed(piece)
    }

    /// RFC 7578 §4.2: every part is form-data with a name; `filename*` is not used in forms and ignored.
    private static func part(_ headers: HTTPHeaders) throws(HTTPError) -> Part {
        guard let text = headers["Content-Disposition"], let disposition = HeaderValue(text),
            disposition.value.lowercased() == "form-data", let name = disposition.parameters["name"]
        else { throw HTTPError(400, "A part has no Content-Disposition of form-data with a name.") }
        return Part(
            name: unescaped(name), filename: disposition.parameters["filename"].map(unescaped),
            contentType: headers["Content-Type"], headers: headers)
    }

    /// Browsers escape exactly these three in names (HTML, "multipart/form-data encoding algorithm").
    private static func unescaped(_ name: String) -> String {
        guard name.utf8.contains(UInt8(ascii: "%")) else { return name }
        return name.replacing("%22", with: "\"").replacing("%0D", with: "\r").replacing("%0A", with: "\n")
    }
}
