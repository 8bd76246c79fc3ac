import Core
import CoreHTTP
import CorePostgres
import Crypto
import EventLoop
import Foundation
import HTTPServer
import Postgres
import ServiceKit
import TestSupport

@testable import ChatApp

/// One chat process, as it were: its own loops, connections, server and listener, on a test's database.
final class Instance: Sendable {
    static let keys = try! SigningKeys([[UInt8](repeating: 7, count: 32)])
    static let signer = TokenSigner(keys: keys)

    let loops: LoopGroup
    let db: Database
    let chat: ChatService
    let guardian: SessionGuard
    let listener: Listener?
    let port: Int
    let metrics = Metrics()
    private let server: HTTPServer
    private let refreshing: Task<Void, Never>

    init(
        _ name: String, _ test: TestDatabase, notify: Bool = true, loops count: Int = 2,
        limits change: (inout ChatLimits) -> Void = { _ in },
        repository: (any RoomRepository) -> any RoomRepository = { $0 },
        presence: (any PresenceRepository) -> any PresenceRepository = { $0 }
    ) async throws {
        let loops = LoopGroup(count: count, name: name)
        var configuration = try test.configuration()
        configuration.applicationName = name
        let db = Database(configuration, loops: loops)
        let clock = SystemClock()
        // On a machine that is busy with all other tests a refresh may come late; what that leads to is SignInTests'.
        let guardian = SessionGuard(
            sessions: PostgresSessions(db: db), clock: clock, log: .silent, staleSecondsMax: 600)
        var limits = ChatLimits()
        limits.sendsPerSecond = 100_000
        limits.sendsBurstMax = 100_000
        // A machine that is busy with all other tests may take its time.
        limits.connectMillisecondsMax = 60_000
        change(&limits)
        let chat = ChatService(
            instance: name, loops: loops, rooms: repository(PostgresRooms(db: db, notify: notify)),
            presence: presence(PostgresPresence(db: db, notify: notify)),
            keys: Self.keys, guardian: guardian, notify: notify,
            limits: limits, clock: clock, log: .silent, metrics: metrics)
        server = chat.server(address: SocketAddress(host: "127.0.0.1", port: 0), loops: loops)
        try await guardian.refresh()
        try await chat.start()
        port = try await server.start().port
        listener =
            notify
            ? try await db.listen(
                ["martlet_chat", "martlet_session"], advisoryLock: PostgresPresence.lockKey(of: chat.process),
                onWake: { $0.channel == "martlet_chat" ? chat.wake($0.payload) : guardian.wake() },
                onReconnect: {
                    chat.lookAround()
                    guardian.wake()
                }) : nil
        refreshing = Task { await guardian.run() }
        self.loops = loops
        self.db = db
        self.chat = chat
        self.guardian = guardian
    }

    func stop() async {
        refreshing.cancel()
        await chat.drain()
        await server.drain(graceSeconds: 1)
        await listener?.stop()
        await db.close()
        await loops.stop()
    }

    static func token(user: Int, session: Int64? = nil, kind: Claims.Kind = .access, seconds: Int64 = 900) -> String {
        let now = Int64(Date().timeIntervalSince1970)
        return signer.sign(
            Claims(
                id: Int64(user), sid: session ?? Int64(user), gen: 0, typ: kind, iat: now - 10, exp: now + seconds))
    }

    /// A client that has greeted and is ready.
    func client(
        user: Int, session: Int64? = nil, resume: [Int: Int64] = [:]
    ) async throws -> ChatClient {
        let client = try await ChatClient(port: port)
        client.hello(Self.token(user: user, session: session), resume: resume)
        try await client.awaitReady()
        return client
    }
}

/// Users 1…, each with a session of the same number, and rooms with some of them as members.
func makeRooms(_ test: TestDatabase, users: Int, rooms: [[Int]]) async throws {
    let members = rooms.enumerated().flatMap { room, users in users.map { "(\(room + 1), \($0))" } }
    try await test.run(
        """
        INSERT INTO users (username, email)
        SELECT 'user-' || n, 'user-' || n || '@example.org' FROM generate_series(1, \(users)) n;
        INSERT INTO sessions (user_id, kind, expires_at)
        SELECT n, 'long', now() + interval '1 day' FROM generate_series(1, \(users)) n;
        INSERT INTO rooms (wire_name) SELECT 'rep_' || n || '_jane' FROM generate_series(1, \(rooms.count)) n;
        INSERT INTO room_members (room_id, user_id) VALUES \(members.joined(separator: ", "))
        """)
}

/// Two instances on one database, stopped afterwards whatever happens.
func withInstances(
    _ names: [String] = ["chat-1", "chat-2"], users: Int, rooms: [[Int]], notify: Bool = true,
    limits: (inout ChatLimits) -> Void = { _ in },
    repository: (any RoomRepository) -> any RoomRepository = { $0 },
    _ body: ([Instance], TestDatabase) async throws -> Void
) async throws {
    try await withTestDatabase { _, test in
        try await makeRooms(test, users: users, rooms: rooms)
        var instances: [Instance] = []
        for name in names {
            instances.append(
                try await Instance(name, test, notify: notify, limits: limits, repository: repository))
        }
        do {
            try await body(instances, test)
        } catch {
            for instance in instances { await instance.stop() }
            throw error
        }
        for instance in instances { await instance.stop() }
    }
}
