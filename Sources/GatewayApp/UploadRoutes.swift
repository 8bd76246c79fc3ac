import Core
import CoreHTTP
import Crypto
import Foundation
import HTTPServer
import JSON

/// Files in and out. What is served has the type that its content was found to have, never the one somebody said.
struct UploadRoutes: Sendable {
    let parts: GatewayParts
    let signIn: SignIn
    let links: MediaLinks
    let forms: FormReader

    /// Shown in the page; everything else is a download.
    static let inlineTypes: Set<String> = ["image/jpeg", "image/png", "image/webp", "image/gif", "application/pdf"]

    func register(on router: inout Router) {
        router.on(.post, "/api/upload", bodyMax: FormReader.bodyMax(.attachment), upload)
        router.on(.get, "/api/upload/files/:id", find)
        router.on(.get, "/uploads/:file", serve)
    }

    /// A form with one file in `files`; `?kind=` says what it is for: `profile` or `attachment` (the default).
    @Sendable func upload(_ request: HTTPRequest) async throws -> HTTPResponse {
        let caller = try signIn.caller(of: request)
        let kind = try self.kind(QueryItems(request.query)["kind"])
        guard request.mediaType == "multipart/form-data" else {
            throw AppError(.unsupportedType, "Send a form (multipart/form-data) with a file in files.")
        }
        let form = try await forms.read(request, files: ["files": kind])
        return try await form.keepingFiles { form in
            guard let draft = form.files["files"] else { throw AppError(.invalid, "Files are empty") }
            let media = try await parts.media.create(draft, owner: caller.user)
            return .json { json in
                json.array([media]) { json, media in
                    json.object { write(media, to: &$0) }
                }
            }
        }
    }

    private func kind(_ text: String?) throws(AppError) -> Media.Kind {
        switch text {
        case nil, "attachment": .attachment
        case "profile": .profile
        default: throw .invalid("kind", "kind must be profile or attachment; CVs and logos come with their forms")
        }
    }

    @Sendable func find(_ request: HTTPRequest) async throws -> HTTPResponse {
        let caller = try signIn.caller(of: request)
        let id = try request.id(as: Media.self)
        guard try await parts.media.mayRead(id, user: caller.user) else { throw AppError(.notFound, "file.notFound") }
        let media = try await parts.media.find(id)
        return .json { json in
            json.object { write(media, to: &$0) }
        }
    }

    /// Logos for everyone; other files for who has their address, or is signed in and may read them.
    @Sendable func serve(_ request: HTTPRequest) async throws -> HTTPResponse {
        guard let file = request.parameters["file"] else { throw AppError.notFound }
        if request.path == MediaLinks.placeholder { return Placeholder.response }
        let hash = String(file.prefix { $0 != "." })
        guard let media = try await parts.media.find(hash: hash) else { throw AppError.notFound }
        let isPublic = media.kind == .logo && media.state == .ready
        if !isPublic {
            let token = try QueryItems(request.query)["t"]
            let permitted = token.map { links.permits($0, path: request.path, media: media) } ?? false
            if !permitted {
                guard let caller = try signIn.optionalCaller(of: request),
                    try await parts.media.mayRead(media.id, user: caller.user)
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
            ?? (hash == media.hash ? media.variants.first { $0.name == "upright" } : nil)
        let key = variant?.storageKey ?? media.storageKey
        let type = variant?.mime ?? media.mime ?? "application/octet-stream"
        guard let path = try await parts.store.localPath(key) else { throw AppError.notFound }
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
        return try await .file(
            path, for: request, contentType: type == "text/plain" ? "text/plain; charset=utf-8" : type,
            etag: "\"\(hash)\"", headers: headers)
    }

    private func write(_ media: Media, to json: inout JSONWriter) {
        json.field("id", media.id.value)
        json.field("name", media.name)
        json.nullField("alternativeText")
        json.nullField("caption")
        json.field("width", orNull: media.width)
        json.field("height", orNull: media.height)
        json.nullField("formats")
        json.field("hash", media.hash)
        json.field("ext", media.ext ?? "")
        json.field("mime", media.mime ?? "")
        json.field("size", (Double(media.bytes) / 10).rounded() / 100)
        json.field("url", media.kind == .logo ? links.logo(media) : links.capability(media))
        json.nullField("previewUrl")
        json.field("provider", "local")
        json.nullField("provider_metadata")
        json.field("state", media.state.rawValue)
        json.field("rejection", orNull: media.rejectionMessage)
        json.field("createdAt", media.createdAt)
        json.field("updatedAt", media.updatedAt)
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

    /// A grey house, 128x128, drawn for Martlet.
    private static let png = Array(
        Data(
            base64Encoded: """
                iVBORw0KGgoAAAANSUhEUgAAAIAAAACACAAAAADmVT4XAAAAf0lEQVR42u3V0Q0AERQEQP0XoMSrQwHkJIKHzH76mgi76QtOAgAAAA\
                AAAAAAAAAAALgCkAcDADAXUGu6JwAAAI8BNCEAAACALQAAANCEAAAAALYAAABAEwIAAACctwWNOwJ4G/D7xkO+IQAAAADARsDKAAAA\
                AAAAAAAAAACEAwrWrlycqz2kWwAAAABJRU5ErkJggg==
                """) ?? Data())
}
