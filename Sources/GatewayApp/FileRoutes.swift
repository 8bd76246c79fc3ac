import Core
import CoreHTTP
import Crypto
import Foundation
import HTTPServer
import ServiceKit

/// The bytes of files. What is served has the type that its content was found to have, never the one somebody said.
struct FileRoutes: Sendable {
    let media: any MediaRepository
    let store: any ObjectStore
    let signIn: SignIn
    let links: MediaLinks
    let log: Log
    let missing: Counter

    /// A row without its object: the operator is told by the log and a metric, and may bring it back.
    static let lost = AppError(
        .notFound, "The content of this file is missing. Whoever runs this site has been told.")

    /// Shown in the page; everything else is a download.
    static let inlineTypes: Set<String> = ["image/jpeg", "image/png", "image/webp", "image/gif", "application/pdf"]

    func register(on router: inout Router) { router.on(.get, "/uploads/:file", serve) }

    /// Logos for everyone; other files for who has their address, or is signed in and may read them.
    @Sendable func serve(_ request: HTTPRequest) async throws -> HTTPResponse {
        guard let file = request.parameters["file"] else { throw AppError.notFound }
        if request.path == MediaLinks.placeholder { return Placeholder.response }
        let hash = String(file.prefix { $0 != "." })
        guard let media = try await self.media.find(hash: hash) else { throw AppError.notFound }
        let isPublic = media.kind == .logo && media.state == .ready
        if !isPublic {
            let token = try QueryItems(request.query)["t"]
            let permitted = token.map { links.permits($0, path: request.path, media: media) } ?? false
            if !permitted {
                guard let caller = try signIn.optionalCaller(of: request),
                    try await self.media.mayRead(media.id, user: caller.user)
                else { throw AppError.notFound }
            }
        }
        switch media.state {
        case .ready: break
        case .pending:
            throw AppError(.unavailable, "This file is still being checked. Try again.", retryAfterSeconds: 1)
        case .rejected:
            throw AppError(.gone, media.rejectionMessage ?? "This file was rejected.")
        }
        return try await answer(media, hash: hash, isPublic: isPublic, request)
    }

    private func answer(
        _ media: Media, hash: String, isPublic: Bool, _ request: HTTPRequest
    ) async throws -> HTTPResponse {
        // Images are served as re-encoded upright; the original with its metadata stays in the store.
        let variant =
            media.variants.first { $0.hash == hash }
            ?? (hash == media.hash ? media.upright : nil)
        let key = variant?.storageKey ?? media.storageKey
        let type = variant?.mime ?? media.mime ?? "application/octet-stream"
        guard let object = try await store.open(key) else {
            missing.add()
            log.error("an object is not in the store", ["media": .int(media.id.value), "key": .string(key)])
            throw Self.lost
        }
        var headers: HTTPHeaders = [
            "X-Content-Type-Options": "nosniff",
            "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
            "Cross-Origin-Resource-Policy": isPublic ? "cross-origin" : "same-site",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": isPublic ? "public, max-age=31536000, immutable" : "private, no-store",
        ]
        headers.add(
            "Content-Disposition",
            ContentDisposition.text(inline: Self.inlineTypes.contains(type), fileName: media.name))
        let contentType = type == "text/plain" ? "text/plain; charset=utf-8" : type
        // A replaced file keeps its name.
        let etag = "\"\(hash).\(Int64(media.updatedAt.timeIntervalSince1970 * 1000))\""
        switch object {
        case .file(let path):
            return try await .file(path, for: request, contentType: contentType, etag: etag, headers: headers)
        case .remote(let object):
            return try await RemoteFile(object: object)
                .response(for: request, contentType: contentType, etag: etag, headers: headers)
        }
    }
}

/// An object that is elsewhere, given on in pieces: each is asked for when the one before has gone out, so that a
/// client that reads slowly holds one piece of memory and nothing of the store's.
struct RemoteFile {
    static let pieceBytes = 256 * 1024

    let object: any RemoteObject

    /// - Throws: what the store says of the first piece, so that its trouble has a status.
    func response(
        for request: HTTPRequest, contentType: String, etag: String, headers: HTTPHeaders
    ) async throws -> HTTPResponse {
        var part: Range<Int>?
        var response = try HTTPResponse.content(
            size: Int(object.bytes), modified: Int(object.modifiedAt.timeIntervalSince1970), for: request,
            contentType: contentType, etag: etag, headers: headers
        ) { range in
            part = range
            return .stream { _ in }
        }
        guard let part, request.method == .get else { return response }
        let first = try await Self.piece(of: object, part)
        response.body = .stream { [object] writer in
            try await writer.write(first)
            var rest = part.dropFirst(first.count)
            while !rest.isEmpty {
                let piece = try await Self.piece(of: object, rest)
                try await writer.write(piece)
                rest = rest.dropFirst(piece.count)
            }
        }
        return response
    }

    private static func piece(of object: any RemoteObject, _ range: Range<Int>) async throws -> [UInt8] {
        guard !range.isEmpty else { return [] }
        return try await object.read(at: Int64(range.lowerBound), count: min(range.count, pieceBytes))
    }
}

/// RFC 6266 with RFC 8187: an ASCII name for old clients, the real one beside it.
enum ContentDisposition {
    static func text(inline: Bool, fileName: String) -> String {
        let ascii = String(
            fileName.unicodeScalars.map { scalar -> Character in
                scalar.isASCII && scalar.value >= 0x20 && !"\"\\%;".unicodeScalars.contains(scalar)
                    ? Character(scalar) : "_"
            })
        let attribute = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$&+-.^_`|~".utf8)
        var encoded = ""
        for byte in fileName.utf8 {
            if attribute.contains(byte) {
                encoded.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                encoded += "%" + Hex.encode([byte]).uppercased()
            }
        }
        return "\(inline ? "inline" : "attachment"); filename=\"\(ascii)\"; filename*=UTF-8''\(encoded)"
    }
}

/// Shown for companies without a logo: the client's list fails as a whole when one is missing.
enum Placeholder {
    static let response = HTTPResponse(
        status: 200,
        headers: [
            "Content-Type": "image/png", "X-Content-Type-Options": "nosniff", "Cache-Control": "public, max-age=86400",
        ],
        body: .bytes(png))

    /// A grey house, drawn for Martlet.
    static let side = 128
    static let drawnAt = Date(timeIntervalSince1970: 1_796_083_200)
    static let png = Array(
        Data(
            base64Encoded: """
                iVBORw0KGgoAAAANSUhEUgAAAIAAAACACAAAAADmVT4XAAAAf0lEQVR42u3V0Q0AERQEQP0XoMSrQwHkJIKHzH76mgi76QtOAgAAAA\
                AAAAAAAAAAALgCkAcDADAXUGu6JwAAAI8BNCEAAACALQAAANCEAAAAALYAAABAEwIAAACctwWNOwJ4G/D7xkO+IQAAAADARsDKAAAA\
                AAAAAAAAAACEAwrWrlycqz2kWwAAAABJRU5ErkJggg==
                """) ?? Data())
}
