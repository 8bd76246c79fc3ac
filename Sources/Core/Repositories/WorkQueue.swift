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
        /// `{"mail_id": 1}`: a row of `account_mails`, likewise
        case sendAccountMail = "send_account_mail"
        /// `{"cadence": "daily"}`: collects what is due and writes mails
        case sendDigests = "send_digests"
        /// `{"keys": ["…"]}` of the object store
        case deleteFiles = "delete_files"
        /// `{}`: deletes objects of the store that no row names
        case sweepObjects = "sweep_objects"
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
    /// How often it was put off because something it needs was away.
    public let postponed: Int
    /// Of what caused it (W3C Trace Context); nil where that was not traced.
    public let traceparent: String?

    public init(
        id: ID, fence: Int64, kind: String, payload: String, attempt: Int, postponed: Int = 0,
        traceparent: String? = nil
    ) {
        self.id = id
        self.fence = fence
        self.kind = kind
        self.payload = payload
        self.attempt = attempt
        self.postponed = postponed
        self.traceparent = traceparent
    }
}

/// A position in the queue's order. A worker keeps one (docs/decisions: a cursor per worker).
public struct WorkPosition: Sendable, Equatable, Comparable {
    /// Behind every item.
    public static let end = WorkPosition(tx: .max, id: 0)

    public var tx: UInt64
    public var id: Int64

    public init(tx: UInt64 = 0, id: Int64 = 0) {
        self.tx = tx
        self.id = id
    }

    public static func < (left: WorkPosition, right: WorkPosition) -> Bool {
        (left.tx, left.id) < (right.tx, right.id)
    }
}

/// What one look for lost leases did and saw.
public struct WorkRescue: Sendable, Equatable {
    /// Items that are ready again, and those that are dead letters now.
    public let ready: Int
    public let buried: Int
    /// No item is at this position or before it, waiting ones aside, and none will come to be there: what is put in,
    /// and what becomes ready, gets the position of its own transaction.
    public let floor: WorkPosition
    /// The server and the table that the floor is of. Positions of another one have nothing to do with it.
    public let era: String

    public init(ready: Int, buried: Int, floor: WorkPosition, era: String) {
        self.ready = ready
        self.buried = buried
        self.floor = floor
        self.era = era
    }
}

/// A batch of items that one claim got. They share their fence.
public struct WorkClaim: Sendable {
    public let items: [WorkItem]
    /// The position of the last item claimed; the one asked for when there was none.
    public let last: WorkPosition

    public init(items: [WorkItem], last: WorkPosition) {
        self.items = items
        self.last = last
    }
}

public protocol WorkQueue: Sendable {
    /// An item with a unique key is there once: see `Enqueue.item` in CorePostgres for what a second one does.
    func enqueue(_ kind: WorkItem.Kind, payload: String, uniqueKey: String?, runAt: Date?) async throws
    /// Every item that cannot be seen yet will have at least this transaction. Read it before a scan from low down.
    func bound() async throws -> UInt64
    /// Leases ready items of the kinds for `WorkItem.leaseSeconds`, in order, each to one worker.
    func claim(
        worker: String, kinds: [WorkItem.Kind], limit: Int, after: WorkPosition
    ) async throws -> WorkClaim
    /// The ids that were still ours; the others belong to somebody else or are cancelled.
    func renew(_ ids: [WorkItem.ID], fence: Int64) async throws -> [WorkItem.ID]
    /// The ids that were still ours.
    func complete(_ ids: [WorkItem.ID], fence: Int64) async throws -> [WorkItem.ID]
    /// Hands items back unfinished; the attempt does not count.
    func release(_ ids: [WorkItem.ID], fence: Int64) async throws
    /// Back into the queue after a delay, or to the dead letters when `final` or out of attempts.
    func fail(_ item: WorkItem, error: String, retryAfterSeconds: Double, final: Bool) async throws
    /// Back into the queue after a delay, because something it needs is away: the attempt does not count, so it never
    /// gets to the dead letters by waiting.
    func postpone(_ item: WorkItem, reason: String, afterSeconds: Double) async throws
    /// Makes waiting items ready whose time has come. Returns how many moved.
    func promote() async throws -> Int
    /// Makes items ready again whose lease ran out, and takes those to the dead letters whose lease ran out on their
    /// last attempt: they kill their workers. Looks behind the first position, the `WorkRescue.floor` of the last
    /// look, up to the second, so that a backlog that nobody has claimed from is not read through.
    func rescue(after: WorkPosition, upTo: WorkPosition) async throws -> WorkRescue
    /// Puts a scheduled item in when its time has come, once over all workers; returns whether it did.
    func fireSchedule(_ name: String, kind: WorkItem.Kind, payload: String, at due: Date) async throws -> Bool
    func depth() async throws -> [WorkDepth]
    /// A claim begins nothing of a paused kind and passes its items by: whoever keeps a position goes back to the
    /// beginning when this has changed.
    func pauseState() async throws -> WorkPauseState
    /// As `depth`, for those who look often: bounded, see `WorkBacklog.countedMax`.
    func backlog() async throws -> [WorkBacklog]
}

