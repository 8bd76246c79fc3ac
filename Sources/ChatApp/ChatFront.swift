import Core
import WebSocket

/// The sockets of one protocol on one loop: what `martlet.v1` and Socket.IO have in common for those behind them.
///
/// Called on the loop of the feed and the batcher. What a front does with it happens on its own loop, in the order of
/// the calls.
protocol ChatFront: AnyObject, Sendable {
    /// What is committed, and what changed around it.
    nonisolated func told(_ news: FeedNews)
    /// What became of the front's sends, in their order.
    nonisolated func answered(_ answers: [SendBatcher.Answer])
}

/// What the feed tells the fronts that follow a room.
enum FeedNews: Sendable {
    /// Rooms that the front asked for, and the positions from which everything will be delivered.
    /// Under the number with which they were asked for.
    case held(Int, [(Room.ID, Int64)])
    case delivered([HubDelivery])
    /// Users whose rooms may have changed.
    case refresh([User.ID])
    /// The members of a room as they are now.
    case members(Room.ID, Set<User.ID>)
}

/// Messages of a room on their way to the sockets of a front, in order.
struct HubDelivery: Sendable {
    let room: Room.ID
    let messages: [Message]
    /// The messages as `martlet.v1` has them; empty when no hub of that protocol follows the room.
    let frames: [(seq: Int64, frame: SharedFrame)]
}
