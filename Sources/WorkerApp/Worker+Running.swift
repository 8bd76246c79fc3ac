import Core
import Foundation
import ServiceKit
import Tracing

extension Worker {
    /// Runs one item to its end and says so to the queue.
    func execute(_ item: WorkItem) async {
        let span = beginSpan(item)
        let began = seconds
        metrics.began(item)
        let result = await within(span) { await attempt(item) }
        switch result {
        case .success: span?.end()
        case .failure(let error): span?.end(error: Self.word(for: error))
        }
        metrics.took(item, seconds: seconds - began)
        // Somebody else has it by now, or nobody wants it: its end is theirs to tell.
        guard held[LeaseKey(item)]?.isLost == false else {
            metrics.ended(item, .lost)
            letGo(item)
            return
        }
        switch result {
        case .success:
            metrics.ended(item, .done)
            log.debug(
                "work done",
                ["kind": .string(item.kind), "item": .int(item.id.value), "seconds": .double(seconds - began)])
            held[LeaseKey(item)]?.isDone = true
            await flush()
        case .failure(let error):
            await within(span) { await fail(item, error) }
            letGo(item)
        }
    }

    private func attempt(_ item: WorkItem) async -> Result<Void, any Error> {
        do {
            guard let handler = handlers[item.kind] else {
                throw WorkFailure.permanent("this worker has no handler for \(item.kind)")
            }
            try await handler.run(item)
            return .success(())
        } catch {
            return .failure(error)
        }
    }

    // MARK: Traces

    /// Of the trace that caused the item, or of one of its own.
    private func beginSpan(_ item: WorkItem) -> Span? {
        tracer?.begin(
            "process \(item.kind)", .consumer, parent: item.traceparent.flatMap { TraceContext(traceparent: $0) },
            [
                SpanAttribute("messaging.system", "martlet"), SpanAttribute("messaging.operation.type", "process"),
                SpanAttribute("messaging.operation.name", "process"),
                SpanAttribute("messaging.destination.name", .string(item.kind)),
                SpanAttribute("messaging.message.id", .string("\(item.id.value)")),
                SpanAttribute("martlet.work.attempt", .int(item.attempt)),
            ])
    }

    /// Completions are written for many items together, so only what is about this one alone is done in here.
    private func within<T: Sendable>(_ span: Span?, _ body: () async -> T) async -> T {
        guard let span else { return await body() }
        return await TraceContext.$current.withValue(span.context) { await body() }
    }

    /// The error's own words may quote anything.
    private static func word(for error: any Error) -> String {
        switch error {
        case WorkFailure.permanent: "permanent"
        case WorkFailure.later: "later"
        case WorkFailure.waiting: "waiting"
        default: "\(type(of: error))"
        }
    }

    private func fail(_ item: WorkItem, _ error: any Error) async {
        if case WorkFailure.waiting(let reason) = error { return await postpone(item, reason) }
        let isFinal = if case WorkFailure.permanent = error { true } else { false }
        let isLast = isFinal || item.attempt >= WorkItem.attemptsMax
        let wait = settings.backOff.seconds(after: item.attempt, random: settings.random())
        metrics.ended(item, isLast ? .dead : .retried)
        log.warning(
            isLast ? "work failed for good" : "work failed",
            [
                "kind": .string(item.kind), "item": .int(item.id.value), "attempt": .int(Int64(item.attempt)),
                "retry_seconds": .double(isLast ? 0 : wait), "error": .string("\(error)"),
            ])
        do {
            try await queue.fail(item, error: "\(error)", retryAfterSeconds: wait, final: isFinal)
        } catch {
            // Its lease runs out, and it is run again.
            log.warning("could not record a failure", ["item": .int(item.id.value), "error": .string("\(error)")])
        }
    }

    /// Whoever knows that something is away has told so: here it would be told once an item and minute.
    private func postpone(_ item: WorkItem, _ reason: String) async {
        let wait = settings.waitingBackOff.seconds(after: item.postponed + 1, random: settings.random())
        metrics.ended(item, .postponed)
        log.debug(
            "work waits",
            [
                "kind": .string(item.kind), "item": .int(item.id.value), "retry_seconds": .double(wait),
                "reason": .string(reason),
            ])
        do {
            try await queue.postpone(item, reason: reason, afterSeconds: wait)
        } catch {
            // Its lease runs out, and it is run again.
            log.warning("could not put work off", ["item": .int(item.id.value), "error": .string("\(error)")])
        }
    }

