import Foundation

public protocol CompanyRepository: Sendable {
    /// Creates the representative's company or rewrites it: a person has one. A nil logo leaves the logo as it is; a
    /// new one replaces the former, whose files are deleted (by a `delete_files` item).
    /// - Throws: `forbidden` for a member who is not the company's representative.
    func save(_ draft: Company.Draft, logo: Media.Draft?, representative: User.ID) async throws -> Company
    /// The company that the user is a member of.
    func own(of user: User.ID) async throws -> Company?
}

public protocol PostingRepository: Sendable {
    /// The author must be a member of a company, and the posting is that company's. A published one puts `match_alerts`
    /// into the queue in the same transaction.
    /// - Throws: `forbidden` when the author has no company.
    func create(_ draft: JobPosting.Draft, author: User.ID) async throws -> JobPosting
    /// `edit` gives the new draft from the present one, inside the transaction, on the row as it is locked.
    /// - Throws: `notFound` when the editor is no member of the posting's company; what `edit` throws.
    func update(
        _ id: JobPosting.ID, editor: User.ID,
        _ edit: @escaping @Sendable (JobPosting) throws(AppError) -> JobPosting.Draft
    ) async throws -> JobPosting
    /// Its applications go with it, and their CVs (by `delete_files` items). Returns what was deleted.
    /// - Throws: `notFound` likewise.
    func delete(_ id: JobPosting.ID, editor: User.ID) async throws -> JobPosting
    /// The postings of the user's company with their applications, newest id first (at most `JobPosting.mineMax`, with
    /// `JobPosting.mineApplicationsMax` applications in all); empty without a company.
    func mine(of user: User.ID) async throws -> [PostingWithApplications]
}

public struct PostingWithApplications: Sendable {
    public let posting: JobPosting
    public let applications: [(application: Application, applicant: User)]

    public init(posting: JobPosting, applications: [(application: Application, applicant: User)]) {
        self.posting = posting
        self.applications = applications
    }
}

public protocol PostingSearchRepository: Sendable {
    /// Open postings only, ranked within windows of time, the newest window first (docs/decisions).
    /// - Throws: `invalid` when `q` has only stop words or only negations.
    func search(
        _ search: PostingSearch, after: PostingSearch.Cursor?, limit: Int, now: Date
    ) async throws -> PostingSearch.Page
    func facets(_ search: PostingSearch, now: Date) async throws -> [PostingSearch.Facet]
    /// Known words like one that no posting has.
    func suggestions(for word: String) async throws -> [String]
}
