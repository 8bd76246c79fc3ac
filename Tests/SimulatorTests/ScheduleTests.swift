import Core
import Testing

@testable import ChatApp

/// Schedules that lost something once: each is the shortest in which it shows.
@Suite("Schedules of the chat, one by one")
struct ScheduleTests {
    /// Not within a task, as `SimulatorTests.onThread` says.
    private func play(_ body: @escaping @Sendable () throws -> String?) async throws {
        let unrest = try await SimulatorTests.onThread { Result { try body() } }.get()
        #expect(unrest == nil)
    }

    @Test("who is connected is told of a new room, though another member brought it along before it was looked at")
    func newRoomIsFollowedAlready() async throws {
        try await play {
            let stage = Stage(rooms: [[1, 2]]) { $0.notifies = false }
            stage.run(100)
            stage.client(2).connect()
            stage.run(100)
            // Long before the next look at what changed.
            stage.database.makeRoom(Room.ID(2), members: [User.ID(1), User.ID(2)], firstMessage: true)
            stage.run(20)
            stage.client(1).connect()
            stage.run(1_000)
            return stage.end()
        }
    }

    @Test("who is removed while the list of their rooms is read leaves, though the list came after the news")
    func removedWhileListIsRead() async throws {
        try await play {
            let stage = Stage(rooms: [[1, 2]]) { $0.notifies = false }
            stage.run(100)
            stage.client(2).connect()
            stage.run(100)
            stage.link.holding = [.lists]
            stage.client(1).connect()
            stage.run(50)
            stage.database.setMember(User.ID(1), of: Room.ID(1), false)
            // The feed has told the hub by then.
            stage.run(1_000)
            stage.link.letGo()
            stage.run(1_000)
            return stage.end()
        }
    }

    @Test("who is removed and comes back while the list of their rooms is read stays, though the list is from between")
    func backWhileListIsRead() async throws {
        try await play {
            let stage = Stage(rooms: [[1, 2]]) { $0.notifies = false }
            stage.run(100)
            for user in [Int64(1), 2] { stage.client(user).connect() }
            stage.run(100)
            stage.link.holding = [.lists]
            stage.database.setMember(User.ID(1), of: Room.ID(1), false)
            stage.run(600)
            stage.database.setMember(User.ID(1), of: Room.ID(1), true)
            // The feed has told the hub of both by then.
            stage.run(600)
            stage.link.letGo()
            stage.run(1_000)
            return stage.end()
        }
    }

    @Test("a start that fails half-way and is tried again does not move what a look under way began with")
    func startsTwice() async throws {
        try await play {
            let stage = Stage(rooms: [[1]]) {
                $0.limits.idlePollMilliseconds = 20
                $0.databaseMilliseconds = 20
            }
            stage.link.failing = [.start]
            stage.run(3_000)
            stage.link.failing = []
            stage.client(1).connect()
            stage.run(1_000)
            return stage.end()
        }
    }

    @Test("who is brought along past the size of a stall, by a kernel that takes all, is brought to the end")
    func stallEnds() async throws {
        try await play {
            let stage = Stage(rooms: [[1]], messages: 50) { $0.limits.outboundBytesMax = 1_000 }
            stage.run(100)
            let client = stage.client(1)
            client.last[Room.ID(1)] = 0
            client.connect()
            stage.run(2_000)
            return stage.end()
        }
    }

    @Test("an answer about a room that was let go and taken up again meanwhile is not taken for the newer one")
    func answerToFormerHold() async throws {
        try await play {
            let stage = Stage(rooms: [[1, 2]])
            stage.run(100)
            // The feed hears of everything that follows at once.
            stage.instance.stopped = [0]
            let client = stage.client(1)
            client.connect()
            stage.run(50)
            guard client.state == .ready else { return "not ready" }
            client.cut()
            try stage.commit(2)
            stage.run(300)
            guard client.state == .ready else { return "not ready again" }
            stage.instance.stopped = []
            stage.run(1_000)
            return stage.end()
        }
    }

    @Test("what is committed between the list of a user's rooms and the following of them is delivered")
    func committedBeforeFollowed() async throws {
        try await play {
            let stage = Stage(rooms: [[1], [2]]) { $0.notifies = false }
            stage.run(100)
            stage.client(2).connect()
            stage.run(100)
            stage.link.holding = [.lists]
            stage.client(1).connect()
            stage.run(50)
            try stage.commit(1)
            // Looks pass the message over, as nobody follows its room.
            stage.run(1_000)
            stage.link.letGo()
            stage.run(1_000)
            return stage.end()
        }
    }
}
