import Synchronization

/// Whether the database's schema is one that this program can work with, for `/readyz`.
///
/// A schema that is older than the program lacks what its statements name, so the process is not ready until somebody
/// migrates. A newer one is what a rolling upgrade begins with: migrations keep what the release before them needs, so
/// the process stays ready and says so.
public final class SchemaWatch: Sendable {
    /// Between two looks while the schema does, and between two while it does not or is not known.
    static let lookSeconds = 60.0
    static let retrySeconds = 1.0

    /// What the database says: whether the program's own newest migration is applied, and the newest of all that are.
    public typealias Look = @Sendable () async throws -> (isApplied: Bool, newest: String?)

    private enum Standing: Equatable {
        case unknown
        case current
        case older(than: String)
        case newer(String)
    }

    private let version: String
    private let look: Look
    private let clock: any ServiceClock
    private let log: Log
    private let standing = Mutex(Standing.unknown)
    private let task = Mutex<Task<Void, Never>?>(nil)

    /// - Parameter version: of the newest migration that the program knows.
    public init(version: String, look: @escaping Look, clock: any ServiceClock, log: Log) {
        self.version = version
        self.look = look
        self.clock = clock
        self.log = log
    }

    deinit { task.withLock { $0?.cancel() } }

    /// Begins when the process starts, and is over with it.
    public func begin(_ health: Health) {
        health.require("schema") { self.problem }
        health.mention("schema") { self.remark }
        health.whenStarting { self.start() }
    }

    /// Why this program cannot work with the schema; nil when it can.
    public var problem: String? {
        switch standing.withLock({ $0 }) {
        case .unknown: "the schema has not been read yet"
        case .older(let found): "the schema is older than this program (\(found)): run martlet migrate"
        case .current, .newer: nil
        }
    }

    /// What is to be known of a schema that does.
    public var remark: String? {
        guard case .newer(let found) = standing.withLock({ $0 }) else { return nil }
        return "the schema is newer than this program (\(found), it knows \(version)): bring the program up to date"
    }

    private func start() {
        task.withLock { task in
            guard task == nil else { return }
            task = Task { [weak self, clock] in
                while !Task.isCancelled {
                    await self?.lookOnce()
                    guard let seconds = self?.pause else { return }
                    do { try await clock.sleep(seconds: seconds) } catch { return }
                }
            }
        }
    }

    private var pause: Double { problem == nil ? Self.lookSeconds : Self.retrySeconds }

    func lookOnce() async {
        // A database that is away tells by other checks, and its schema is what it was.
        guard let found = try? await look() else { return }
        let now: Standing =
            if !found.isApplied {
                .older(than: found.newest.map { "\($0), it needs \(version)" } ?? "there is none")
            } else if let newest = found.newest, newest > version {
                .newer(newest)
            } else {
                .current
            }
        let before = standing.withLock { standing in
            defer { standing = now }
            return standing
        }
        guard before != now else { return }
        if let problem {
            log.error("schema", ["problem": .string(problem)])
        } else if let remark {
            log.warning("schema", ["remark": .string(remark)])
        } else if before != .unknown {
            log.info("schema", ["version": .string(version)])
        }
    }
}
