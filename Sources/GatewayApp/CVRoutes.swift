import Core
import CoreHTTP
import EventLoop
import Foundation
import HTTPServer
import JSON
import Resume
import SafeHTML

/// What a CV says, and what it has of a posting's terms.
struct CVRoutes: Sendable {
    let cvs: any CVRepository
    let signIn: SignIn
    /// Comparing a long CV takes a while.
    let comparing: OffloadPool

    func register(on router: inout Router) {
        router.on(.get, "/api/upload/files/:id/resume", resume)
        router.on(.get, "/api/jobs/:id/cv-analysis", beforeApplying)
        router.on(.get, "/api/applications/:id/cv-analysis", afterApplying)
    }

    /// Suggestions for forms. Nothing is written anywhere: what a person typed stays.
    @Sendable func resume(_ request: HTTPRequest) async throws -> HTTPResponse {
        let caller = try signIn.caller(of: request)
        let reading = try await cvs.reading(of: request.id(as: Media.self), viewer: caller.user)
        // A form of it that this version does not know is none: the next upload is read anew.
        let resume = reading.resume.flatMap { try? JSONDecoder().decode(Resume.self, from: Data($0.utf8)) }
        return .json(headers: Self.headers, capacity: 4096) { json in
            json.object { json in
                json.object("data") { json in
                    CVBody.writeState(of: reading, to: &json)
                    if let resume {
                        json.object("resume") { CVBody.write(resume, to: &$0) }
                    } else {
                        json.nullField("resume")
                    }
                }
                json.object("meta") { _ in }
            }
        }
    }

    /// With one's own CV, by its file's id in `cv`.
    @Sendable func beforeApplying(_ request: HTTPRequest) async throws -> HTTPResponse {
        let caller = try signIn.caller(of: request)
        let posting = try request.id(as: JobPosting.self)
        guard let text = try QueryItems(request.query)["cv"], let cv = Media.ID(text: text) else {
            throw AppError.invalid("cv", "cv is required: the id of your CV's file")
        }
        return try await answer(try await cvs.comparison(of: cv, with: posting, owner: caller.user))
    }

    @Sendable func afterApplying(_ request: HTTPRequest) async throws -> HTTPResponse {
        let caller = try signIn.caller(of: request)
        return try await answer(
            try await cvs.comparison(of: request.id(as: Application.self), viewer: caller.user))
    }

    private static let headers: HTTPHeaders = ["Cache-Control": "private, no-store"]

    private func answer(_ comparison: CVComparison) async throws -> HTTPResponse {
        let terms = try await comparing.run { CVTerms(comparison) }
        return .json(headers: Self.headers, capacity: 4096) { json in
            json.object { json in
                json.object("data") { json in
                    json.field("job", comparison.postingID.value)
                    json.field("cv", comparison.cv.id.value)
                    CVBody.writeState(of: comparison.cv, to: &json)
                    if let results = terms.results {
                        json.array("terms", results) { json, result in
                            json.object { CVBody.write(result, isRequired: terms.isRequired(result), to: &$0) }
                        }
                    } else {
                        json.nullField("terms")
                    }
                }
                json.object("meta") { _ in }
            }
        }
    }
}

/// A posting's terms and where a CV has them: the skills it asks for, then those that only its text names.
struct CVTerms: Sendable {
    /// Nil when there is no text to look in.
    let results: [TermFinder.Result]?
    private let required: Set<String>

    init(_ comparison: CVComparison) {
        required = Set(comparison.skills)
        guard let text = comparison.text else {
            results = nil
            return
        }
        let named = TermFinder.skills(in: comparison.title + "\n" + SafeHTML.text(ofSafe: comparison.description))
        results = TermFinder(comparison.skills + named).find(in: text, pageOffsets: comparison.pageOffsets)
    }

    func isRequired(_ result: TermFinder.Result) -> Bool { required.contains(result.term) }
}
