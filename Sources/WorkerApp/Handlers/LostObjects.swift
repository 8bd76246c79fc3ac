import Core
import ServiceKit

/// Looks for rows whose objects are not in the store: after a restore of one without the other, a deletion by hand, a
/// broken disk. They are told by the log and a metric, and a file whose own content is gone says so to its people,
/// until it is there again.
struct LostObjects {
    /// Parts of the store that rows name objects in.
    static let tops = ["up", "va"]
    static let pageMax = 1000
    /// Rows of one run. Beyond it the rest of its part waits for the next turn.
    static let lookedAtMax = 200_000
    /// Missing objects of one run that are told one by one.
    static let toldMax = 100
    /// From so many on, and when half of what was looked for is missing, it is rather the wrong store, or one that is
    /// being restored: no file is marked then.
    static let doubtfulMin = 20

    private struct Found {
        var lookedAt = 0
        var missing: [StoredKey] = []
        /// Files that were lost and are there again.
        var back: [Media.ID] = []
    }

    private let store: any WorkingStore
    private let media: any MediaRepository
    private let log: Log
    private let counter: Counter

    init(store: any WorkingStore, media: any MediaRepository, log: Log, metrics: Metrics) {
        self.store = store
        self.media = media
        self.log = log
        counter = metrics.counter(
            "martlet_media_objects_missing_total", "Objects that rows name and that the object store does not have.")
    }

    func look(in shards: [Int]) async throws {
        var found = Found()
        for shard in shards {
            for top in Self.tops where found.lookedAt < Self.lookedAtMax {
                try await look(in: "\(top)/\(ObjectShard.name(shard))/", &found)
            }
        }
        try await conclude(found)
    }

    private func look(in folder: String, _ found: inout Found) async throws {
        var last: String?
        while found.lookedAt < Self.lookedAtMax {
            let rows = try await media.stored(in: folder, after: last, max: Self.pageMax)
            let wanted = rows.filter { $0.standing != .deleted }
            found.lookedAt += rows.count
            if !wanted.isEmpty {
                let missing = Set(try await store.missing(of: wanted.map(\.key)))
                found.missing += wanted.filter { missing.contains($0.key) }
                found.back += wanted.filter { $0.standing == .lost && $0.isServed && !missing.contains($0.key) }
                    .map(\.media)
            }
            guard rows.count == Self.pageMax else { return }
            last = rows.last?.key
        }
    }

    private func conclude(_ found: Found) async throws {
        if !found.back.isEmpty {
            let back = try await media.markFound(found.back)
            for id in back { log.info("a lost file is there again", ["media": .int(id.value)]) }
        }
        guard !found.missing.isEmpty else { return }
        // A row may have gone, or got other content, between the two looks.
        let unknown = Set(try await media.unknown(keys: found.missing.map(\.key)))
        let missing = found.missing.filter { !unknown.contains($0.key) }
        guard !missing.isEmpty else { return }
        counter.add(missing.count)
        log.error("objects are not in the store", ["objects": .int(Int64(missing.count))])
        for each in missing.prefix(Self.toldMax) {
            log.error("an object is not in the store", ["media": .int(each.media.value), "key": .string(each.key)])
        }
        guard missing.count < Self.doubtfulMin || missing.count * 2 < found.lookedAt else {
            return log.error("most objects are not in the store: is MARTLET_STORE the right one?")
        }
        let lost = missing.filter { $0.isServed && $0.standing == .wanted }.map(\.media)
        if !lost.isEmpty { _ = try await media.markLost(lost) }
    }
}
