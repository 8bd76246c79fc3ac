import Core
import Foundation
import Synchronization
import WebSocket

/// One socket of a hub. Lives on the hub's loop.
final class HubSocket {
    let handle: WebSocketHandle
    /// As the address book has it; nil where it is not known.
    let address: String?
    var connection: ChatConnection
    /// Milliseconds of the loop's clock at which a greeting is late.
    let greetBy: UInt64
    var user: HubUser?
    var session: Session.ID?
    var endsAt: Date?
    /// What the client had when it left, until its rooms are known.
    var resume: [Room.ID: Int64] = [:]
    /// Rooms in which this socket is not where the room is: the last seq it has. Empty for nearly all, nearly always.
    var cursors: [Room.ID: Int64] = [:]
    /// It takes what it missed more slowly than we read it: the rest waits until its buffer is empty.
    var isStalled = false
    /// Rooms whose typing and presence it watches.
    var focus: [Room.ID] = []
    /// Acts of this socket that wait for the database.
    var questions = 0

    init(_ handle: WebSocketHandle, address: String?, limits: ChatLimits, now: UInt64) {
        self.handle = handle
        self.address = address
        connection = ChatConnection(limits: limits, now: now)
        greetBy = now + UInt64(limits.helloSecondsMax) * 1000
    }

    /// It is where the room is, or has nothing more to do with it.
    func forget(_ room: Room.ID) {
        cursors[room] = nil
        // An empty dictionary that has had something keeps its memory, here in every idle socket.
        if cursors.isEmpty { cursors = [:] }
    }
}

/// A user who is connected to a hub, by one socket or more.
final class HubUser {
    let id: User.ID
    var sockets: [HubSocket] = []
    /// Followed rooms; empty until they have been read.
    var rooms: Set<Room.ID> = []
    var sends: TokenBucket

    init(_ id: User.ID, limits: ChatLimits, now: UInt64) {
        self.id = id
        sends = TokenBucket(burst: limits.sendsBurstMax, now: now)
    }
}

/// A room that users of a hub follow.
final class HubRoom {
    /// Under which number the feed was asked to follow it.
    let hold: Int
    /// The last seq that the hub's sockets were given; nil until the feed has said from where on it delivers.
    var position: Int64?
    var users: [User.ID: HubUser] = [:]
    /// Handles of the sockets that are where the room is, and are given what comes next.
    var live: [Int] = []
    /// Sockets that have a cursor in this room.
    var apart: [HubSocket] = []
    var focused: [HubSocket] = []

    init(hold: Int) { self.hold = hold }

    /// The socket has no cursor here any more.
    func rejoins(_ socket: HubSocket) {
        apart.removeAll { $0 === socket }
        if apart.isEmpty { apart = [] }
    }
}

/// Sockets of each user, all loops together.
final class UserCounts: Sendable {
    private let counts = Mutex<[User.ID: Int]>([:])

    /// False when the user has as many as it may.
    func add(_ user: User.ID, max: Int) -> Bool {
        counts.withLock { counts in
            guard counts[user] ?? 0 < max else { return false }
            counts[user, default: 0] += 1
            return true
        }
    }

    func remove(_ user: User.ID) {
        counts.withLock { counts in
            guard let count = counts[user] else { return }
            counts[user] = count > 1 ? count - 1 : nil
        }
    }
}
