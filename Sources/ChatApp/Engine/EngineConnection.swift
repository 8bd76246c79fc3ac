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
    /// Of the client; nil where it is not known.
    let address: String?
    /// Until it is let in somewhere.
    var isStranger = true
    /// The application has been told that it is over.
    var isEnded = false
    /// In the list of those whose polls the turn's end answers.
    var isDirty = false
    /// Where it lies in the wheel.
    var wheelTick = UInt64.max

    init(
        id: Int, secret: String, address: String?, transport: EngineSession.Transport, limits: SocketIOLimits,
        now: UInt64
    ) {
        self.id = id
        self.secret = secret
        self.address = address
        session = EngineSession(transport, limits: limits, now: now)
        sockets = SocketConnection(limits: limits, now: now)
    }

    var deadline: UInt64 { isEnded ? session.deadline : min(session.deadline, sockets.deadline) }
}

/// Sessions of a process, and of an address.
final class EngineCounts: Sendable {
    enum Refusal: String {
        case sessions = "Too many sessions"
        case address = "Too many sessions of one address"
        case strangers = "Too many sessions that are not signed in"
        case ending = "The instance is restarting"

        init(_ refusal: AddressBook.Refusal) { self = refusal == .strangers ? .strangers : .address }
    }

    private let addresses: AddressBook
    private let limits: ChatLimits
    private let count = Mutex(0)

    init(addresses: AddressBook, limits: ChatLimits) {
        self.addresses = addresses
        self.limits = limits
    }

    /// Why there may be no more, nil when there may.
    /// - Parameter address: nil when it is not known.
    func refusal(_ address: String?) -> Refusal? {
        guard sessions < limits.engineSessionsMax else { return .sessions }
        return addresses.refusal(address).map(Refusal.init)
    }

    /// Counts one that has not signed in, unless there may be no more.
    func add(_ address: String?, now: UInt64) -> Refusal? {
        count.withLock { count in
            guard count < limits.engineSessionsMax else { return .sessions }
            if let refusal = addresses.enter(address, now: now) { return Refusal(refusal) }
            count += 1
            return nil
        }
    }

    func signedIn(_ address: String?) { addresses.signedIn(address) }

    func remove(_ address: String?, isStranger: Bool) {
        addresses.leave(address, isStranger: isStranger)
        count.withLock { $0 -= 1 }
    }

    var sessions: Int { count.withLock { $0 } }
}
