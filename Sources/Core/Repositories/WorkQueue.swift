import Foundation

/// Background work, written in the transaction that causes it. Delivered at least once.
public struct WorkItem: Sendable, Equatable {
    public typealias ID = Identifier<WorkItem>

    /// The kinds there are. The payload is JSON of the ids it is about, never of data that could change.
    public enum Kind: String, Sendable, CaseIterable {
        /// `{"media_id": 1}`
        case processUpload = "process_upload"
        /// `{"posting_id": 1}` or `{"posting_ids": [1, 2]}`
        case matchAlerts = "match_alerts"
        /// `{"mail_id": 1}`: a row of `mails`, sent once by its Message-ID
        case sendMail = "send_mail"
        /// `{"cadence": "daily"}`: collects what is due and writes mails
        case sendDigests = "send_digests"
        /// `{"keys": ["…"]}` of the object store
        case deleteFiles = "delete_files"
        /// `{}`: facts that search plans with
        case refreshSearchFacts = "refresh_search_facts"
        /// `{}`: prunes what has had its time (room_changes, revocations, dead items)
        case prune
    }

    /// Retries before an item goes to the dead letters.
    public static let attemptsMax = 12
    public static let leaseSeconds = 60

    public let id: ID
    /// Whoever completes the item must name it: a worker that lost its lease completes nothing.
    public let fence: Int64
    public let kind: String
    /// JSON.
    public let payload: String
    public let attempt: Int

    public init(id: ID, fence: Int64, kind: String, payload: String, attempt: Int) {
        self.id = id
        self.fence = fence
        self.kind = kind
        self.payload = payload
        self.attempt = attempt
    }
}

/// A position in the queue's order. A worker keeps one (docs/decisions: a cursor per worker).
public struct WorkPosition: Sendable, Equatable {
    public var tx: UInt64
    public var id: Int64

    public init(tx: UInt64 = 0, id: Int64 = 0) {
        self.tx = tx
        self.id = id
    }
}

public protocol WorkQueue: Sendable {
    /// An item with a unique key that is still waiting is not put in twice.
    func enqueue(_ kind: WorkItem.Kind, payload: String, uniqueKey: String?, runAt: Date?) async throws
    /// The oldest transaction that may still bring items before a position.
    func bound() async throws -> UInt64
    func claim(worker: String, limit: Int, after: WorkPosition) async throws -> (items: [WorkItem], last: WorkPosition)
    /// The ids that were still ours.
    func renew(_ ids: [WorkItem.ID], fence: Int64) async throws -> [WorkItem.ID]
    func complete(_ ids: [WorkItem.ID], fence: Int64) async throws -> [WorkItem.ID]
    /// Back into the queue after a delay, or to the dead letters when `final` or out of attempts.
    func fail(_ item: WorkItem, error: String, retryAfterSeconds: Double, final: Bool) async throws
    /// Waiting items whose time has come; then items whose lease ran out; then dead letters. Returns how many moved.
    func promote() async throws -> Int
    func rescue(upTo: WorkPosition) async throws -> Int
    func bury() async throws -> Int
    /// Puts a scheduled item in when its time has come, once over all workers; returns whether it did.
    func fireSchedule(_ name: String, kind: WorkItem.Kind, payload: String, at due: Date) async throws -> Bool
    func depth() async throws -> [WorkDepth]
}

public struct WorkDepth: Sendable, Equatable {
    public let kind: String
    public let ready: Int64
    public let leased: Int64
    public let waiting: Int64
    public let dead: Int64
    public let oldestSeconds: Double

    public init(kind: String, ready: Int64, leased: Int64, waiting: Int64, dead: Int64, oldestSeconds: Double) {
        self.kind = kind
        self.ready = ready
        self.leased = leased
        self.waiting = waiting
        self.dead = dead
        self.oldestSeconds = oldestSeconds
    }
}
