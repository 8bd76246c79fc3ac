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
        let modified = file.modifiedNanoseconds / 1_000_000_000
        let made = "\"\(String(file.size, radix: 16))-\(String(file.modifiedNanoseconds, radix: 16))\""
        let conditions = FileConditions(size: file.size, etag: etag ?? made, modified: modified)
        var headers = headers
        headers.set("ETag", conditions.etag)
        headers.set("Last-Modified", HTTPDate.text(modified))
        switch conditions.evaluate(request.method, request.headers) {
        case .failed: throw HTTPError(412, "The file is not the one that was asked for.")
        case .unsatisfiable:
            throw HTTPError(
                416, "The range is beyond the end of the file.", headers: ["Content-Range": "bytes */\(file.size)"])
        case .notModified: return HTTPResponse(status: 304, headers: headers)
        case .whole:
            headers.set("Content-Type", contentType)
            headers.set("Accept-Ranges", "bytes")
            return HTTPResponse(
                status: 200, headers: headers, body: .file(FileBody(file: file, count: file.size)))
        case .part(let range):
            headers.set("Content-Type", contentType)
            headers.set("Accept-Ranges", "bytes")
            headers.set("Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(file.size)")
            return HTTPResponse(
                status: 206, headers: headers,
                body: .file(FileBody(file: file, offset: range.lowerBound, count: range.count)))
        }
    }
}
