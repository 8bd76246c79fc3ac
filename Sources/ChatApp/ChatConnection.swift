import Core
import WebSocket

/// The protocol of one socket, without the socket: a frame in, what to do out.
struct ChatConnection {
    enum State: UInt8 {
        /// Nobody knows who this is.
        case greeting
        /// The token was right; the rooms are being read.
        case loading
        case ready
        case closed
    }

    /// What the owner is to do.
    enum Action: Equatable {
        case nothing
        case authenticate(token: String, resume: [Room.ID: Int64])
        case send(room: Room.ID, clientID: String, content: Message.Draft.Content)
        case history(room: Room.ID, from: HistoryPage.Start, limit: Int)
        case unread(rooms: [Room.ID])
        case read(room: Room.ID, seq: Int64)
        case typing(room: Room.ID)
        case join(room: Room.ID)
        case leave(room: Room.ID)
        case reply([UInt8])
        case close(CloseCode, String)
    }

    private(set) var state = State.greeting
    private var bucket: TokenBucket
    private var refusals = 0

    init(limits: ChatLimits, now: UInt64) {
        bucket = TokenBucket(burst: limits.framesBurstMax, now: now)
    }

    mutating func authenticated() { if state == .greeting { state = .loading } }
    mutating func loaded() { if state == .loading { state = .ready } }
    mutating func closed() { state = .closed }

    mutating func received(_ text: [UInt8], limits: ChatLimits, now: UInt64) -> Action {
        guard state != .closed else { return .nothing }
        let frame: ClientFrame
        do throws(ClientFrame.Fault) {
            frame = try ClientFrame.parse(text, resumeMax: limits.roomsPerUserMax)
        } catch {
            guard state != .greeting else {
                // Not 4401: whoever signs in again for that comes back with the same hello, for ever.
                guard !error.isOfResume else { return close(.invalidData, "resume is wrong. \(error.message)") }
                return close(.unauthenticated, "The first frame must be a hello.")
            }
            return refuse(.invalid, error.message, room: error.room, clientID: error.clientID, limits: limits)
        }
        if case .hello(let token, let resume) = frame {
            guard state == .greeting else {
                return refuse(.invalid, "There is one hello in a connection.", limits: limits)
            }
            return .authenticate(token: token, resume: resume)
        }
        guard state != .greeting else { return close(.unauthenticated, "The first frame must be a hello.") }
        if case .send(let room, let clientID, let content) = frame {
            // The owner counts sends by user and by address.
            return .send(room: room, clientID: clientID, content: content)
        }
        guard bucket.take(perSecond: limits.framesPerSecond, burst: limits.framesBurstMax, now: now) else {
            return refuse(.tooMany, "Too many frames; slow down.", room: frame.room, limits: limits)
        }
        return action(for: frame, limits: limits)
    }

    private mutating func action(for frame: ClientFrame, limits: ChatLimits) -> Action {
        switch frame {
        case .history(let room, let start, let limit):
            let limit = limit ?? limits.historyPageMax
            guard limit > 0, start.isPossible else {
                return refuse(
                    .invalid, "before and limit must be above 0, and after not below.", room: room, limits: limits)
            }
            accepted()
            return .history(room: room, from: start, limit: min(limit, limits.historyPageMax))
        case .unread(let rooms):
            accepted()
            return .unread(rooms: rooms)
        case .read(let room, let seq):
            guard seq > 0 else { return refuse(.invalid, "seq must be above 0.", room: room, limits: limits) }
            accepted()
            return .read(room: room, seq: seq)
        case .typing(let room): return .typing(room: room)
        case .join(let room): return .join(room: room)
        case .leave(let room): return .leave(room: room)
        case .hello, .send: return .nothing
        }
    }

    /// A frame that did something: refusals count only in a row.
    mutating func accepted() { refusals = 0 }

    mutating func refuse(
        _ code: ServerFrame.ErrorCode, _ message: String, room: Room.ID? = nil, clientID: String? = nil,
        limits: ChatLimits
    ) -> Action {
        refusals += 1
        guard refusals <= limits.refusalsMax else { return close(.tooMany, "Too many refused frames.") }
        // What is echoed was chosen by the client: cut to what could have been right.
        let id = clientID.flatMap { $0.utf8.count <= 4 * Message.clientIDLengthMax ? $0 : nil }
        return .reply(ServerFrame.error(code, message, room: room, clientID: id))
    }

    private mutating func close(_ code: CloseCode, _ reason: String) -> Action {
        state = .closed
        return .close(code, reason)
    }
}

extension ClientFrame {
    var room: Room.ID? {
        switch self {
        case .hello, .unread: nil
        case .send(let room, _, _), .history(let room, _, _), .read(let room, _): room
        case .typing(let room), .join(let room), .leave(let room): room
        }
    }
}

extension HistoryPage.Start {
    /// After 0 everything comes; before 1 nothing could.
    fileprivate var isPossible: Bool {
        switch self {
        case .newest: true
        case .before(let seq): seq > 0
        case .after(let seq): seq >= 0
        }
    }
}
