import Core
import Foundation

enum QueueCommand: Command {
    static let limitMax = 1000
    /// Pages of dead letters that `show` looks through for an id.
    private static let pagesMax = 100

    static let syntax = CommandSyntax(
        "queue", "Shows background work, and retries or cancels it.", operands: "[ls|dead|show|retry|cancel] [ID…]",
        count: 0...limitMax,
        options: [
            .init("--kind", "NAME", "of this kind only; retry without ids takes all its dead letters"),
            .init("--limit", "N", "dead letters to list (default 50)"),
        ],
        notes: """
            ls      how much is ready, running, waiting and dead, by kind (the default)
            dead    the items that failed for good, the newest first
            show    a dead letter with its payload and its last error
            retry   puts dead letters back into the queue, with all their attempts
            cancel  takes items out of the queue, also one that runs
            """)

    static func run(_ arguments: Arguments, _ context: Operator) async throws -> Int32 {
        let action = arguments.operands.first ?? "ls"
        let kind = try kind(arguments)
        let limit = try arguments.integer("--limit", in: 1...limitMax) ?? 50
        let ids = try arguments.operands.dropFirst().map { text throws(UsageError) in
            guard let id = WorkItem.ID(text: text) else { throw UsageError("\"\(text)\" is not the id of an item") }
            return id
        }
        let terminal = context.terminal
        let asJSON = arguments.has("--json")
        switch action {
        case "ls", "dead":
            guard ids.isEmpty else { throw UsageError("martlet queue \(action) takes no ids") }
        case "show", "cancel":
            guard !ids.isEmpty else { throw UsageError("martlet queue \(action) needs ids") }
        case "retry":
            guard ids.isEmpty == (kind != nil) else {
                throw UsageError("martlet queue retry needs ids, or --kind for all of a kind")
            }
        default:
            throw UsageError("martlet queue knows ls, dead, show, retry and cancel, not \"\(action)\"")
        }
        return try await context.withBackend { backend in
            let queue = backend.queue
            switch action {
            case "ls":
                tell(try await queue.depth().filter { kind == nil || $0.kind == kind?.rawValue }, terminal, asJSON)
            case "dead": tell(try await queue.dead(kind: kind, limit: limit, before: nil), terminal, asJSON)
            case "show": return try await show(ids, queue, terminal, asJSON)
            case "cancel": return try await cancel(ids, queue, terminal, asJSON)
            default:
                let count = if let kind { try await queue.retryAll(kind: kind) } else { try await queue.retry(ids) }
                tell("retried", count, terminal, asJSON)
                return ids.isEmpty || count == ids.count ? Operator.Status.success : Operator.Status.failure
            }
            return Operator.Status.success
        }
    }

    private static func kind(_ arguments: Arguments) throws(UsageError) -> WorkItem.Kind? {
        guard let name = arguments.value("--kind") else { return nil }
        guard let kind = WorkItem.Kind(rawValue: name) else {
            let known = WorkItem.Kind.allCases.map(\.rawValue).joined(separator: ", ")
            throw UsageError("there is no kind \"\(name)\"; there are \(known)")
        }
        return kind
    }

    private static func tell(_ depths: [WorkDepth], _ terminal: Terminal, _ asJSON: Bool) {
        if asJSON {
            let rows = depths.map { depth in
                OrderedJSON.objectOf([
                    "kind": .string(depth.kind), "ready": .integer(depth.ready), "leased": .integer(depth.leased),
                    "waiting": .integer(depth.waiting), "dead": .integer(depth.dead),
                    "oldest_seconds": .number(String(format: "%.3f", depth.oldestSeconds)),
                ])
            }
            return terminal.line(OrderedJSON.array(rows).text)
        }
        if depths.isEmpty { return terminal.line("The queue is empty.") }
        for depth in depths {
            terminal.line(
                "\(depth.kind): \(depth.ready) ready, \(depth.leased) running, \(depth.waiting) waiting, "
                    + "\(depth.dead) dead" + (depth.ready > 0 ? "; the oldest waits \(Int(depth.oldestSeconds)) s" : "")
            )
        }
    }

    private static func tell(_ dead: [DeadWorkItem], _ terminal: Terminal, _ asJSON: Bool) {
        if asJSON { return terminal.line(OrderedJSON.array(dead.map(json)).text) }
        if dead.isEmpty { return terminal.line("There are no dead letters.") }
        for item in dead {
            let error = item.lastError.split(separator: "\n").first.map(String.init) ?? ""
            terminal.line("\(item.id)  \(item.kind)  \(item.diedAt.ISO8601Format())  \(error.prefix(100))")
        }
    }

    private static func json(_ item: DeadWorkItem) -> OrderedJSON {
        .objectOf([
            "id": .integer(item.id.value), "kind": .string(item.kind), "attempts": .integer(item.attempts),
            "died_at": .string(item.diedAt.ISO8601Format()), "payload": .string(item.payload),
            "last_error": .string(item.lastError),
        ])
    }

    private static func show(
        _ ids: [WorkItem.ID], _ queue: any WorkQueueOperations, _ terminal: Terminal, _ asJSON: Bool
    ) async throws -> Int32 {
        var wanted = Set(ids)
        var before: Date?
        for _ in 0..<pagesMax where !wanted.isEmpty {
            let page = try await queue.dead(kind: nil, limit: limitMax, before: before)
            for item in page where wanted.remove(item.id) != nil {
                if asJSON {
                    terminal.line(json(item).text)
                } else {
                    terminal.line("\(item.id)  \(item.kind), dead since \(item.diedAt.ISO8601Format())")
                    terminal.line("  after \(item.attempts) attempts: \(item.lastError)\n  \(item.payload)")
                }
            }
            guard page.count == limitMax else { break }
            before = page.last?.diedAt
        }
        for id in wanted.sorted() { terminal.warn("there is no dead letter \(id)") }
        return wanted.isEmpty ? Operator.Status.success : Operator.Status.failure
    }

    private static func cancel(
        _ ids: [WorkItem.ID], _ queue: any WorkQueueOperations, _ terminal: Terminal, _ asJSON: Bool
    ) async throws -> Int32 {
        var count = 0
        for id in ids {
            if try await queue.cancel(id) {
                count += 1
            } else {
                terminal.warn("there is no item \(id) in the queue")
            }
        }
        tell("cancelled", count, terminal, asJSON)
        return count == ids.count ? Operator.Status.success : Operator.Status.failure
    }

    private static func tell(_ word: String, _ count: Int, _ terminal: Terminal, _ asJSON: Bool) {
        terminal.line(asJSON ? OrderedJSON.objectOf([word: .integer(count)]).text : "\(count) \(word).")
    }
}
