import Core
import Crypto
import Foundation

enum UserCommand: Command {
    static let limitMax = 1000

    enum Action: String, CaseIterable {
        case create, ls, show, block, unblock, password, role, sessions
        case endSessions = "end-sessions"
        case erase
    }

    static let syntax = CommandSyntax(
        "user", "Creates, lists, blocks and erases people; their passwords, roles and sessions.",
        operands: "\(Action.allCases.map(\.rawValue).joined(separator: "|")) [WHO] [ROLE]", count: 1...3,
        actions: Action.allCases.map(\.rawValue),
        options: [
            .init("--email", "ADDRESS", "create: of the new person"),
            .init("--username", "NAME", "create: of the new person"),
            .init("--password-file", "FILE", "a file that holds the password; - reads standard input"),
            .init("--company", "NAME", "create: makes the company, and the new person its representative"),
            .init("--role", "ROLE", "ls: people with this role", values: roles),
            .init("--blocked", "yes|no", "ls: those who are blocked, or those who are not", values: yesNo),
            .init("--find", "TEXT", "ls: a part of the e-mail address, the username or the name"),
            .init("--limit", "N", "ls: people in a page (default 50)"),
            .init("--after", "ID", "ls: the page after the one that ended with this person"),
            .init("--yes", nil, "erase: do it; without it, only count"),
        ],
        notes: """
            WHO is an e-mail address, a username, or id:NUMBER. To create somebody who is there already is no mistake;
            what is missing, the company for example, is added. To block somebody, or to set a password, ends all
            sessions.
            show          says whether somebody may sign in; with --json all that is known of the account
            role          gives somebody the role ROLE: \(roles.joined(separator: " or "));
                          there is always an administrator left
            sessions      those that are not over; end-sessions ends them, their sockets within a second
            erase         the right to erasure: what is personal goes from all tables and from the object store.
                          Nothing brings it back but a backup. Without --yes it only says how much there is
            """)

    private static let roles = User.Role.allCases.map(\.rawValue)
    private static let yesNo = ["yes", "no"]

    static func run(_ arguments: Arguments, _ context: Operator) async throws -> Int32 {
        let word = arguments.operands[0]
        guard let action = Action(rawValue: word) else {
            throw UsageError(
                "martlet user knows \(Action.allCases.map(\.rawValue).joined(separator: ", ")), not \"\(word)\"")
        }
        let wanted =
            switch action {
            case .create, .ls: 1
            case .role: 3
            default: 2
            }
        guard arguments.operands.count == wanted else {
            throw UsageError(
                "martlet user \(word) " + ["takes options only", "needs WHO", "needs WHO and ROLE"][wanted - 1])
        }
        guard action == .erase || !arguments.has("--yes") else { throw UsageError("--yes is for martlet user erase") }
        guard action != .create else { return try await create(arguments, context) }
        guard action != .ls else { return try await list(arguments, context) }
        let change = try Change(action, arguments)
        let who = arguments.operands[1]
        return try await context.withBackend { backend in
            guard let user = try await find(who, backend) else {
                return try await miss(who, change, backend, context)
            }
            let view = PersonView(backend: backend, context: context, asJSON: arguments.has("--json"))
            return try await view.perform(change, on: user)
        }
    }

    /// Whoever erases by ids, after a restore for example, may do so again; and an erasure that was broken off after
    /// its transaction is brought to its end.
    private static func miss(
        _ who: String, _ change: Change, _ backend: any OperatorBackend, _ context: Operator
    ) async throws -> Int32 {
        guard case .erase(let isMeant) = change else {
            throw AppError(.notFound, "there is nobody with the address, name or id \(who)")
        }
        guard let id = try idOf(who) else {
            throw AppError(
                .notFound,
                "there is nobody with the address or name \(who); if erasing was broken off, "
                    + "martlet user erase id:NUMBER --yes brings it to its end")
        }
        let late = isMeant ? try await backend.people.finishErasure(of: id) : 0
        context.terminal.warn("there is nobody with \(who), so there is nothing to erase")
        if late > 0 {
            context.terminal.warn(
                "\(late) \(noun(late, "text was", "texts were")) stored during the erasure, and emptied now")
        }
        return Operator.Status.success
    }

    /// What is to be done with somebody, as far as it can be judged without a database.
    enum Change {
        case show, block, unblock, sessions, endSessions
        case password(String)
        case role(User.Role)
        case erase(isMeant: Bool)

