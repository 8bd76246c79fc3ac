import Core
import Foundation
import MediaTools
import ServiceKit
import Synchronization
import Transfer

/// What a worker counts of its items. Made once, so that nothing is looked for while items run.
struct WorkMetrics: Sendable {
    enum Outcome: String, CaseIterable { case done, retried, postponed, dead, lost }

    private struct OfKind: Sendable {
        let attempts: Counter
        let seconds: Histogram
        let outcomes: [Outcome: Counter]
    }

    /// A kind that this version does not know.
    private static let otherKind = "other"

    private let kinds: [String: OfKind]

    init(_ metrics: Metrics) {
        let names = WorkItem.Kind.allCases.map(\.rawValue) + [Self.otherKind]
        kinds = Dictionary(
            uniqueKeysWithValues: names.map { kind in
                let outcomes = Outcome.allCases.map { outcome in
                    (
                        outcome,
                        metrics.counter(
                            "martlet_work_items_total", "Attempts at work items by how they ended.",
                            labels: ["kind": kind, "outcome": outcome.rawValue])
                    )
                }
                return (
                    kind,
                    OfKind(
                        attempts: metrics.counter(
                            "martlet_work_attempts_total", "Work items begun.", labels: ["kind": kind]),
                        seconds: metrics.histogram(
                            "martlet_work_item_seconds", "How long an attempt at a work item took.",
                            labels: ["kind": kind], bounds: Histogram.longSeconds),
                        outcomes: Dictionary(uniqueKeysWithValues: outcomes))
                )
            })
    }

    private func of(_ item: WorkItem) -> OfKind? { kinds[item.kind] ?? kinds[Self.otherKind] }

    func began(_ item: WorkItem) { of(item)?.attempts.add() }

    func took(_ item: WorkItem, seconds: Double) { of(item)?.seconds.record(seconds) }

    func ended(_ item: WorkItem, _ outcome: Outcome) { of(item)?.outcomes[outcome]?.add() }
}

/// How much work there is, as the database has it: every worker tells the same.
final class BacklogMetrics: Sendable {
    /// What is known is told again for so long: two who ask cost one statement.
    static let keptSeconds = 10.0
    /// Then the rest is told without this: it is most of all when the database is away that somebody looks.
    static let waitSecondsMax = 2.0

    private struct Known {
        let at: Date
        let parts: [WorkBacklog]
    }

    private let queue: any WorkQueue
    private let clock: any ServiceClock
    private let log: Log
    private let known = Mutex<Known?>(nil)
    private let isAsking = Atomic(false)

    init(queue: any WorkQueue, clock: any ServiceClock, log: Log) {
        self.queue = queue
        self.clock = clock
        self.log = log
    }

    /// Empty when the database does not answer: what was true a while ago would look like what is true.
    func families() async -> [MetricFamily] {
        let now = clock.now()
        if let known = known.withLock({ $0 }), now.timeIntervalSince(known.at) < Self.keptSeconds {
            return Self.families(known.parts)
        }
        guard let parts = await read() else { return [] }
        known.withLock { $0 = Known(at: now, parts: parts) }
        return Self.families(parts)
    }

    /// Nil when there is no answer in time. A query that a silent database keeps cannot be called back: it is left to
    /// its own end, and nobody asks again before.
    private func read() async -> [WorkBacklog]? {
        guard !isAsking.exchange(true, ordering: .acquiringAndReleasing) else { return nil }
        let answer = FirstAnswer()
        let asking = Task { [self] in
            do { answer.give(try await queue.backlog()) } catch {
                log.debug("the backlog is not known", ["error": .string("\(error)")])
                answer.give(nil)
            }
            isAsking.store(false, ordering: .releasing)
        }
        let waiting = Task { [clock] in
            do { try await clock.sleep(seconds: Self.waitSecondsMax) } catch { return }
            asking.cancel()
            answer.give(nil)
        }
        let parts = await answer.value()
        waiting.cancel()
        return parts
    }

    private static func families(_ parts: [WorkBacklog]) -> [MetricFamily] {
        let bound = WorkBacklog.countedMax
        var items = MetricFamily(
            "martlet_work_items", "Work items by kind and state, as far as \(bound) of each are counted.", .gauge)
        var oldest = MetricFamily(
            "martlet_work_oldest_ready_seconds", "How long the oldest item that is ready has been due.", .gauge)
        for kind in WorkItem.Kind.allCases {
            let own = parts.filter { $0.kind == kind.rawValue }
            for state in WorkBacklog.State.allCases {
                let count = own.first { $0.state == state }?.count ?? 0
                items.add(count, ["kind": kind.rawValue, "state": state.rawValue])
            }
            oldest.add(own.first { $0.state == .ready }?.oldestSeconds ?? 0, ["kind": kind.rawValue])
        }
        return [items, oldest]
    }
}

