import Core
import Foundation

/// What `martlet queue` does with a queue and says of it.
struct QueueView {
    let queue: any WorkQueueOperations
    let context: Operator
    let asJSON: Bool

    private var terminal: Terminal { context.terminal }

    func summary(_ kind: WorkItem.Kind?) async throws -> Int32 {
        let depths = try await queue.depth().filter { kind == nil || $0.kind == kind?.rawValue }
        let pauses = try await queue.pauses().filter { kind == nil || $0.kind == kind?.rawValue }
        let paused = Set(pauses.map(\.kind))
        if asJSON {
            let idle = paused.subtracting(depths.map(\.kind)).sorted().map {
                WorkDepth(kind: $0, ready: 0, leased: 0, waiting: 0, dead: 0, oldestSeconds: 0)
            }
            let rows = (depths + idle).map { depth in
                OrderedJSON.objectOf([
                    "kind": .string(depth.kind), "ready": .integer(depth.ready), "leased": .integer(depth.leased),
                    "waiting": .integer(depth.waiting), "dead": .integer(depth.dead),
                    "oldest_seconds": .number(String(format: "%.3f", depth.oldestSeconds)),
                    "paused": .bool(paused.contains(depth.kind)),
                ])
            }
            terminal.line(OrderedJSON.array(rows).text)
            return Operator.Status.success
        }
        if depths.isEmpty { terminal.line("The queue is empty.") }
        var table = Table([
            ("kind", .left), ("ready", .right), ("running", .right), ("waiting", .right), ("dead", .right),
            ("oldest", .right), ("", .left),
        ])
        for depth in depths {
            table.add(
                depth.kind, "\(depth.ready)", "\(depth.leased)", "\(depth.waiting)", "\(depth.dead)",
                depth.ready > 0 ? Self.span(depth.oldestSeconds) : "-", paused.contains(depth.kind) ? "paused" : "")
        }
        for line in table.lines { terminal.line(line) }
        for pause in pauses {
            let end = pause.until.map { ", until \($0.ISO8601Format()) unless it goes on" } ?? ""
            terminal.line("\(pause.kind) is paused by the \(pause.holder) since \(pause.since.ISO8601Format())\(end)")
        }
        return Operator.Status.success
    }

    /// `90` is `90 s`, `5400` is `90 min`.
    static func span(_ seconds: Double) -> String {
        switch seconds {
        case ..<600: "\(Int(seconds)) s"
        case ..<36_000: "\(Int(seconds / 60)) min"
        case ..<864_000: "\(Int(seconds / 3600)) h"
        default: "\(Int(seconds / 86_400)) d"
        }
    }

    func list(_ filter: WorkFilter, after: WorkItem.ID?, limit: Int) async throws -> Int32 {
        let items = try await queue.items(filter, after: after, limit: limit)
        if asJSON {
            terminal.line(OrderedJSON.array(items.map(Self.json)).text)
            return Operator.Status.success
        }
        guard !items.isEmpty else {
            terminal.line("There are none.")
            return Operator.Status.success
        }
        var table = Table([
            ("id", .right), ("kind", .left), ("attempts", .right), ("time", .left), ("last error", .left),
        ])
        for item in items {
            table.add(
                "\(item.id)", item.kind, "\(item.attempts)", item.time.ISO8601Format(),
                String(item.lastError.split(separator: "\n").first ?? ""))
        }
        for line in table.lines { terminal.line(line) }
        if items.count == limit, let last = items.last { terminal.warn("there may be more: --after \(last.id)") }
        return Operator.Status.success
    }

    private static func json(_ item: QueuedItem) -> OrderedJSON {
        .objectOf([
            "id": .integer(item.id.value), "kind": .string(item.kind), "state": .string(item.state.rawValue),
            "attempts": .integer(item.attempts), "time": .string(item.time.ISO8601Format()),
            "worker": .string(item.worker), "payload": .string(item.payload), "last_error": .string(item.lastError),
        ])
    }

