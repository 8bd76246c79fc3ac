import Core
import Crypto
import Foundation

enum UserCommand: Command {
    static let syntax = CommandSyntax(
        "user", "Creates, shows, blocks and unblocks people, and sets their passwords.",
        operands: "create|show|block|unblock|password [WHO]", count: 1...2,
        actions: ["create", "show", "block", "unblock", "password"],
        options: [
            .init("--email", "ADDRESS", "of the new person"),
            .init("--username", "NAME", "of the new person"),
            .init("--password-file", "FILE", "a file that holds the password; - reads standard input"),
            .init("--company", "NAME", "makes the company, and the new person its representative"),
        ],
        notes: """
            WHO is an e-mail address or a username. To create somebody who is there already is no mistake; what is
            missing, the company for example, is added. To block somebody, or to set a password, ends all sessions.
            """)

    static func run(_ arguments: Arguments, _ context: Operator) async throws -> Int32 {
        let action = arguments.operands[0]
        switch action {
        case "create":
            guard arguments.operands.count == 1 else { throw UsageError("martlet user create takes options only") }
            return try await create(arguments, context)
        case "show", "block", "unblock", "password":
            guard arguments.operands.count == 2 else { throw UsageError("martlet user \(action) needs WHO") }
            return try await change(action, who: arguments.operands[1], arguments, context)
        default: throw UsageError("martlet user knows create, show, block, unblock and password, not \"\(action)\"")
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
            tell(user, facts.joined(separator: " and "), arguments, context.terminal)
            return Operator.Status.success
        }
    }

    private static func change(
        _ action: String, who: String, _ arguments: Arguments, _ context: Operator
    ) async throws -> Int32 {
        let password = action == "password" ? try User.acceptPassword(password(arguments)) : nil
        return try await context.withBackend { backend in
            guard let user = try await backend.users.findForSignIn(identifier: who)?.user else {
                throw AppError(.notFound, "there is nobody with the address or name \(who)")
            }
            var fact = user.blocked ? "\(user.email) is blocked" : "\(user.email) may sign in"
            if action == "block" || action == "unblock" {
                try await backend.users.setBlocked(action == "block", of: user.id, by: nil)
                fact = action == "block" ? "\(user.email) is blocked" : "\(user.email) may sign in"
            }
            if let password {
                let hash = try PasswordHasher().hash(password)
                try await backend.users.setPassword(hash, of: user.id, endingSessionsExcept: nil)
                fact = "the password of \(user.email) is set"
            }
            tell(try await backend.users.find(user.id), fact, arguments, context.terminal)
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

    private static func tell(_ user: User, _ fact: String, _ arguments: Arguments, _ terminal: Terminal) {
        guard arguments.has("--json") else { return terminal.line(fact) }
        terminal.line(
            OrderedJSON.objectOf([
                "id": .integer(user.id.value), "username": .string(user.username), "email": .string(user.email),
                "blocked": .bool(user.blocked), "fact": .string(fact),
            ]).text)
    }
}
