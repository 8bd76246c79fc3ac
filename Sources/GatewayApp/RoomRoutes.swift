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

    /// Oldest first; `before` a seq, or the newest.
    @Sendable func messages(_ request: HTTPRequest) async throws -> HTTPResponse {
        let caller = try signIn.caller(of: request)
        let id = try request.id(as: Room.self)
        let query = try QueryItems(request.query)
        let limit = min(max(try query.int("limit") ?? 50, 1), Self.messagesMax)
        let before = try query.int("before").map { Int64($0) }
        let messages = try await rooms.history(room: id, before: before, limit: limit, viewer: caller.user)
        return .json(capacity: 8192) { json in
            json.object { json in
                json.array("data", messages) { json, message in
                    json.object { json in
                        json.field("seq", message.seq)
                        json.field("sender", message.senderID.value)
                        json.field("kind", message.kind.rawValue)
                        json.field("body", message.body)
                        json.field("at", message.createdAt)
                    }
                }
                json.object("meta") { $0.field("more", messages.count == limit && messages.first?.seq != 1) }
            }
        }
    }
}
