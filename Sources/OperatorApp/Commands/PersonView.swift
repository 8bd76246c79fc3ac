import Core
import Crypto
import Foundation

/// What `martlet user` does with somebody and says of them.
struct PersonView {
    /// Sessions that are shown: more than these nobody reads.
    static let sessionsMax = 1000
    /// Between the end of the sessions and the erasure. Every process refuses a token whose session has ended, at the
    /// latest when its list of them is five seconds old, and closes the sockets: after this nothing of the person's is
    /// let in any more. What waits at the database since before then the erasure looks for once more at its end.
    static let settleSeconds = 6.0

    let backend: any OperatorBackend
    let context: Operator
    let asJSON: Bool

    private var terminal: Terminal { context.terminal }

    func perform(_ change: UserCommand.Change, on user: User) async throws -> Int32 {
        switch change {
        case .show: tell(user, user.blocked ? "\(user.email) is blocked" : "\(user.email) may sign in")
        case .block:
            try await backend.users.setBlocked(true, of: user.id, by: nil)
            try await tellAnew(user, "\(user.email) is blocked")
        case .unblock:
            try await backend.users.setBlocked(false, of: user.id, by: nil)
            try await tellAnew(user, "\(user.email) may sign in")
        case .password(let password):
            let hash = try PasswordHasher().hash(password)
            try await backend.users.setPassword(hash, replacing: nil, of: user.id, endingSessionsExcept: nil)
            try await tellAnew(user, "the password of \(user.email) is set")
        case .role(let role):
            try await backend.people.setRole(role, of: user.id)
            try await tellAnew(user, "\(user.email) has the role \(role.rawValue)")
        case .sessions: tell(try await backend.people.sessions(of: user.id, limit: Self.sessionsMax))
        case .endSessions:
            let count = try await backend.people.endSessions(of: user.id)
            let fact = OrderedJSON.objectOf(["id": .integer(user.id.value), "ended": .integer(count)])
            terminal.line(asJSON ? fact.text : "\(count) \(noun(count, "session")) of \(user.email) ended.")
        case .erase(let isMeant): try await erase(user, isMeant: isMeant)
        }
        return Operator.Status.success
    }

    private func tellAnew(_ user: User, _ fact: String) async throws {
        tell(try await backend.users.find(user.id), fact)
    }

    private func erase(_ user: User, isMeant: Bool) async throws {
        var erasure = try await backend.people.erasure(of: user.id)
        if isMeant {
            try await backend.users.setBlocked(true, of: user.id, by: nil)
            try await context.sleep(Self.settleSeconds)
            let sessions = erasure.sessions
            erasure = try await backend.people.erase(user.id)
            erasure = erasure.with(sessions: sessions)
        }
        guard !asJSON else {
            return terminal.line(
                OrderedJSON.objectOf([
                    "id": .integer(user.id.value), "erased": .bool(isMeant), "counts": erasure.json,
                ]).text)
        }
        terminal.line(
            isMeant ? "id:\(user.id) is erased:" : "Nothing is changed. Of \(user.email), id:\(user.id), this would go:"
        )
        for (count, one, many) in erasure.words where count > 0 {
            terminal.line("  \(count) \(noun(count, one, many))")
        }
        guard isMeant else { return terminal.warn("martlet user erase id:\(user.id) --yes does it") }
        terminal.line("Backups that were made before still have it, and workers delete the files now.")
    }

    // MARK: Words

    func tell(_ user: User, _ fact: String) {
        guard asJSON else { return terminal.line(fact) }
        terminal.line(Self.json(user, fact: fact).text)
    }

    private static func json(_ user: User, fact: String? = nil) -> OrderedJSON {
        var members: KeyValuePairs<String, OrderedJSON> {
            [
                "id": .integer(user.id.value), "username": .string(user.username), "email": .string(user.email),
                "role": .string(user.role.rawValue), "blocked": .bool(user.blocked),
                "confirmed": .bool(user.confirmed), "created_at": .string(user.createdAt.ISO8601Format()),
            ]
        }
        var all = members.map { JSONObject.Member(name: $0.key, value: $0.value) }
        if let fact { all.append(JSONObject.Member(name: "fact", value: .string(fact))) }
        return .object(JSONObject(members: all))
    }

    func tell(_ users: [User], limit: Int) {
        guard !asJSON else { return terminal.line(OrderedJSON.array(users.map { Self.json($0) }).text) }
        guard !users.isEmpty else { return terminal.line("There are none.") }
        var table = Table([
            ("id", .right), ("username", .left), ("e-mail", .left), ("role", .left), ("since", .left), ("", .left),
        ])
        for user in users {
            let notes = (user.blocked ? ["blocked"] : []) + (user.confirmed ? [] : ["unconfirmed"])
            table.add(
                "\(user.id)", user.username, user.email, user.role.rawValue, user.createdAt.ISO8601Format(),
                notes.joined(separator: ", "))
        }
        for line in table.lines { terminal.line(line) }
        if users.count == limit, let last = users.last { terminal.warn("there may be more: --after \(last.id)") }
    }

    private func tell(_ sessions: [OpenSession]) {
        guard !asJSON else {
            let rows = sessions.map { session in
                OrderedJSON.objectOf([
                    "id": .integer(session.id.value), "kind": .string(session.kind.rawValue),
                    "started_at": .string(session.startedAt.ISO8601Format()),
                    "refreshed_at": session.refreshedAt.map { .string($0.ISO8601Format()) } ?? .null,
                    "expires_at": .string(session.expiresAt.ISO8601Format()),
                ])
            }
            return terminal.line(OrderedJSON.array(rows).text)
        }
        guard !sessions.isEmpty else { return terminal.line("There are none.") }
        var table = Table([
            ("id", .right), ("kind", .left), ("started", .left), ("refreshed", .left), ("expires", .left),
        ])
        for session in sessions {
            table.add(
                "\(session.id)", session.kind.rawValue, session.startedAt.ISO8601Format(),
                session.refreshedAt?.ISO8601Format() ?? "-", session.expiresAt.ISO8601Format())
        }
        for line in table.lines { terminal.line(line) }
        if sessions.count == Self.sessionsMax { terminal.warn("there may be more; the newest are shown") }
    }
}

extension Erasure {
    /// In the words of `--json`.
    var counts: KeyValuePairs<String, Int64> {
        [
            "sessions": Int64(sessions), "files": Int64(files), "file_bytes": fileBytes,
            "applications": Int64(applications), "alerts": Int64(alerts), "mails": Int64(mails),
            "rooms": Int64(rooms), "messages": Int64(messages), "postings_closed": Int64(postings),
        ]
    }

    /// The same for people: how many, and the words for one and for several.
    var words: [(count: Int64, one: String, many: String)] {
        [
            (Int64(sessions), "session", "sessions"), (Int64(files), "file", "files"),
            (fileBytes, "byte of files", "bytes of files"), (Int64(applications), "application", "applications"),
            (Int64(alerts), "alert", "alerts"), (Int64(mails), "mail", "mails"), (Int64(rooms), "room", "rooms"),
            (Int64(messages), "message", "messages"), (Int64(postings), "posting closed", "postings closed"),
        ]
    }

    var json: OrderedJSON {
        .object(JSONObject(members: counts.map { JSONObject.Member(name: $0.key, value: .integer($0.value)) }))
    }
}
