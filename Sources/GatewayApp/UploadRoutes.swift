import Core
import CoreHTTP
import HTTPServer
import JSON

/// Files in, as Strapi's upload plugin takes them (contracts: `/api/upload`), and what became of them.
struct UploadRoutes: Sendable {
    /// Of one request, all files together: ten photos of a telephone. They go to the store as they come.
    static let bytesMax = 50 << 20

    let parts: GatewayParts
    let signIn: SignIn
    let links: MediaLinks
    let forms: FormReader
    let settling: UploadSettling
    let answers: EntryAnswers

    func register(on router: inout Router) {
        router.on(.post, "/api/upload", bodyMax: Self.bytesMax + FormReader.overheadBytesMax, upload)
        router.on(.get, "/api/upload/files", list)
        router.on(.get, "/api/upload/files/:id", find)
        router.on(.delete, "/api/upload/files/:id", delete)
        router.on(.post, "/api/upload/files/:id/revoke", revoke)
    }

    /// A form with files in `files`, and what they are for and called beside them: see `UploadForm`. With `?id=` it
    /// changes that file. The answer waits a while until the files have been looked at: an array of file objects, with
    /// `?id=` the one object.
    @Sendable func upload(_ request: HTTPRequest) async throws -> HTTPResponse {
        let caller = try signIn.caller(of: request)
        let query = try QueryItems(request.query)
        if let id = query["id"] { return try await change(id, request, caller.user) }
        let kind = try UploadForm.kind(query["kind"])
        let form = try await forms.read(request, files: ["files": kind], repeatedMax: UploadForm.filesMax)
        let (upload, added) = try await form.keepingFiles { form in
            let upload = try UploadForm(form, kind: kind, caller: caller.user, random: parts.random)
            return (upload, try await parts.media.add(upload.drafts, owner: caller.user, use: upload.use))
        }
        let files = try await settling.settle(added, from: upload.drafts, on: request.loop) { files in
            guard let use = upload.use, let file = files.first else { return files }
            return [try await parts.media.attach(file.id, to: use, owner: caller.user)]
        }
        return .json(capacity: 4096) { json in
            json.array(files) { json, media in
                json.object { MediaBody.writeFlat(media, links: links, to: &$0) }
            }
        }
    }

    /// Other content for a file, or, without one, other words about it.
    private func change(_ id: String, _ request: HTTPRequest, _ user: User.ID) async throws -> HTTPResponse {
        guard let id = Media.ID(text: id) else { throw Self.notFound }
        let present = try await own(id, user)
        let form = try await forms.read(request, files: ["files": present.kind], repeatedMax: UploadForm.filesMax)
        if form.files.isEmpty {
            return answer(try await parts.media.describe(id, try UploadForm.info(form), owner: user))
        }
        let (upload, added) = try await form.keepingFiles { form in
            let upload = try UploadForm(replacing: present, form, random: parts.random)
            return (upload, try await parts.media.add(upload.drafts, owner: user, use: nil))
        }
        let files = try await settling.settle(added, from: upload.drafts, on: request.loop) { files in
            // What has not been looked at takes nobody's place.
            guard let file = files.first, file.state == .ready else { throw UploadSettling.stillPending }
            return [try await parts.media.exchange(id, for: file.id, owner: user)]
        }
        guard let file = files.first else { throw Self.notFound }
        return answer(file)
    }

    /// The caller's own files, in Strapi's list language: newest first unless asked otherwise.
    @Sendable func list(_ request: HTTPRequest) async throws -> HTTPResponse {
        let caller = try signIn.caller(of: request)
        let own = try EntryFilter.compare(.media(.ownerID), .equals(.integer(caller.user.value)))
        return try await answers.flatList(.media, request, viewer: caller.user, only: own)
    }

    @Sendable func find(_ request: HTTPRequest) async throws -> HTTPResponse {
        let caller = try signIn.caller(of: request)
        let id = try id(request)
        guard try await parts.media.mayRead(id, user: caller.user) else { throw Self.notFound }
        return answer(try await parts.media.find(id))
    }

    /// Only the owner's; a company or a person that had it has none then. Answers what was deleted.
    @Sendable func delete(_ request: HTTPRequest) async throws -> HTTPResponse {
        let caller = try signIn.caller(of: request)
        let id = try id(request)
        return answer(try await Self.naming { try await parts.media.delete(id, owner: caller.user) })
    }

    /// Makes every address given out for a file worthless; the answer has a new one.
    @Sendable func revoke(_ request: HTTPRequest) async throws -> HTTPResponse {
        let caller = try signIn.caller(of: request)
        let id = try id(request)
        try await Self.naming { try await parts.media.revokeURLs(of: id, owner: caller.user) }
        return answer(try await parts.media.find(id))
    }

    private static let notFound = AppError(.notFound, "file.notFound")

    /// Strapi's word for a file that is not there.
    private static func naming<T>(_ work: () async throws -> T) async throws -> T {
        do { return try await work() } catch let error as AppError where error.code == .notFound { throw notFound }
    }

    private func id(_ request: HTTPRequest) throws(AppError) -> Media.ID {
        guard let text = request.parameters["id"], let id = Media.ID(text: text) else { throw Self.notFound }
        return id
    }

    private func own(_ id: Media.ID, _ user: User.ID) async throws -> Media {
        let media = try await Self.naming { try await parts.media.find(id) }
        guard media.ownerID == user else { throw Self.notFound }
        return media
    }

    private func answer(_ media: Media) -> HTTPResponse {
        .json(capacity: 2048) { json in
            json.object { MediaBody.writeFlat(media, links: links, to: &$0) }
        }
    }
}
