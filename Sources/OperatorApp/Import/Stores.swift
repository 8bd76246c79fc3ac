import Core

/// Records that are stored together.
struct Batch: Sendable {
    private(set) var postings: [Importer.Entry<ImportedPosting>] = []
    private(set) var companies: [Importer.Entry<ImportedCompany>] = []
    private var bytes = 0

    var isEmpty: Bool { postings.isEmpty && companies.isEmpty }
    var isFull: Bool {
        postings.count + companies.count >= Importer.batchRecordsMax || bytes >= Importer.batchBytesMax
    }

    mutating func add(_ mapped: Importer.Mapped, _ record: RecordReader.Record) {
        bytes += record.bytes.count
        switch mapped {
        case .posting(let posting):
            postings.append(Importer.Entry(value: posting, line: record.line, index: record.index))
        case .company(let company):
            companies.append(Importer.Entry(value: company, line: record.line, index: record.index))
        }
    }
}

/// Batches on their way into the database, `Importer.storesMax` at most.
struct Stores {
    private let repository: (any ImportRepository)?
    private var running: [Task<BatchOutcome, any Error>] = []

    init(repository: (any ImportRepository)?) { self.repository = repository }

    /// Starts storing the batch. Waits for the oldest when there are too many, and gives what became of it.
    mutating func add(_ batch: Batch) async throws -> BatchOutcome? {
        let repository = repository
        running.append(
            Task {
                var outcome = BatchOutcome()
                guard let repository else {
                    outcome.counts.new = batch.postings.count + batch.companies.count
                    return outcome
                }
                try await Self.store(batch.postings[...], into: &outcome) { try await repository.store($0) }
                try await Self.store(batch.companies[...], into: &outcome) { try await repository.store($0) }
                return outcome
            })
        guard running.count >= Importer.storesMax else { return nil }
        return try await running.removeFirst().value
    }

    /// What became of all that is left. The first failure is thrown when all have ended.
    mutating func drain() async throws -> [BatchOutcome] {
        var outcomes: [BatchOutcome] = []
        var failure: (any Error)?
        for task in running {
            do { outcomes.append(try await task.value) } catch { failure = failure ?? error }
        }
        running = []
        if let failure { throw failure }
        return outcomes
    }

    /// When the database refuses a batch for what is in it, halves are tried until the records at fault stand alone.
    private static func store<Value: Sendable>(
        _ entries: ArraySlice<Importer.Entry<Value>>, into outcome: inout BatchOutcome,
        by store: (_ values: [Value]) async throws -> ImportCounts
    ) async throws {
        guard let first = entries.first else { return }
        do {
            let counts = try await store(entries.map(\.value))
            outcome.counts.new += counts.new
            outcome.counts.updated += counts.updated
            outcome.counts.unchanged += counts.unchanged
        } catch let error as AppError where error.code != .unavailable {
            guard entries.count > 1 else {
                outcome.refusals.append(Refusal(line: first.line, index: first.index, reason: error.message))
                return
            }
            let middle = entries.startIndex + entries.count / 2
            try await Self.store(entries[..<middle], into: &outcome, by: store)
            try await Self.store(entries[middle...], into: &outcome, by: store)
        }
    }
}
