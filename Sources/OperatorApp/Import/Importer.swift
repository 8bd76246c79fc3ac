import Core
import Foundation
import JSON

/// What became of one file.
struct FileReport: Equatable {
    /// Refusals that are told one by one; the others are counted.
    static let refusalsToldMax = 100

    let path: String
    var format: SourceFormat?
    var counts = ImportCounts()
    /// Records whose key an earlier record of this import had.
    var repeated = 0
    /// Stored, but closed since: not found by search.
    var expired = 0
    var refused = 0
    var refusals: [Refusal] = []
    /// It ends too early, or is no JSON.
    var isBroken = false
    var isSkipped = false

    var records: Int { counts.new + counts.updated + counts.unchanged + repeated + refused }

    init(path: String) { self.path = path }

    mutating func refuse(_ refusal: Refusal) {
        refused += 1
        if refusals.count < Self.refusalsToldMax { refusals.append(refusal) }
    }

    mutating func add(_ outcome: BatchOutcome) {
        counts.new += outcome.counts.new
        counts.updated += outcome.counts.updated
        counts.unchanged += outcome.counts.unchanged
        for refusal in outcome.refusals { refuse(refusal) }
    }
}

struct BatchOutcome: Sendable {
    var counts = ImportCounts()
    var refusals: [Refusal] = []
}

/// Reads files and stores what they hold, in batches, several at a time. The batches bound the memory, not the files.
struct Importer {
    /// Large enough that a transaction's costs do not count, small enough that other writers hardly wait.
    static let batchRecordsMax = 1000
    static let batchBytesMax = 4 * 1024 * 1024
    /// Batches being stored at once: the database has work for two cores while the next is read.
    static let storesMax = 3

    struct Entry<Value: Sendable>: Sendable {
        let value: Value
        let line: Int
        let index: Int
    }

    enum Mapped: Sendable {
        case posting(ImportedPosting)
        case company(ImportedCompany)
    }

    let context: MappingContext
    let forcedFormat: SourceFormat?
    /// nil: everything is read and judged, nothing is stored.
    let repository: (any ImportRepository)?
    let progress: @Sendable (_ records: Int) -> Void

    private var seen: Set<Int> = []
    private var total = 0

    init(
        context: MappingContext, forcedFormat: SourceFormat?, repository: (any ImportRepository)?,
        progress: @escaping @Sendable (_ records: Int) -> Void
    ) {
        self.context = context
        self.forcedFormat = forcedFormat
        self.repository = repository
        self.progress = progress
    }

    mutating func run(path: String) async throws -> FileReport {
        let reader = try RecordReader(path: path)
        var report = FileReport(path: path)
        report.format = forcedFormat
        var stores = Stores(repository: repository)
        do {
            try await read(reader, into: &report, stores: &stores)
        } catch {
            // What is under way is finished, so that the database is left as the counts say.
            _ = try? await stores.drain()
            throw error
        }
        for outcome in try await stores.drain() { report.add(outcome) }
        report.isBroken = reader.isBroken
        return report
    }

    private mutating func read(
        _ reader: RecordReader, into report: inout FileReport, stores: inout Stores
    ) async throws {
        var batch = Batch()
        while let item = try reader.next() {
            try Task.checkCancellation()
            total += 1
            progress(total)
            switch item {
            case .refused(let refusal): report.refuse(refusal)
            case .record(let record):
                do {
                    guard let mapped = try map(record, &report) else {
                        report.isSkipped = true
                        return
                    }
                    take(mapped, record, &batch, &report)
                } catch {
                    report.refuse(Refusal(line: record.line, index: record.index, reason: Self.reason(error)))
                }
            }
            if batch.isFull {
                if let outcome = try await stores.add(batch) { report.add(outcome) }
                batch = Batch()
            }
        }
        if !batch.isEmpty, let outcome = try await stores.add(batch) { report.add(outcome) }
    }

    private mutating func take(
        _ mapped: Mapped, _ record: RecordReader.Record, _ batch: inout Batch, _ report: inout FileReport
    ) {
        var hasher = Hasher()
        switch mapped {
        case .posting(let posting):
            hasher.combine(posting.source)
            hasher.combine(posting.externalID)
        case .company(let company):
            hasher.combine(company.source)
            hasher.combine(company.externalID)
        }
        // The first of several wins, so that a second import finds what the first has stored.
        guard seen.insert(hasher.finalize()).inserted else {
            report.repeated += 1
            return
        }
        if case .posting(let posting) = mapped, let end = posting.draft.validThrough, end <= context.now {
            report.expired += 1
        }
        batch.add(mapped, record)
    }

    /// - Returns: nil when the format of the file is not known.
    private func map(_ record: RecordReader.Record, _ report: inout FileReport) throws -> Mapped? {
        guard case .object(let object) = try OrderedJSON.parse(record.bytes) else {
            throw RecordFields.Mistake("the record is not an object")
        }
        if report.format == nil { report.format = SourceFormat.recognise(object) }
        guard let format = report.format else { return nil }
        let fields = RecordFields(object: object)
        let posting: SourcePosting
        switch format {
        case .usajobs: posting = try USAJobs.posting(fields)
        case .githubJobs: posting = try GitHubJobs.posting(fields)
        case .greenhouse: posting = try Greenhouse.posting(fields, company: context.company)
        case .lever: posting = try Lever.posting(fields, company: context.company)
        case .mixed: posting = try MixedBoards.posting(fields)
        case .companies: return .company(try RemoteCompanies.company(fields))
        }
        return .posting(try posting.accept(context))
    }

    static func reason(_ error: any Error) -> String {
        switch error {
        case let error as JSONFault: "not JSON: \(error.reason) (byte \(error.offset + 1) of the record)"
        case let error as RecordFields.Mistake: error.reason
        case let error as AppError: error.message
        default: "\(error)"
        }
    }
}
