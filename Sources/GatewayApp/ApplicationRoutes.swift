import Core
import CoreHTTP
import HTTPServer
import JSON

struct ApplicationRoutes: Sendable {
    let parts: GatewayParts
    let signIn: SignIn
    let links: MediaLinks
    let forms: FormReader
    let answers: EntryAnswers

    func register(on router: inout Router) {
        router.on(.post, "/api/applications", bodyMax: FormReader.bodyMax(.cv), apply)
        router.on(.get, "/api/applications", list)
        router.on(.get, "/api/applications/mine", mine)
        router.on(.get, "/api/applications/:id", find)
        router.on(.put, "/api/applications/:id", move)
        router.on(.get, "/api/applications/:id/history", history)
    }

    /// A form with the posting's id in `job` and a file in `cv`. The CV is looked at afterwards: if it turns out to be
    /// none, the application stands and says so.
    @Sendable func apply(_ request: HTTPRequest) async throws -> HTTPResponse {
        let caller = try signIn.caller(of: request)
        guard request.mediaType == "multipart/form-data" else {
            throw AppError(.unsupportedType, "Send a form (multipart/form-data) with job and cv.")
        }
        let form = try await forms.read(request, files: ["cv": .cv])
        return try await form.keepingFiles { form in
            guard let posting = try form.fields.id("job", as: JobPosting.self) else {
                throw form.fields.wrong("job", "is required")
            }
            guard let cv = form.files["cv"] else { throw AppError.invalid("cv", "cv is required: a PDF or Word file") }
            let application = try await parts.applications.create(
                posting: posting, applicant: caller.user, cv: cv, now: parts.clock.now())
            return .json { json in
                json.object { json in
                    json.object("data") { json in
                        json.field("id", application.id.value)
                        json.object("attributes") { ApplicationBody.writeFlat(application, links: links, to: &$0) }
                    }
                    json.object("meta") { _ in }
                }
            }
        }
    }

    @Sendable func mine(_ request: HTTPRequest) async throws -> HTTPResponse {
        let caller = try signIn.caller(of: request)
        let details = try await parts.applications.mine(of: caller.user)
        let now = parts.clock.now()
        return .json(capacity: 16_384) { json in
            json.array(details) { json, detail in
                json.object { ApplicationBody.writeDetail(detail, now: now, links: links, to: &$0) }
            }
        }
    }

    @Sendable func find(_ request: HTTPRequest) async throws -> HTTPResponse {
        let caller = try signIn.caller(of: request)
        return try await answers.one(
            .application, request.id(as: Application.self).value, request, viewer: caller.user)
    }

    /// One's own, and those to the postings of one's company.
    @Sendable func list(_ request: HTTPRequest) async throws -> HTTPResponse {
        try await answers.list(.application, request, viewer: signIn.caller(of: request).user)
    }

    /// Only `status` is read: whose application it is, and by whom it may be moved, the database says.
    @Sendable func move(_ request: HTTPRequest) async throws -> HTTPResponse {
        let caller = try signIn.caller(of: request)
        let id = try request.id(as: Application.self)
        let fields = try await request.fields()
        guard let status = try fields.choice("status", as: Application.Status.self), status != .initiated else {
            throw fields.wrong("status", "must be accepted, declined or withdrawn")
        }
        return answer(try await parts.applications.move(id, to: status, actor: caller.user))
    }

    @Sendable func history(_ request: HTTPRequest) async throws -> HTTPResponse {
        let caller = try signIn.caller(of: request)
        let events = try await parts.applications.history(try request.id(as: Application.self), viewer: caller.user)
        return .json { json in
            json.object { json in
                json.array("data", events) { json, event in
                    json.object { json in
                        json.field("kind", event.kind)
                        json.field("actor", orNull: event.actorID?.value)
                        json.field("note", event.note)
                        json.field("at", event.at)
                    }
                }
                json.object("meta") { _ in }
            }
        }
    }

    private func answer(_ detail: ApplicationDetail) -> HTTPResponse {
        let now = parts.clock.now()
        return .json(capacity: 4096) { json in
            json.object { ApplicationBody.writeDetail(detail, now: now, links: links, to: &$0) }
        }
    }
}