        init(_ action: Action, _ arguments: Arguments) throws {
            switch action {
            case .block: self = .block
            case .unblock: self = .unblock
            case .password: self = .password(try User.acceptPassword(try UserCommand.password(arguments)))
            case .role:
                let word = arguments.operands[2]
                guard let role = User.Role(rawValue: word) else {
                    throw UsageError("there is no role \"\(word)\"; there are \(roles.joined(separator: ", "))")
                }
                self = .role(role)
            case .sessions: self = .sessions
            case .endSessions: self = .endSessions
            case .erase: self = .erase(isMeant: arguments.has("--yes"))
            case .show, .create, .ls: self = .show
            }
        }
    }

    private static let idPrefix = "id:"

    private static func find(_ who: String, _ backend: any OperatorBackend) async throws -> User? {
        guard let id = try idOf(who) else {
            return try await backend.users.findForSignIn(identifier: who)?.user
        }
        do { return try await backend.users.find(id) } catch let error as AppError where error.code == .notFound {
            return nil
        }
    }

    /// Nil where it is an address or a name.
    private static func idOf(_ who: String) throws -> User.ID? {
        guard who.hasPrefix(idPrefix) else { return nil }
        guard let id = User.ID(text: who.dropFirst(idPrefix.count)) else {
            throw UsageError("\"\(who)\" has no number")
        }
        return id
    }

    private static func list(_ arguments: Arguments, _ context: Operator) async throws -> Int32 {
        func word(_ option: String, of known: [String]) throws -> String? {
            guard let text = arguments.value(option) else { return nil }
            guard known.contains(text) else {
                throw UsageError(
                    "there is no \(option.dropFirst(2)) \"\(text)\"; there are \(known.joined(separator: ", "))")
            }
            return text
        }
        let filter = UserFilter(
            role: try word("--role", of: roles).flatMap(User.Role.init),
            blocked: try word("--blocked", of: yesNo).map { $0 == "yes" },
            part: arguments.value("--find"))
        let limit = try arguments.integer("--limit", in: 1...limitMax) ?? 50
        let after = try arguments.value("--after").map { text in
            guard let id = User.ID(text: text) else { throw UsageError("\"\(text)\" is not the id of a person") }
            return id
        }
        return try await context.withBackend { backend in
            let users = try await backend.people.list(filter, after: after, limit: limit)
            PersonView(backend: backend, context: context, asJSON: arguments.has("--json")).tell(users, limit: limit)
            return Operator.Status.success
        }
    }

    private static func create(_ arguments: Arguments, _ context: Operator) async throws -> Int32 {
        let draft = try User.Draft(
            username: try arguments.required("--username"), email: try arguments.required("--email"),
            password: try password(arguments))
        let company = try arguments.value("--company").map { try Company.Draft(name: $0) }
        return try await context.withBackend { backend in
            var facts: [String] = []
            let user: User
            if let found = try await backend.users.findForSignIn(identifier: draft.email) {
                user = found.user
                facts.append("\(user.email) is there already")
            } else {
                user = try await backend.users.create(draft, passwordHash: try PasswordHasher().hash(draft.password))
                facts.append("\(user.email) is created")
            }
            if let company {
                if let own = try await backend.companies.own(of: user.id) {
                    facts.append("represents \(own.name) already")
                } else {
                    let made = try await backend.companies.save(company, logo: nil, representative: user.id)
                    facts.append("represents \(made.name) now")
                }
            }
            PersonView(backend: backend, context: context, asJSON: arguments.has("--json"))
                .tell(user, facts.joined(separator: " and "))
            return Operator.Status.success
        }
    }

    private static func password(_ arguments: Arguments) throws -> String {
        let path = try arguments.required("--password-file")
        let data =
            path == "-"
            ? try FileHandle.standardInput.read(upToCount: User.passwordBytesMax + 2) ?? Data()
            : FileManager.default.contents(atPath: path)
        guard let data else { throw ImportError("\(path) cannot be read") }
        guard data.count <= User.passwordBytesMax + 2, let text = String(data: data, encoding: .utf8) else {
            throw AppError.invalid("password", "the password file has more than one password of text in it")
        }
        // Editors and echo end the line.
        let hasEnd = text.hasSuffix("\n") || text.hasSuffix("\r\n")
        return hasEnd ? String(text.dropLast()) : text
    }
}