/// What comes first of an answer and the end of the time for it; the rest is of no interest.
private final class FirstAnswer: Sendable {
    private enum State {
        case open
        case waiting(CheckedContinuation<[WorkBacklog]?, Never>)
        case given([WorkBacklog]?)
    }

    private let state = Mutex(State.open)

    func give(_ parts: [WorkBacklog]?) {
        let waiter: CheckedContinuation<[WorkBacklog]?, Never>? = state.withLock { state in
            switch state {
            case .open:
                state = .given(parts)
                return nil
            case .waiting(let waiter):
                state = .given(parts)
                return waiter
            case .given: return nil
            }
        }
        waiter?.resume(returning: parts)
    }

    /// Once.
    func value() async -> [WorkBacklog]? {
        await withCheckedContinuation { continuation in
            let given: [WorkBacklog]?? = state.withLock { state in
                if case .given(let parts) = state { return .some(parts) }
                state = .waiting(continuation)
                return nil
            }
            if let given { continuation.resume(returning: given) }
        }
    }
}

/// Counts around what handlers are given: they know nothing of it.
enum Measured {
    /// Files that children look at.
    static func media(
        _ metrics: Metrics, clock: any ServiceClock,
        _ process: @escaping @Sendable (MediaRequest) async throws -> MediaAnswer
    ) -> @Sendable (MediaRequest) async throws -> MediaAnswer {
        let kinds: [MediaRequest.Kind] = [.image, .cv, .any]
        // All of them from the beginning, so that the first crash is a step and not a beginning.
        let outcomes = ["image", "document", "failed", "error"] + Rejection.allCases.map(\.rawValue)
        var runs: [String: Counter] = [:]
        var seconds: [MediaRequest.Kind: Histogram] = [:]
        for kind in kinds {
            for outcome in outcomes {
                runs["\(kind.rawValue) \(outcome)"] = metrics.counter(
                    "martlet_media_runs_total",
                    "Files that a child has looked at, by what was wanted and what became of it.",
                    labels: ["kind": kind.rawValue, "outcome": outcome])
            }
            seconds[kind] = metrics.histogram(
                "martlet_media_run_seconds", "From a file's turn to the child's answer, waiting included.",
                labels: ["kind": kind.rawValue], bounds: Histogram.longSeconds)
        }
        let (counters, histograms) = (runs, seconds)
        return { request in
            let began = clock.now()
            func note(_ outcome: String) {
                counters["\(request.kind.rawValue) \(outcome)"]?.add()
                histograms[request.kind]?.record(clock.now().timeIntervalSince(began))
            }
            do {
                let answer = try await process(request)
                note(outcome(of: answer))
                return answer
            } catch {
                note("error")
                throw error
            }
        }
    }

    private static func outcome(of answer: MediaAnswer) -> String {
        switch answer {
        case .image: "image"
        case .document: "document"
        case .rejected(let rejection): rejection.rawValue
        case .failed: "failed"
        }
    }

    typealias Send = @Sendable (_ from: String, _ to: String, _ message: [UInt8]) async throws -> Void

    /// Mails by what the server said.
    static func mail(_ metrics: Metrics, kind: String, clock: any ServiceClock, _ send: @escaping Send) -> Send {
        func counter(_ outcome: String) -> Counter {
            metrics.counter(
                "martlet_mails_total", "Mails by what the mail server said.",
                labels: ["kind": kind, "outcome": outcome])
        }
        let (sent, refused, later) = (counter("sent"), counter("refused"), counter("later"))
        let seconds = metrics.histogram(
            "martlet_mail_seconds", "How long the mail server took.", labels: ["kind": kind],
            bounds: Histogram.longSeconds)
        return { from, to, message in
            let began = clock.now()
            defer { seconds.record(clock.now().timeIntervalSince(began)) }
            do {
                try await send(from, to, message)
                sent.add()
            } catch let error as SMTPError {
                switch error {
                case .temporary, .recipientDeferred: later.add()
                case .refused, .recipientRefused, .malformed: refused.add()
                }
                throw error
            } catch {
                later.add()
                throw error
            }
        }
    }
}
