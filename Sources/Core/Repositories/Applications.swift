import Foundation

public protocol ApplicationRepository: Sendable {
    /// Application, event, media row and the `process_upload` work item in one transaction.
    /// - Throws: `notFound` (no such posting or a draft), `gone` (closed or expired), `forbidden` (a member of the
    ///   posting's own company), `conflict` with the location of the first application. The caller then removes the
    ///   stored file.
    func create(posting: JobPosting.ID, applicant: User.ID, cv: Media.Draft, now: Date) async throws -> Application
    /// Seen by the applicant and by members of the posting's company; `notFound` for others.
    func find(_ id: Application.ID, viewer: User.ID) async throws -> ApplicationDetail
    /// Newest id first, at most `Application.mineMax`.
    func mine(of applicant: User.ID) async throws -> [ApplicationDetail]
    /// A member of the company accepts or declines; the applicant withdraws. Accepting makes the room with both sides,
    /// its wire name and its first message ("Application accepted", from the system) in the same transaction, once:
    /// asking again for the status it has changes nothing.
    /// - Throws: `notFound` for strangers, `forbidden` for the wrong side (`Application.mayAsk`), `conflict` for a move
    ///   that its status does not allow (`Application.mayMove`).
    func move(_ id: Application.ID, to status: Application.Status, actor: User.ID) async throws -> ApplicationDetail
    func history(_ id: Application.ID, viewer: User.ID) async throws -> [Application.Event]
}

public struct ApplicationDetail: Sendable {
    public let application: Application
    public let posting: JobPosting
    public let applicant: User

    public init(application: Application, posting: JobPosting, applicant: User) {
        self.application = application
        self.posting = posting
        self.applicant = applicant
    }
}

public protocol MediaRepository: Sendable {
    /// Media row and the `process_upload` work item in one transaction; a profile picture becomes the user's, and the
    /// former one is deleted with its files (by a `delete_files` item).
    func create(_ draft: Media.Draft, owner: User.ID) async throws -> Media
    /// - Throws: `notFound`.
    func find(_ id: Media.ID) async throws -> Media
    /// By the hash of the original or of a variant, as public paths name it; nil when there is none.
    func find(hash: String) async throws -> Media?
    /// Whether the user may read it: a logo anyone; else the owner; a CV also members of the company applied to; an
    /// attachment members of a room that has it; a profile picture those who share a room with its owner, and members
    /// of companies the owner applied to.
    func mayRead(_ id: Media.ID, user: User.ID) async throws -> Bool
    /// What the child found. Writes nothing and returns false when the media is gone or not pending any more.
    func finish(_ id: Media.ID, _ result: MediaResult) async throws -> Bool
    /// Makes every capability URL given out for it worthless.
    /// - Throws: `notFound`, also for others' media.
    func revokeURLs(of id: Media.ID, owner: User.ID) async throws
}

public enum MediaResult: Sendable {
    case ready(
        mime: String, ext: String, width: Int?, height: Int?, pageCount: Int?, text: String?, pageOffsets: [Int],
        note: String?, variants: [Media.Variant])
    /// A CV's application stands and gets a `cv_rejected` event.
    case rejected(reason: String, message: String)
}
