import Foundation

public protocol ApplicationRepository: Sendable {
    /// Application, event, media row and the `process_upload` work item in one transaction.
    /// - Throws: `notFound` (no such posting or a draft), `gone` (closed or expired), `forbidden` (a member of the
    ///   posting's own company), `conflict` with the location of the first application. The caller then removes the
    ///   stored file.
    func create(posting: JobPosting.ID, applicant: User.ID, cv: Media.Draft, now: Date) async throws -> Application
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