/// What an operator does with the queue.
public protocol WorkQueueOperations: Sendable {
    /// An item whose lease has run out counts as ready: nobody runs it.
    func depth() async throws -> [WorkDepth]
    /// Items of one state, or of all but the dead, by id; dead ones the newest first.
    /// - Parameter after: the last id of the page before.
    func items(_ filter: WorkFilter, after: WorkItem.ID?, limit: Int) async throws -> [QueuedItem]
    /// Those of them that there are, dead or alive, by id.
    func items(_ ids: [WorkItem.ID]) async throws -> [QueuedItem]
    /// No worker begins an item of the kinds from the moment this returns; what runs goes on.
    /// - Parameter seconds: the pause ends by itself unless it is asked for again within this time; nil: never.
    func pause(_ kinds: [WorkItem.Kind], holder: WorkPause.Holder, seconds: Double?) async throws
    /// Returns the kinds whose pause by this holder this ends.
    func resume(_ kinds: [WorkItem.Kind], holder: WorkPause.Holder) async throws -> [String]
    func pauses() async throws -> [WorkPause]
    /// As `pause`, for one program at a time: nil while another one's lasts, which nothing is changed of then.
    func hold(_ kinds: [WorkItem.Kind], holder: WorkPause.Holder, seconds: Double) async throws -> WorkHold?
    /// - Returns: false when it has run out or is somebody else's by now; it cannot be had back.
    func renew(_ hold: WorkHold, seconds: Double) async throws -> Bool
    /// Ends it, unless it is somebody else's.
    /// - Returns: whether it has lasted until now.
    func release(_ hold: WorkHold) async throws -> Bool
    /// Dead letters, the newest first.
    func dead(kind: WorkItem.Kind?, limit: Int, before: Date?) async throws -> [DeadWorkItem]
    /// Puts dead letters back into the queue with all their attempts. Returns how many there were.
    func retry(_ ids: [WorkItem.ID]) async throws -> Int
    /// As `retry`, for all of a kind.
    func retryAll(kind: WorkItem.Kind) async throws -> Int
    /// Takes an item out of the queue, whatever its state; also one that runs, whose worker learns of it at its next
    /// renewal. False when there is none.
    func cancel(_ id: WorkItem.ID) async throws -> Bool
}

/// An item that failed for good.
public struct DeadWorkItem: Sendable, Equatable {
    public let id: WorkItem.ID
    public let kind: String
    public let payload: String
    public let attempts: Int
    public let lastError: String
    public let diedAt: Date

    public init(id: WorkItem.ID, kind: String, payload: String, attempts: Int, lastError: String, diedAt: Date) {
        self.id = id
        self.kind = kind
        self.payload = payload
        self.attempts = attempts
        self.lastError = lastError
        self.diedAt = diedAt
    }
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

/// Which items of the queue.
public struct WorkFilter: Sendable, Equatable {
    public let kind: WorkItem.Kind?
    public let state: QueuedItem.State?

    public init(kind: WorkItem.Kind? = nil, state: QueuedItem.State? = nil) {
        self.kind = kind
        self.state = state
    }
}

/// An item as the operator sees it.
public struct QueuedItem: Sendable, Equatable {
    public enum State: String, Sendable, CaseIterable {
        case ready, running, waiting, dead
    }

    public let id: WorkItem.ID
    public let kind: String
    public let state: State
    public let attempts: Int
    /// When it came; of a dead one when it died; of one that waits when it will be ready.
    public let time: Date
    /// Who runs it, or ran it last; empty when nobody has.
    public let worker: String
    public let lastError: String
    /// JSON.
    public let payload: String

    public init(
        id: WorkItem.ID, kind: String, state: State, attempts: Int, time: Date, worker: String, lastError: String,
        payload: String
    ) {
        self.id = id
        self.kind = kind
        self.state = state
        self.attempts = attempts
        self.time = time
        self.worker = worker
        self.lastError = lastError
        self.payload = payload
    }
}

/// A kind that nobody begins.
public struct WorkPause: Sendable, Equatable {
    public enum Holder: String, Sendable {
        case `operator`, backup
    }

    public let kind: String
    public let holder: String
    public let since: Date
    /// Nil: until somebody says so.
    public let until: Date?

    public init(kind: String, holder: String, since: Date, until: Date?) {
        self.kind = kind
        self.holder = holder
        self.since = since
        self.until = until
    }
}

/// A pause that its program alone can prolong and end, as long as it lasts.
public struct WorkHold: Sendable, Equatable {
    public let holder: WorkPause.Holder
    public let kinds: [String]
    /// Of each kind the number that its pause was taken with; whoever takes it next has another one.
    public let numbers: [Int64]

    public init(holder: WorkPause.Holder, kinds: [String], numbers: [Int64]) {
        self.holder = holder
        self.kinds = kinds
        self.numbers = numbers
    }
}

/// Differs whenever a pause has begun or ended since the last look.
public struct WorkPauseState: Sendable, Equatable {
    public let changes: Int64
    /// Their number: a pause that has run out changes no row.
    public let pauses: Int64

    public init(changes: Int64, pauses: Int64) {
        self.changes = changes
        self.pauses = pauses
    }
}