    /// Writes completions. While one statement is on its way the next batch gathers.
    func flush() async {
        guard !isFlushing else { return }
        isFlushing = true
        defer { isFlushing = false }
        // Items of the same batch that are about to end go into the same statement.
        await Task.yield()
        while true {
            let done = held.values.filter { $0.isDone && !$0.isLost }.map(\.item)
            guard !done.isEmpty else { return }
            for (fence, items) in Dictionary(grouping: done, by: \.fence) {
                let batch = items.prefix(Self.completionsMax)
                do {
                    let kept = try await queue.complete(batch.map(\.id), fence: fence)
                    noteAnswer()
                    if kept.count < batch.count {
                        log.warning("lost leases of finished work", ["items": .int(Int64(batch.count - kept.count))])
                    }
                    for item in batch { letGo(item) }
                } catch {
                    log.warning("could not complete work", ["error": .string("\(error)")])
                    // The queue is away: again in a while, and the leases are renewed in the meantime. Who stops leaves
                    // the items to others, who find them done.
                    if isStopping { return }
                    do { try await clock.sleep(seconds: Self.errorPauseSeconds) } catch { return }
                }
            }
        }
    }

    /// Keeps leases as long as their items run, and ends the tasks of items that are not ours any more.
    func renewLeases() async {
        while !isStopping {
            do { try await clock.sleep(seconds: Self.renewSeconds) } catch { return }
            for (fence, items) in Dictionary(grouping: held.values.map(\.item), by: \.fence) {
                do {
                    let kept = Set(try await queue.renew(items.map(\.id), fence: fence))
                    noteAnswer()
                    for item in items where !kept.contains(item.id) { lose(item) }
                } catch {
                    log.warning("could not renew leases", ["error": .string("\(error)")])
                }
            }
        }
    }

    private func lose(_ item: WorkItem) {
        // Done ones may have been completed while the renewal was on its way.
        guard let state = held[LeaseKey(item)], !state.isDone else { return }
        log.warning("lost the lease of running work", ["kind": .string(item.kind), "item": .int(item.id.value)])
        held[LeaseKey(item)]?.isLost = true
        state.task.cancel()
    }

    /// Moves what nobody holds, and fires schedules.
    func keepUp() async {
        while !isStopping {
            do { try await clock.sleep(seconds: Self.promoteSeconds * (0.75 + settings.random() / 2)) } catch { return }
            do {
                var moved = try await queue.promote()
                if try await lookAtPauses() { moved += 1 }
                if try await fireSchedules() { moved += 1 }
                // Last, as it is what may take long: the others do not fail with it.
                if seconds >= nextRescue { moved += try await rescue() }
                noteAnswer()
                if moved > 0 { wakeLanes() }
            } catch {
                log.warning("could not keep the queue up", ["error": .string("\(error)")])
            }
        }
    }

    /// Returns how many items are ready again.
    private func rescue() async throws -> Int {
        let began = seconds
        defer {
            nextRescue = seconds + max(Self.rescueSecondsMin, (seconds - began) * Self.rescueShareMax)
        }
        let rescue = try await queue.rescue(after: floor.from(at: began), upTo: rescuePosition)
        floor.note(rescue, at: began)
        if rescue.buried > 0 {
            log.warning("buried work that kills its workers", ["items": .int(Int64(rescue.buried))])
        }
        return rescue.ready
    }

    /// Claims have passed by what was paused: where a pause has ended, all lanes begin anew.
    private func lookAtPauses() async throws -> Bool {
        let state = try await queue.pauseState()
        guard state != pauseState else { return false }
        pauseState = state
        for index in lanes.indices { lanes[index].cursor = WorkCursor(at: seconds) }
        return true
    }

    /// Where every lane has found the end of its work, all leases may be looked through; otherwise those before the
    /// highest claim.
    private var rescuePosition: WorkPosition {
        let reached = lanes.map(\.cursor.reached)
        if reached.allSatisfy({ $0 == .end }) { return .end }
        return reached.filter { $0 != .end }.max() ?? WorkPosition()
    }

    private func fireSchedules() async throws -> Bool {
        var fired = false
        for schedule in settings.schedules {
            let now = clock.now()
            let due = schedule.due(at: now)
            if let last = firedSchedules[schedule.name], last >= due { continue }
            guard try await schedule.isWanted(now) else { continue }
            let isOurs = try await queue.fireSchedule(
                schedule.name, kind: schedule.kind, payload: schedule.payload, at: due)
            firedSchedules[schedule.name] = due
            fired = fired || isOurs
        }
        return fired
    }
}
