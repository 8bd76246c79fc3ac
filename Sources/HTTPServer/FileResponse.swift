import EventLoop
import Glibc

extension HTTPResponse {
    /// A file, answered as the request asks for it: 200, 206 for one range, 304, 412 or 416. Opened and read through
    /// libuv's pool.
    ///
    /// - Parameters:
    ///   - path: where it is. Never made of what a client sent; a symbolic link is followed.
    ///   - etag: strong, with its quotes and without a comma. Made of size and time of change if nil.
    ///   - headers: sent with 200, 206 and 304: `Cache-Control`, `Content-Disposition` and the like.
    /// - Throws: `HTTPError` 404 when there is no such regular file, `LoopError` when it cannot be read.
    public static func file(
        _ path: String, for request: HTTPRequest, contentType: String, etag: String? = nil, headers: HTTPHeaders = [:]
    ) async throws -> HTTPResponse {
        let file: LoopFile
        do {
            file = try await LoopFile.open(path, on: request.loop)
        } catch let error as LoopError where [-ENOENT, -ENOTDIR, -EISDIR, -ENAMETOOLONG, -ELOOP].contains(error.code) {
            throw HTTPError(404, "There is no such file.")
        }
        let made = "\"\(String(file.size, radix: 16))-\(String(file.modifiedNanoseconds, radix: 16))\""
        return try content(
            size: file.size, modified: file.modifiedNanoseconds / 1_000_000_000, for: request,
            contentType: contentType, etag: etag ?? made, headers: headers
        ) { range in .file(FileBody(file: file, offset: range.lowerBound, count: range.count)) }
    }

    /// What is kept elsewhere than in a file, answered as `file` answers.
    ///
    /// - Parameters:
    ///   - size: bytes of the whole.
    ///   - modified: when it was last changed, in seconds since 1970.
    ///   - etag: strong, with its quotes and without a comma.
    ///   - body: makes the body of these bytes of it; called when there is to be one. A stream writes as many.
    /// - Throws: `HTTPError` 412 or 416, and what `body` throws.
    public static func content(
        size: Int, modified: Int, for request: HTTPRequest, contentType: String, etag: String,
        headers: HTTPHeaders = [:], body: (Range<Int>) throws -> Body
    ) throws -> HTTPResponse {
        var headers = headers
        headers.set("ETag", etag)
        headers.set("Last-Modified", HTTPDate.text(modified))
        var (status, part) = (200, 0..<size)
        switch FileConditions(size: size, etag: etag, modified: modified).evaluate(request.method, request.headers) {
        case .failed: throw HTTPError(412, "The file is not the one that was asked for.")
        case .unsatisfiable:
            throw HTTPError(
                416, "The range is beyond the end of the file.", headers: ["Content-Range": "bytes */\(size)"])
        case .notModified: return HTTPResponse(status: 304, headers: headers)
        case .whole: break
        case .part(let range):
            (status, part) = (206, range)
            headers.set("Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(size)")
        }
        headers.set("Content-Type", contentType)
        headers.set("Accept-Ranges", "bytes")
        let body = try body(part)
        // Of a file the server knows it.
        if case .stream = body { headers.set("Content-Length", String(part.count)) }
        return HTTPResponse(status: status, headers: headers, body: body)
    }
}
