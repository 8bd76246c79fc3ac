/// What CVs say, for those who may read them.
public protocol CVRepository: Sendable {
    /// - Throws: `notFound` for what is no CV, and for whoever may not read it: that may its owner and members of a
    ///   company it was sent to.
    func reading(of id: Media.ID, viewer: User.ID) async throws -> CVReading
    /// One's own CV beside a posting, before applying.
    /// - Throws: `notFound` for others' CVs, and for drafts of other companies.
    func comparison(of cv: Media.ID, with posting: JobPosting.ID, owner: User.ID) async throws -> CVComparison
    /// The CV of an application beside its posting, for the applicant and members of the posting's company.
    /// - Throws: `notFound`, also for strangers.
    func comparison(of application: Application.ID, viewer: User.ID) async throws -> CVComparison
}

public struct CVReading: Sendable, Equatable {
    public let id: Media.ID
    public let state: Media.State
    public let rejectionMessage: String?
    public let note: String?
    /// JSON of the Resume module; nil when nothing was read, or not yet.
    public let resume: String?

    public init(id: Media.ID, state: Media.State, rejectionMessage: String?, note: String?, resume: String?) {
        self.id = id
        self.state = state
        self.rejectionMessage = rejectionMessage
        self.note = note
        self.resume = resume
    }
}

/// What is needed to look for a posting's terms in a CV.
public struct CVComparison: Sendable, Equatable {
    /// Characters of a CV's text that are compared: a CV of a hundred pages.
    public static let textLengthMax = 512 * 1024

    public let cv: CVReading
    public let text: String?
    /// Where pages begin in the UTF-8 of the text.
    public let pageOffsets: [Int]
    public let postingID: JobPosting.ID
    public let title: String
    /// Safe HTML.
    public let description: String
    public let skills: [String]

    public init(
        cv: CVReading, text: String?, pageOffsets: [Int], postingID: JobPosting.ID, title: String, description: String,
        skills: [String]
    ) {
        self.cv = cv
        self.text = text
        self.pageOffsets = pageOffsets
        self.postingID = postingID
        self.title = title
        self.description = description
        self.skills = skills
    }
}
