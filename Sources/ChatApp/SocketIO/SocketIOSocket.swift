import Core
import Foundation

/// One Socket.IO client of a hub. Lives on the hub's loop.
final class SocketIOSocket {
    /// Of this hub's, for those who know no handles.
    let number: Int
    let handle: SocketIOHandle
    /// As the address book has it; nil where it is not known.
    let address: String?
    let user: SocketIOUser
    let session: Session.ID
    let endsAt: Date
    /// Milliseconds of the loop's clock at which an answer to its CONNECT is late.
    let answerBy: UInt64
    /// Its rooms are known, and it has been told that it is connected.
    var isAccepted = false
    /// Rooms that it has open, the first joined first.
    var joined: [Room.ID] = []
    var pace = PushPace()
    var acts: TokenBucket
    var refusals = 0

    init(
        _ number: Int, _ handle: SocketIOHandle, user: SocketIOUser, session: Session.ID, endsAt: Date,
        answerBy: UInt64, acts: TokenBucket
    ) {
        self.number = number
        self.handle = handle
        address = handle.address
        self.user = user
        self.session = session
        self.endsAt = endsAt
        self.answerBy = answerBy
        self.acts = acts
    }
}

/// A user who is connected to a hub, by one socket or more.
final class SocketIOUser {
    let id: User.ID
    var sockets: [SocketIOSocket] = []
    /// Followed rooms; empty until they have been read.
    var rooms: [Room.ID: SocketIORoom] = [:]
    /// What the list shows, as far as it was looked at.
    var list: [SocketIORoom] = []
    var sends: TokenBucket

    init(_ id: User.ID, sends: TokenBucket) {
        self.id = id
        self.sends = sends
    }
}

/// A room that users of a hub follow.
final class SocketIORoom {
    let id: Room.ID
    let wireName: String
    let createdAt: Date
    /// `"id":…,"room":…,`, escaped.
    let head: [UInt8]
    /// When its last message was committed.
    var activeAt: Date
    /// The last seq that is known to be committed.
    var position: Int64
    var users: [User.ID: SocketIOUser] = [:]
    /// Sockets that have it open.
    var joined: [SocketIOSocket] = []
    /// Those of them that have not been given its newest state.
    var late: [SocketIOSocket] = []
    /// Users whose list shows it.
    var listedBy = 0
    /// Kept while it is listed or open.
    var texts: RoomTexts?
    /// Its row in the list, until the next change.
    var row: [UInt8]?

    init(_ room: ActiveRoom) {
        id = room.id
        wireName = room.wireName
        createdAt = room.createdAt
        activeAt = room.activeAt
        position = room.lastSeq
        head = RoomPackets.head(room)
    }

    /// How far back somebody looks; nil: nobody does.
    var wanted: RoomTexts.Depth? { joined.isEmpty ? (listedBy > 0 ? .list : nil) : .room }

    /// What somebody looks at has to be read first.
    var isBehind: Bool {
        guard let wanted else { return false }
        guard let texts else { return true }
        return texts.seq < position || texts.depth < wanted
    }

    /// After somebody has come or gone: what is kept is what somebody looks at.
    func reach() {
        guard let wanted else {
            texts = nil
            row = nil
            return
        }
        _ = texts?.reach(wanted)
    }

    func listedRow() -> [UInt8]? {
        if let row { return row }
        row = texts.map { RoomPackets.row(self, $0) }
        return row
    }
}

/// When a socket is given its list: at once when something changed, but so often and no more. Times are milliseconds.
struct PushPace {
    private(set) var isChanged = false
    private var pushedAt: UInt64?

    /// - Returns: false when it was changed already.
    mutating func change() -> Bool {
        guard !isChanged else { return false }
        isChanged = true
        return true
    }

    func isDue(now: UInt64, interval: UInt64) -> Bool {
        isChanged && (pushedAt.map { now &- $0 >= interval } ?? true)
    }

    mutating func pushed(now: UInt64) {
        isChanged = false
        pushedAt = now
    }
}
