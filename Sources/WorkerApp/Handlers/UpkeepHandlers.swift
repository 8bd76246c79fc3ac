import Core
import Foundation
import ServiceKit

/// Deletes objects that nothing refers to any more.
public struct DeleteFiles: WorkHandler {
    private struct Payload: Decodable {
        let keys: [String]
    }

    public let kind = WorkItem.Kind.deleteFiles
    private let store: any WorkingStore

    public init(store: any WorkingStore) { self.store = store }

    public func run(_ item: WorkItem) async throws {
        let keys = try item.decode(Payload.self).keys
        try await store.patiently {
            for key in keys { try await store.delete(key) }
        }
    }
}

public struct RefreshSearchFacts: WorkHandler {
    public let kind = WorkItem.Kind.refreshSearchFacts
    private let upkeep: any UpkeepRepository

    public init(upkeep: any UpkeepRepository) { self.upkeep = upkeep }

    public func run(_ item: WorkItem) async throws { try await upkeep.refreshSearchFacts() }
}

public struct Prune: WorkHandler {
    public let kind = WorkItem.Kind.prune
    private let upkeep: any UpkeepRepository
    private let store: any WorkingStore
    private let clock: any ServiceClock
    private let log: Log

    public init(upkeep: any UpkeepRepository, store: any WorkingStore, clock: any ServiceClock, log: Log) {
        self.upkeep = upkeep
        self.store = store
        self.clock = clock
        self.log = log
    }

    public func run(_ item: WorkItem) async throws {
        let now = clock.now()
        for (table, rows) in try await upkeep.prune(now: now) where rows > 0 {
            log.info("pruned", ["table": .string(table), "rows": .int(Int64(rows))])
        }
        let files = try await store.sweep(now: now)
        if files > 0 { log.info("removed temporary files", ["files": .int(Int64(files))]) }
    }
}
