import Core
import Foundation

enum QueueCommand: Command {
    static let limitMax = 1000
    static let waitSecondsMax = 7 * 24 * 3600
    /// Between two looks of `drain`.
    static let lookSeconds = 0.5

    enum Action: String, CaseIterable {
        case ls, dead, show, retry, cancel, pause, resume, drain
    }

    static let syntax = CommandSyntax(
        "queue", "Shows background work; retries, cancels, pauses it, or waits for its end.",
        operands: "[\(Action.allCases.map(\.rawValue).joined(separator: "|"))] [ID…]", count: 0...limitMax,
        actions: Action.allCases.map(\.rawValue),
        options: [
            .init("--kind", "NAME", "of this kind only; for pause, resume, drain and retry: which", values: kinds),
            .init(
                "--state", "NAME", "items in this state, one by one: \(states.joined(separator: ", "))",
                values: states),
            .init("--limit", "N", "items in a page (default 50)"),
            .init("--after", "ID", "the page after the one that ended with this item"),
            .init("--running", nil, "drain: only until nothing of the kind runs, as after pause"),
            .init("--wait", "SECONDS", "drain: give up after so long (default 3600)"),
        ],
        notes: """
            ls      how much is ready, running, waiting and dead, by kind (the default); with --state the items
            dead    the items that failed for good, the newest first: ls --state dead
            show    items with their payload and their last error
            retry   puts dead items back into the queue, with all their attempts
            cancel  takes items out of the queue, also one that runs: what it does is given up, and never acknowledged
            pause   no worker begins an item of the kind; what runs goes on. Holds until resume, also over restarts
            resume  takes that back
            drain   waits until nothing of the kind is left; exits with 75 when that takes too long
            """)

    private static let kinds = WorkItem.Kind.allCases.map(\.rawValue)
    private static let states = QueuedItem.State.allCases.map(\.rawValue)

    static func run(_ arguments: Arguments, _ context: Operator) async throws -> Int32 {
        let word = arguments.operands.first ?? Action.ls.rawValue
        guard let action = Action(rawValue: word) else {
            throw UsageError(
                "martlet queue knows \(Action.allCases.map(\.rawValue).joined(separator: ", ")), not \"\(word)\"")
        }
        let request = try Request(action, arguments)
        return try await context.withBackend { backend in
            let view = QueueView(queue: backend.queue, context: context, asJSON: arguments.has("--json"))
            switch action {
            case .ls where request.filter.state == nil: return try await view.summary(request.filter.kind)
            case .ls, .dead:
                return try await view.list(request.filter, after: request.after, limit: request.limit)
            case .show: return try await view.show(request.ids)
            case .retry: return try await view.retry(request.ids, request.filter.kind)
            case .cancel: return try await view.cancel(request.ids)
            case .pause, .resume: return try await view.pause(request.kinds, on: action == .pause)
            case .drain:
                return try await view.drain(request.kinds, onlyRunning: request.onlyRunning, seconds: request.seconds)
            }
        }
    }

    /// What the command line asks for, as far as it can be judged without the queue.
    struct Request {
        let filter: WorkFilter
        let ids: [WorkItem.ID]
        let after: WorkItem.ID?
        let limit: Int
        let onlyRunning: Bool
        let seconds: Double

        var kinds: [WorkItem.Kind] { filter.kind.map { [$0] } ?? [] }

        init(_ action: Action, _ arguments: Arguments) throws(UsageError) {
            let kind = try Self.word("--kind", arguments, WorkItem.Kind.self)
            var state = try Self.word("--state", arguments, QueuedItem.State.self)
            ids = try arguments.operands.dropFirst().map(Self.id)
            after = try arguments.value("--after").map(Self.id)
            limit = try arguments.integer("--limit", in: 1...limitMax) ?? 50
            onlyRunning = arguments.has("--running")
            seconds = Double(try arguments.integer("--wait", in: 1...waitSecondsMax) ?? 3600)
            switch action {
            case .show, .cancel:
                guard !ids.isEmpty else { throw UsageError("martlet queue \(action) needs ids") }
            case .retry:
                guard ids.isEmpty == (kind != nil) else {
                    throw UsageError("martlet queue retry needs ids, or --kind for all of a kind")
                }
            case .ls, .dead, .pause, .resume, .drain:
                guard ids.isEmpty else { throw UsageError("martlet queue \(action) takes no ids") }
            }
            if [.pause, .resume, .drain].contains(action), kind == nil {
                throw UsageError("martlet queue \(action) needs --kind")
            }
            guard action == .ls || state == nil else { throw UsageError("--state is for martlet queue ls") }
            guard action == .drain || !(onlyRunning || arguments.has("--wait")) else {
                throw UsageError("--running and --wait are for martlet queue drain")
            }
            if action == .dead { state = .dead }
            guard state != nil || !(arguments.has("--after") || arguments.has("--limit")) else {
                throw UsageError("--limit and --after are for lists: martlet queue dead, or ls --state")
            }
            filter = WorkFilter(kind: kind, state: state)
        }

        private static func id(_ text: String) throws(UsageError) -> WorkItem.ID {
            guard let id = WorkItem.ID(text: text) else { throw UsageError("\"\(text)\" is not the id of an item") }
            return id
        }

        private static func word<T: RawRepresentable & CaseIterable>(
            _ option: String, _ arguments: Arguments, _ type: T.Type
        ) throws(UsageError) -> T? where T.RawValue == String {
            guard let text = arguments.value(option) else { return nil }
            guard let value = T(rawValue: text) else {
                let known = T.allCases.map(\.rawValue).joined(separator: ", ")
                throw UsageError("there is no \(option.dropFirst(2)) \"\(text)\"; there are \(known)")
            }
            return value
        }
    }
}
