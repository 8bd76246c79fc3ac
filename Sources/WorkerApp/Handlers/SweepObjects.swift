import Core
import Foundation
import ServiceKit

/// Keeps rows and objects together: deletes objects that no row names, those of uploads that broke off and of deletions
/// that were forgotten, and looks for rows whose objects are gone (`LostObjects`). Each run looks at a part of the
/// store, and 32 runs at all of it.
public struct SweepObjects: WorkHandler {
    public static let everySeconds = 3600
    /// A file has its row seconds after it is whole. What is younger may still get one.
    public static let ageSecondsMin: TimeInterval = 24 * 3600
    static let shardsPerRun = 16
    /// Names asked about in one statement.
    static let pageMax = 1000
    /// Of one run. A store has to have three million files before a run does not get through its part; another run
    /// begins elsewhere in it.
    static let lookedAtMax = 200_000
    static let deletedMax = 10_000

    public let kind = WorkItem.Kind.sweepObjects
    private let store: any WorkingStore
    private let media: any MediaRepository
    private let clock: any ServiceClock
    private let log: Log
    private let lost: LostObjects

    public init(
        store: any WorkingStore, media: any MediaRepository, clock: any ServiceClock, log: Log, metrics: Metrics
    ) {
        lost = LostObjects(store: store, media: media, log: log, metrics: metrics)
        self.store = store
        self.media = media
        self.clock = clock
        self.log = log
    }

    public func run(_ item: WorkItem) async throws {
        let now = clock.now()
        var (lookedAt, deleted) = (0, 0)
        for shard in Self.shards(at: now) where lookedAt < Self.lookedAtMax && deleted < Self.deletedMax {
            try await store.oldKeys(shard: shard, before: now - Self.ageSecondsMin, pageMax: Self.pageMax) { keys in
                lookedAt += keys.count
                for key in try await media.unknown(keys: keys) where deleted < Self.deletedMax {
                    try await store.delete(key)
                    deleted += 1
                }
                return lookedAt < Self.lookedAtMax && deleted < Self.deletedMax
            }
        }
        if deleted > 0 { log.info("deleted objects without a row", ["objects": .int(Int64(deleted))]) }
        try await lost.look(in: Self.shards(at: now))
    }

    /// One further each time than the run before has ended, so that it is not always the same ones that come last.
    static func shards(at now: Date) -> [Int] {
        let turn = Int(now.timeIntervalSince1970) / everySeconds
        return (0..<shardsPerRun).map { (turn * (shardsPerRun + 1) + $0) % ObjectShard.count }
    }
}