    func show(_ ids: [WorkItem.ID]) async throws -> Int32 {
        let items = try await queue.items(ids)
        if asJSON { terminal.line(OrderedJSON.array(items.map(Self.json)).text) }
        for item in items where !asJSON {
            let since = item.state == .waiting ? "until" : "since"
            terminal.line("\(item.id)  \(item.kind), \(item.state) \(since) \(item.time.ISO8601Format())")
            let worker = item.worker.isEmpty ? "" : ", the last by \(item.worker)"
            let error = item.lastError.isEmpty ? "" : ": \(item.lastError)"
            terminal.line(
                "  after \(item.attempts) \(noun(item.attempts, "attempt"))\(worker)\(error)\n  \(item.payload)")
        }
        let missing = Set(ids).subtracting(items.map(\.id)).sorted()
        for id in missing { terminal.warn("there is no item \(id)") }
        return missing.isEmpty ? Operator.Status.success : Operator.Status.failure
    }

    func retry(_ ids: [WorkItem.ID], _ kind: WorkItem.Kind?) async throws -> Int32 {
        let count = if let kind { try await queue.retryAll(kind: kind) } else { try await queue.retry(ids) }
        tell("retried", count)
        guard ids.isEmpty || count == ids.count else {
            terminal.warn(
                "only dead items can be retried: \(count) of \(ids.count); martlet queue dead lists them")
            return Operator.Status.failure
        }
        return Operator.Status.success
    }

    func cancel(_ ids: [WorkItem.ID]) async throws -> Int32 {
        var count = 0
        for id in ids {
            if try await queue.cancel(id) {
                count += 1
            } else {
                terminal.warn("there is no item \(id) in the queue")
            }
        }
        tell("cancelled", count)
        return count == ids.count ? Operator.Status.success : Operator.Status.failure
    }

    private func tell(_ word: String, _ count: Int) {
        terminal.line(asJSON ? OrderedJSON.objectOf([word: .integer(count)]).text : "\(count) \(word).")
    }

    func pause(_ kinds: [WorkItem.Kind], on: Bool) async throws -> Int32 {
        let names = kinds.map(\.rawValue)
        if on {
            try await queue.pause(kinds, holder: .operator, seconds: nil)
        } else if try await queue.resume(kinds, holder: .operator).isEmpty {
            terminal.warn("\(names.joined(separator: ", ")) was not paused")
        }
        if asJSON {
            terminal.line(
                OrderedJSON.objectOf([on ? "paused" : "resumed": .array(names.map { .string($0) })]).text)
        } else if on {
            terminal.line("\(names.joined(separator: ", ")) is paused: nothing of it is begun until resume.")
        } else {
            terminal.line("\(names.joined(separator: ", ")) goes on.")
        }
        return Operator.Status.success
    }

    /// Looks again and again until nothing of the kinds is left, or only nothing runs.
    func drain(_ kinds: [WorkItem.Kind], onlyRunning: Bool, seconds: Double) async throws -> Int32 {
        let names = Set(kinds.map(\.rawValue))
        let progress = ProgressLine(terminal)
        let deadline = context.now().addingTimeInterval(seconds)
        while true {
            let depths = try await queue.depth().filter { names.contains($0.kind) }
            let running = depths.reduce(0) { $0 + $1.leased }
            let left = onlyRunning ? running : depths.reduce(running) { $0 + $1.ready + $1.waiting }
            guard left > 0 else {
                progress.clear()
                let words = onlyRunning ? "Nothing of it runs." : "Nothing of it is left."
                terminal.line(asJSON ? OrderedJSON.objectOf(["left": .integer(0)]).text : words)
                return Operator.Status.success
            }
            if !onlyRunning, let pause = try await queue.pauses().first(where: { names.contains($0.kind) }) {
                progress.clear()
                throw AppError(
                    .conflict,
                    "\(left) \(noun(left, "item is", "items are")) left, and \(pause.kind) is paused by the "
                        + "\(pause.holder): martlet queue resume")
            }
            guard context.now() < deadline else {
                progress.clear()
                if asJSON { terminal.line(OrderedJSON.objectOf(["left": .integer(left)]).text) }
                terminal.warn("\(left) \(noun(left, "item is", "items are")) left after \(Int(seconds)) s")
                return Operator.Status.temporary
            }
            progress.show("\(left) \(noun(left, "item")) left, \(running) of them running")
            try await context.sleep(QueueCommand.lookSeconds)
        }
    }
}
