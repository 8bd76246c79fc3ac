import Core
import CoreHTTP
import EventLoop
import Foundation
import HTTPServer
import JSON
import SafeHTML

/// Postings; on the wire they are the contract's `jobs`.
struct PostingRoutes: Sendable {
    let parts: GatewayParts
    let signIn: SignIn
    let links: MediaLinks
    let rewriting: OffloadPool
    let answers: EntryAnswers

    func register(on router: inout Router) {
        router.on(.post, "/api/jobs", create)
        router.on(.get, "/api/jobs", list)
        router.on(.get, "/api/jobs/mine", mine)
        router.on(.get, "/api/jobs/:id", find)
        router.on(.put, "/api/jobs/:id", update)
        router.on(.delete, "/api/jobs/:id", delete)
    }

    /// For the caller's own company; the `company` that clients send is not trusted.
    @Sendable func create(_ request: HTTPRequest) async throws -> HTTPResponse {
        let caller = try signIn.caller(of: request)
        let draft = try await fields(of: request).draft(from: nil)
        let posting = try await parts.postings.create(draft, author: caller.user)
        return .json { json in
            json.object { PostingBody.writeFlat(posting, now: parts.clock.now(), to: &$0) }
        }
    }

    @Sendable func find(_ request: HTTPRequest) async throws -> HTTPResponse {
        let caller = try signIn.optionalCaller(of: request)
        return try await answers.one(
            .posting, request.id(as: JobPosting.self).value, request, viewer: caller?.user)
    }

    @Sendable func list(_ request: HTTPRequest) async throws -> HTTPResponse {
        try await answers.list(.posting, request, viewer: signIn.optionalCaller(of: request)?.user)
    }

    @Sendable func mine(_ request: HTTPRequest) async throws -> HTTPResponse {
        let caller = try signIn.caller(of: request)
        let postings = try await parts.postings.mine(of: caller.user)
        let now = parts.clock.now()
        return .json(capacity: 16_384) { json in
            json.array(postings) { json, item in
                json.object { json in
                    PostingBody.writeFlat(item.posting, now: now, to: &json)
                    json.array("applications", item.applications) { json, entry in
                        json.object { json in
                            ApplicationBody.writeFlat(entry.application, links: links, to: &json)
                            json.object("applicant") { UserBody.writeApplicant(entry.applicant, to: &$0) }
                        }
                    }
                }
            }
        }
    }

    @Sendable func update(_ request: HTTPRequest) async throws -> HTTPResponse {
        let caller = try signIn.caller(of: request)
        let id = try request.id(as: JobPosting.self)
        let fields = try await fields(of: request)
        let posting = try await parts.postings.update(id, editor: caller.user) { present throws(AppError) in
            try fields.draft(from: present)
        }
        return entry(posting, viewer: caller.user)
    }

    @Sendable func delete(_ request: HTTPRequest) async throws -> HTTPResponse {
        let caller = try signIn.caller(of: request)
        let posting = try await parts.postings.delete(try request.id(as: JobPosting.self), editor: caller.user)
        return entry(posting, viewer: caller.user)
    }

    /// With the description made safe off the loop: hostile HTML may take its time.
    private func fields(of request: HTTPRequest) async throws -> PostingFields {
        let fields = try await request.fields()
        guard let text = try fields.string("description") else { return PostingFields(fields, safeDescription: nil) }
        let safe = try await rewriting.run { try PostingFields.safe(text) }
        return PostingFields(fields, safeDescription: safe)
    }

    /// In both shapes at once: Strapi's envelope, and the entry at top level that the stock client reads after PUT and
    /// DELETE; with company and logo, which it wants there too.
    private func entry(_ posting: JobPosting, viewer: User.ID) -> HTTPResponse {
        let writer = EntryWriter(links: links, now: parts.clock.now(), viewer: viewer)
        let entry = Entry.stock(posting)
        return .json(capacity: 8192) { json in
            json.object { json in
                json.object("data") { writer.writeEnveloped(entry, nil, to: &$0) }
                json.object("meta") { _ in }
                writer.writeEnveloped(entry, nil, to: &json)
            }
        }
    }
}

/// A posting's fields from a client: what is absent stays as it is.
struct PostingFields: Sendable {
    /// As sent; rewritten HTML may have `JobPosting.Draft.description` at most.
    private static let description = TextField("description", max: 200_000, multiline: true)

    private let fields: Fields
    private let safeDescription: String?

    init(_ fields: Fields, safeDescription: String?) {
        self.fields = fields
        self.safeDescription = safeDescription
    }

    func draft(from present: JobPosting?) throws(AppError) -> JobPosting.Draft {
        let terms = present?.terms
        let title = if present == nil { try fields.required("name") } else { try fields.string("name") }
        return try JobPosting.Draft(
            title: title ?? present?.title ?? "",
            safeDescription: safeDescription ?? present?.description ?? "",
            terms: JobPosting.Terms(
                employmentType: fields.string("type") ?? terms?.employmentType ?? "",
                environment: fields.string("environment") ?? terms?.environment ?? "",
                place: fields.string("place") ?? terms?.place ?? "",
                coordinate: coordinate() ?? terms?.coordinate, salary: salary() ?? terms?.salary,
                skills: fields.strings("skills") ?? terms?.skills ?? [],
                applyURL: fields.string("apply_url") ?? terms?.applyURL ?? ""),
            state: state() ?? present?.state ?? .published,
            validThrough: fields.has("valid_through") ? fields.date("valid_through") : present?.validThrough)
    }

    /// Text with tags is HTML and is rewritten from the allow-list; other text is kept as it is.
    static func safe(_ text: String) throws(AppError) -> String {
        let accepted = try description.accept(text)
        guard accepted.contains(#/<[A-Za-z\/!]/#) else { return SafeHTML.fromPlainText(accepted) }
        do {
            return try SafeHTML.sanitise(accepted)
        } catch {
            throw .invalid("description", "description is too large or nested too deeply")
        }
    }

    private func coordinate() throws(AppError) -> Coordinate? {
        let latitude = try fields.float("lat")
        let longitude = try fields.float("lng")
        switch (latitude, longitude) {
        case (nil, nil): return nil
        case (let latitude?, let longitude?): return try Coordinate(latitude: latitude, longitude: longitude)
        default: throw .invalid("lat", "give lat and lng together")
        }
    }

    private func salary() throws(AppError) -> Salary? {
        guard let salary = try fields.object("salary") else { return nil }
        let period = try salary.choice("period", as: Salary.Period.self) ?? .year
        return try Salary(
            minimum: salary.int("min"), maximum: salary.int("max"), currency: salary.required("currency"),
            period: period)
    }

    private func state() throws(AppError) -> JobPosting.State? {
        switch try fields.string("status") {
        case nil: return nil
        case "available", "published": return .published
        case "draft": return .draft
        case "closed": return .closed
        default: throw fields.wrong("status", "must be one of available, draft, closed")
        }
    }
}
