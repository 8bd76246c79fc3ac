import Foundation

/// A posting as a source has it, ready to be stored: HTML is safe, terms are valid.
public struct ImportedPosting: Sendable {
    public let source: String
    public let externalID: String
    public let companyName: String
    public let draft: JobPosting.Draft
    public let publishedAt: Date
    /// SHA-256 of everything stored: unchanged rows are left alone.
    public let contentHash: [UInt8]

    public init(
        source: String, externalID: String, companyName: String, draft: JobPosting.Draft, publishedAt: Date,
        contentHash: [UInt8]
    ) {
        self.source = source
        self.externalID = externalID
        self.companyName = companyName
        self.draft = draft
        self.publishedAt = publishedAt
        self.contentHash = contentHash
    }
}

public struct ImportedCompany: Sendable {
    public let source: String
    public let externalID: String
    public let draft: Company.Draft
    public let contentHash: [UInt8]

    public init(source: String, externalID: String, draft: Company.Draft, contentHash: [UInt8]) {
        self.source = source
        self.externalID = externalID
        self.draft = draft
        self.contentHash = contentHash
    }
}

public struct ImportCounts: Sendable, Equatable {
    public var new = 0
    public var updated = 0
    public var unchanged = 0

    public init(new: Int = 0, updated: Int = 0, unchanged: Int = 0) {
        self.new = new
        self.updated = updated
        self.unchanged = unchanged
    }
}

public protocol ImportRepository: Sendable {
    /// One transaction: COPY into a staging table, merged by (source, external id), searchable afterwards; new postings
    /// put `match_alerts` items into the queue.
    func store(_ postings: [ImportedPosting]) async throws -> ImportCounts
    func store(_ companies: [ImportedCompany]) async throws -> ImportCounts
    /// Brings the facts up to date that searches are planned with. Once, at the end of an import.
    func finish() async throws
}
