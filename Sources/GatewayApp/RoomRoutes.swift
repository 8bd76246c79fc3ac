import Core
import CoreHTTP
import HTTPServer
import JSON

/// Reading rooms without a socket. Sending is the chat service's.
struct RoomRoutes: Sendable {
    static let roomsMax = 200
    static let messagesMax = 200

    let rooms: any RoomRepository
    let signIn: SignIn

    func register(on router: inout Router) {
        router.on(.get, "/api/rooms", list)
        router.on(.get, "/api/rooms/:id/messages", messages)
    }

    @Sendable func list(_ request: HTTPRequest) async throws -> HTTPResponse {
        let caller = try signIn.caller(of: request)
        let rooms = try await rooms.rooms(of: caller.user, limit: Self.roomsMax)
        return .json { json in
            json.object { json in
                json.array("data", rooms) { json, room in
                    json.object { json in
                        json.field("id", room.id.value)
                        json.field("name", room.wireName)
                        json.field("last_seq", room.lastSeq)
                        json.field("last_read_seq", room.lastReadSeq)
                        json.field("createdAt", room.createdAt)
                    }
                }
                json.object("meta") { _ in }
            }
        }
    }

    /// As they are now, oldest first: before a seq, after one, or the newest.
    @Sendable func messages(_ request: HTTPRequest) async throws -> HTTPResponse {
        let caller = try signIn.caller(of: request)
        let id = try request.id(as: Room.self)
        let query = try QueryItems(request.query)
        let limit = min(max(try query.int("limit") ?? 50, 1), Self.messagesMax)
        let before = try query.int("before").map { Int64($0) }
        let after = try query.int("after").map { Int64($0) }
        if before != nil, after != nil { throw AppError.invalid("after", "before and after exclude each other.") }
        let start: HistoryPage.Start = after.map { .after($0) } ?? before.map { .before($0) } ?? .newest
        let page = try await rooms.history(room: id, from: start, limit: limit, viewer: caller.user)
        return .json(capacity: 8192) { json in
            json.object { json in
                json.array("data", page.messages) { json, folded in
                    let message = folded.message
                    json.object { json in
                        json.field("seq", message.seq)
                        json.field("sender", message.senderID.value)
                        json.field("kind", message.kind.rawValue)
                        json.field("body", message.body)
                        if let media = message.mediaID { json.field("media", media.value) }
                        json.field("at", message.createdAt)
                        if let edited = folded.editedAt { json.field("edited", edited) }
                        if folded.isDeleted { json.field("deleted", true) }
                    }
                }
                json.object("meta") { $0.field("more", page.hasMore) }
            }
        }
    }
}
