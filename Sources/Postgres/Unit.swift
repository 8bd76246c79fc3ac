import Synchronization

/// One caller's stake in a queue, and whether it still wants an answer.
final class Ticket: Sendable {
    private let cancelled = Atomic<Bool>(false)

    var isCancelled: Bool { cancelled.load(ordering: .relaxed) }
    func cancel() { cancelled.store(true, ordering: .relaxed) }
}

/// Counts across threads.
final class Counter: Sendable {
    private let value = Atomic<Int>(0)

    func add(_ count: Int) { value.wrappingAdd(count, ordering: .relaxed) }
    var current: Int { value.load(ordering: .relaxed) }
}

/// What a unit's caller is told. On the loop's thread.
enum Outcome<Output> {
    /// One output for each statement.
    case done(first: Output, rest: [Output])
    case failed(any Error)
}

/// One or more statements that stand or fall together, and the caller waiting for them.
///
/// It is handed on a dozen times on its way, so all that does not change is behind one reference.
struct Unit<Output>: Sendable {
    /// What the caller is told when the connection ends under a unit that was sent.
    enum WhenLost: Sendable {
        /// A read: it is sent once more on another connection.
        case again
        /// A write with its own commit.
        case outcomeUnknown
        /// Part of a transaction that will not be committed any more.
        case connectionLost
    }

    private final class Core: Sendable {
        let ticket: Ticket?
        let first: SQL
        let rest: [SQL]
        let whenLost: WhenLost
        let finish: @Sendable (Outcome<Output>) -> Void

        init(
            ticket: Ticket?, first: SQL, rest: [SQL], whenLost: WhenLost,
            finish: @escaping @Sendable (Outcome<Output>) -> Void
        ) {
            self.ticket = ticket
            self.first = first
            self.rest = rest
            self.whenLost = whenLost
            self.finish = finish
        }
    }

    private let core: Core
    /// The loop's clock, in milliseconds, after which a unit that was not sent gives up.
    var deadline: UInt64 = .max
    /// It was sent before: it goes alone, unprepared, and not a third time.
    var isRetry = false
    /// By `EventLoop.nanoseconds`.
    var sentAt: UInt64 = 0

    /// - Parameters:
    ///   - ticket: nil when nobody can cancel it.
    ///   - finish: called exactly once.
    init(
        ticket: Ticket? = nil, _ first: SQL, rest: [SQL] = [], whenLost: WhenLost,
        finish: @escaping @Sendable (Outcome<Output>) -> Void
    ) {
        core = Core(ticket: ticket, first: first, rest: rest, whenLost: whenLost, finish: finish)
    }

    var isCancelled: Bool { core.ticket?.isCancelled ?? false }
    var whenLost: WhenLost { core.whenLost }
    var count: Int { 1 + core.rest.count }
    func statement(_ index: Int) -> SQL { index == 0 ? core.first : core.rest[index - 1] }
    func finish(_ outcome: Outcome<Output>) { core.finish(outcome) }
}
