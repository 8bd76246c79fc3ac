import HTTPServer
import SocketIO
import Synchronization
import WebSocket

/// One session with what it holds of the outside. Lives on its loop.
final class EngineConnection {
    /// A request whose answer comes later.
    struct Waiting {
        let answer: HTTPAnswer
        /// Of the request, for the answer's headers.
        let origin: String?
    }

    /// The place of it and how often the place was taken.
    let id: Int
    let secret: String
    var session: EngineSession
    var sockets: SocketConnection
    /// The session's, or on trial.
    var webSocket: WebSocketHandle?
    var poll: Waiting?
    var post: Waiting?
    /// Counted as a stranger of this address until it is let in somewhere.
    var stranger: String?
    /// The application has been told that it is over.
    var isEnded = false
    /// In the list of those whose polls the turn's end answers.
    var isDirty = false
    /// Where it lies in the wheel.
    var wheelTick = UInt64.max

    init(id: Int, secret: String, transport: EngineSession.Transport, limits: SocketIOLimits, now: UInt64) {
        self.id = id
        self.secret = secret
        session = EngineSession(transport, limits: limits, now: now)
        sockets = SocketConnection(limits: limits, now: now)
    }

    var deadline: UInt64 { isEnded ? session.deadline : min(session.deadline, sockets.deadline) }
}

/// Sessions of a process, and those of an address that have not signed in.
final class EngineCounts: Sendable {
    enum Refusal: String {
        case sessions = "Too many sessions"
        case strangers = "Too many sessions that are not signed in"
        case ending = "The instance is restarting"
    }

    private struct State {
        var sessions = 0
        var strangers: [String: Int] = [:]

        func refusal(_ address: String?, _ limits: ChatLimits) -> Refusal? {
            guard sessions < limits.engineSessionsMax else { return .sessions }
            guard let address, let count = strangers[address] else { return nil }
            return count < limits.engineStrangersPerAddressMax ? nil : .strangers
        }
    }

    private let state = Mutex(State())

    /// Why there may be no more, nil when there may.
    /// - Parameter address: nil when it is not known.
    func refusal(_ address: String?, limits: ChatLimits) -> Refusal? {
        state.withLock { $0.refusal(address, limits) }
    }

    /// Counts one, unless there may be no more.
    func add(_ address: String?, limits: ChatLimits) -> Refusal? {
        state.withLock { state in
            if let refusal = state.refusal(address, limits) { return refusal }
            if let address { state.strangers[address, default: 0] += 1 }
            state.sessions += 1
            return nil
        }
    }

    func remove() { state.withLock { $0.sessions -= 1 } }

    func removeStranger(_ address: String) {
        state.withLock { state in
            guard let count = state.strangers[address] else { return }
            state.strangers[address] = count > 1 ? count - 1 : nil
        }
    }

    var sessions: Int { state.withLock { $0.sessions } }
}
