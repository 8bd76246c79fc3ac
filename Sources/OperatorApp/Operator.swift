import Core
import EventLoop
import Foundation
import MediaStore
import ServiceKit

/// What the commands work with. The executable builds it from CorePostgres; nothing here knows SQL.
public protocol OperatorBackend: Sendable {
    var imports: any ImportRepository { get }
    var users: any UserRepository { get }
    var people: any PeopleRepository { get }
    var companies: any CompanyRepository { get }
    var queue: any WorkQueueOperations { get }
    var backup: any DatabaseBackup { get }
    var health: any DatabaseHealth { get }
    var databaseName: String { get }
    /// Host and port, and of several all of them; no secrets.
    var databaseAddress: String { get }
    /// - Throws: as `migrator`.
    func migrationVersions(directory: String) throws -> [String]
    /// - Throws: an error that names the file, when the folder's migrations are not well-formed.
    func migrator(directory: String) throws -> any SchemaMigrator
    /// - Throws: when the database does not answer.
    func ping() async throws
    /// Why the database cannot be used, in a sentence for the operator, where that is known.
    var obstacle: String? { get }
    /// What was said to the last attempt to connect, in PostgreSQL's words; nil when it has succeeded.
    var refusal: String? { get }
    func close() async
}

/// The operator's command: `martlet NAME …`.
public struct Operator: Sendable {
    /// Exit statuses, after sysexits.h.
    public enum Status {
        public static let success: Int32 = 0
        public static let failure: Int32 = 1
        public static let usage: Int32 = 64
        /// The database, the store or another program that is needed is not there.
        public static let unavailable: Int32 = 69
        /// Not done in time; asked again it may be.
        public static let temporary: Int32 = 75
        public static let configuration = ConfigurationError.exitStatus
    }

    let environment: [String: String]
    let terminal: Terminal
    let now: @Sendable () -> Date
    /// Waits for so many seconds. Replaced in tests.
    var sleep: @Sendable (_ seconds: Double) async throws -> Void = { try await Task.sleep(for: .seconds($0)) }
    let connect: @Sendable (_ database: DatabaseSettings) throws -> any OperatorBackend

    /// - Parameter connect: builds the backend; called once, and only by commands that need the database. It throws
    ///   when the URL is not one.
    public init(
        environment: [String: String], terminal: Terminal = .standard, now: @escaping @Sendable () -> Date = { Date() },
        connect: @escaping @Sendable (_ database: DatabaseSettings) throws -> any OperatorBackend
    ) {
        self.environment = environment
        self.terminal = terminal
        self.now = now
        self.connect = connect
    }

    static let commands: [any Command.Type] = [
        MigrateCommand.self, ImportCommand.self, CheckCommand.self, UserCommand.self, QueueCommand.self,
        BackupCommand.self, RestoreCommand.self, DoctorCommand.self, CompletionCommand.self,
    ]

    /// Runs one command and gives the process's exit status.
    /// - Parameter words: the command line without the program's name.
    public func run(_ words: [String]) async -> Int32 {
        guard let name = words.first, name != "--help", name != "-h", name != "help" else {
            terminal.write(Self.help)
            return words.isEmpty ? Status.usage : Status.success
        }
        guard name != "--version" else {
            terminal.line(Release.line(of: "martlet"))
            return Status.success
        }
        guard let command = Self.commands.first(where: { $0.syntax.name == name }) else {
            terminal.warn("there is no command \"\(name)\"; martlet --help lists them")
            return Status.usage
        }
        do {
            let arguments = try Arguments(Array(words.dropFirst()), command.syntax)
            if arguments.has("--help") {
                terminal.write(command.syntax.help)
                return Status.success
            }
            return try await command.run(arguments, self)
        } catch let error as UsageError {
            terminal.warn("\(error)\nmartlet \(name) --help says more.")
            return Status.usage
        } catch let error as ConfigurationError {
            terminal.complain("\(error)\n")
            return Status.configuration
        } catch let error as Obstacle {
            terminal.warn("\(error)")
            return Status.configuration
        } catch let error as AppError where error.code == .unavailable {
            terminal.warn("\(Self.explain(error))\nmartlet check says what is wrong with the database.")
            return Status.unavailable
        } catch {
            terminal.warn(Self.explain(error))
            return Status.failure
        }
    }

    static var help: String {
        let syntaxes = commands.map { $0.syntax }
        let width = (syntaxes.map(\.name.count).max() ?? 0) + 2
        let lines = syntaxes.map { syntax in
            "  " + syntax.name + String(repeating: " ", count: width - syntax.name.count) + syntax.summary
        }
        return """
            Usage: martlet COMMAND [options]

            \(lines.joined(separator: "\n"))

            martlet COMMAND --help says more of each, martlet --version which Martlet it is.
            The database is the one of MARTLET_DATABASE_URL.
            Exit status: 0 done, 1 failed, 64 the command line is wrong, 69 something that is needed is away,
            75 not done in time, 78 the configuration is wrong.

            """
    }

    static func explain(_ error: any Error) -> String {
        switch error {
        case let error as AppError: error.message
        case is CancellationError: "stopped"
        default: "\(error)"
        }
    }

    /// Opens the backend for `body`, and closes it whatever happens.
    func withBackend<T>(_ body: (any OperatorBackend) async throws -> T) async throws -> T {
        var settings = Environment(environment)
        let database = DatabaseSettings(&settings)
        if database.isPooled, database.directURL == nil {
            settings.mistake(
                "MARTLET_DATABASE_DIRECT_URL is not set: this command needs PostgreSQL itself, not a pooler before it")
        }
        try settings.check()
        let backend: any OperatorBackend
        do {
            backend = try connect(database)
        } catch {
            let names = ["MARTLET_DATABASE_URL"] + (database.directURL == nil ? [] : ["MARTLET_DATABASE_DIRECT_URL"])
            throw ConfigurationError(["\(names.joined(separator: " or ")): \(error)"])
        }
        let result: Result<T, any Error>
        do {
            result = .success(try await body(backend))
        } catch {
            result = .failure(backend.obstacle.map(Obstacle.init) ?? error)
        }
        await backend.close()
        return try result.get()
    }
}

extension Operator {
    /// Threads for files, and what may wait for them.
    private static let fileThreads = 4
    private static let filesWaitingMax = 256

    func withFiles<T>(_ body: (OffloadPool) async throws -> T) async throws -> T {
        let files = OffloadPool(name: "files", threads: Self.fileThreads, queueMax: Self.filesWaitingMax)
        defer { files.stop() }
        return try await body(files)
    }

    /// Opens the store that `MARTLET_STORE` names.
    func withStore<T>(_ body: (any WorkingStore, OffloadPool) async throws -> T) async throws -> T {
        try await withFiles { files in
            var settings = Environment(environment)
            let opened = StoreSettings.open(&settings, files: files, clock: SystemClock())
            try settings.check()
            guard let opened else { throw ConfigurationError(["MARTLET_STORE is not set"]) }
            return try await body(opened.store, files)
        }
    }
}

/// Why the database cannot be used as it is configured.
struct Obstacle: Error, CustomStringConvertible {
    let description: String
}

/// One command of `martlet`.
protocol Command: SendableMetatype {
    static var syntax: CommandSyntax { get }
    /// - Returns: the exit status.
    static func run(_ arguments: Arguments, _ context: Operator) async throws -> Int32
}
