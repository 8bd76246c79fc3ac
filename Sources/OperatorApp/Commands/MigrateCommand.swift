import Core
import Foundation
import ServiceKit

enum MigrateCommand: Command {
    static let migrationsOption = CommandSyntax.Option(
        "--migrations", "DIR", "the migrations (default: MARTLET_MIGRATIONS, ./migrations, or beside the program)")

    static let syntax = CommandSyntax(
        "migrate", "Brings the database's schema up to date, or shows how it stands.", operands: "[up|down|status]",
        count: 0...1, actions: ["up", "down", "status"],
        options: [MigrateCommand.migrationsOption],
        notes: """
            up      applies what is pending, oldest first (the default). Several may run at once: one does the work.
            down    takes the newest applied migration back, with all that its tables hold.
            status  lists them all; exits with 1 when one is pending or changed.
            """)

    static func run(_ arguments: Arguments, _ context: Operator) async throws -> Int32 {
        let action = arguments.operands.first ?? "up"
        guard ["up", "down", "status"].contains(action) else {
            throw UsageError("martlet migrate knows up, down and status, not \"\(action)\"")
        }
        let directory = try directory(arguments, context)
        return try await context.withBackend { backend in
            // Its sessions would not notice a pooler that shares them out; a ping does.
            try await backend.ping()
            let migrator = try backend.migrator(directory: directory)
            let asJSON = arguments.has("--json")
            switch action {
            case "up": return try await up(migrator, context.terminal, asJSON: asJSON)
            case "down": return try await down(migrator, context.terminal, asJSON: asJSON)
            default: return try await status(migrator, context.terminal, asJSON: asJSON)
            }
        }
    }

    static func directory(_ arguments: Arguments, _ context: Operator) throws -> String {
        if let given = arguments.value("--migrations") { return given }
        var settings = Environment(context.environment)
        let given = settings.value("MARTLET_MIGRATIONS")
        try settings.check()
        if let given { return given }
        let program = URL(filePath: CommandLine.arguments.first ?? "").resolvingSymlinksInPath()
        let prefix = program.deletingLastPathComponent().deletingLastPathComponent()
        let shared = prefix.appending(path: "share/martlet/migrations")
        for path in ["migrations", shared.path] where FileManager.default.fileExists(atPath: path) { return path }
        throw ConfigurationError([
            "there is no folder ./migrations; MARTLET_MIGRATIONS or --migrations says where the migrations are"
        ])
    }

    private static func up(_ migrator: any SchemaMigrator, _ terminal: Terminal, asJSON: Bool) async throws -> Int32 {
        let report = try await migrator.up { step in
            if !asJSON { terminal.line("\(step.name): applied in \(Int(step.milliseconds)) ms") }
        }
        if asJSON {
            terminal.line(
                OrderedJSON.objectOf([
                    "applied": .array(
                        report.applied.map {
                            .objectOf(["name": .string($0.name), "milliseconds": .integer(Int($0.milliseconds))])
                        }), "waited": .bool(report.waited), "unknown": .array(report.unknown.map { .string($0) }),
                ]).text)
            return Operator.Status.success
        }
        if report.applied.isEmpty {
            terminal.line("The schema is up to date" + (report.waited ? "; another process has just done it." : "."))
        }
        if !report.unknown.isEmpty {
            terminal.warn("the database has migrations that are not here: \(report.unknown.joined(separator: ", "))")
        }
        return Operator.Status.success
    }

    private static func down(_ migrator: any SchemaMigrator, _ terminal: Terminal, asJSON: Bool) async throws -> Int32 {
        let step = try await migrator.down()
        if asJSON {
            terminal.line(OrderedJSON.objectOf(["taken_back": step.map { .string($0.name) } ?? .null]).text)
        } else {
            terminal.line(step.map { "\($0.name): taken back" } ?? "No migration is applied.")
        }
        return Operator.Status.success
    }

    private static func status(
        _ migrator: any SchemaMigrator, _ terminal: Terminal, asJSON: Bool
    ) async throws -> Int32 {
        let states = try await migrator.status()
        if asJSON {
            terminal.line(
                OrderedJSON.array(
                    states.map {
                        .objectOf([
                            "version": .string($0.version), "name": .string($0.name),
                            "state": .string($0.standing.rawValue),
                        ])
                    }
                ).text)
        } else {
            for state in states {
                let word = state.standing.rawValue
                let name = state.name.isEmpty ? state.version : state.name
                terminal.line(word + String(repeating: " ", count: 9 - word.count) + name)
            }
        }
        let isCurrent = states.allSatisfy { $0.standing == .applied || $0.standing == .unknown }
        return isCurrent ? Operator.Status.success : Operator.Status.failure
    }
}
