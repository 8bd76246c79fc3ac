import Postgres
import Synchronization

/// The wake-ups of a process: one listening connection, a constant number of channels. What a notification says is a
/// hint; rows are the truth, and everything works without it, by polling.
public final class PostgresBus: Sendable {
    /// Between attempts while the database is away.
    static let retrySecondsMax = 2

    private let database: Database
    private let channels: [String: @Sendable (_ payload: String) -> Void]
    private let advisoryLock: Int64?
    private let task = Mutex<Task<Void, Never>?>(nil)
    /// It listens as long as it is kept.
    private let listener = Mutex<Listener?>(nil)
    private let pause: @Sendable (_ seconds: Int) async throws -> Void

    /// - Parameters:
    ///   - channels: what to do on each. Called on a loop: it must not block.
    ///   - advisoryLock: what the listening connection holds, for others to see that this process lives.
    ///   - pause: waits; throws when cancelled.
    public init(
        database: Database, channels: [String: @Sendable (_ payload: String) -> Void], advisoryLock: Int64? = nil,
        pause: @escaping @Sendable (_ seconds: Int) async throws -> Void
    ) {
        self.database = database
        self.channels = channels
        self.advisoryLock = advisoryLock
        self.pause = pause
    }

    /// Returns at once; listens as soon as the database is there. Every channel is woken when listening begins, also
    /// after a loss: what was sent before did not arrive.
    public func start() {
        task.withLock { task in
            guard task == nil else { return }
            task = Task { [self] in await listen() }
        }
    }

    public func stop() {
        task.withLock { $0?.cancel() }
        listener.withLock { $0 = nil }
    }

    private func listen() async {
        let channels = channels
        let all: @Sendable () -> Void = { for wake in channels.values { wake("") } }
        while !Task.isCancelled {
            do {
                // The driver reconnects by itself from here on.
                let listening = try await database.listen(
                    channels.keys.sorted(), advisoryLock: advisoryLock,
                    onWake: { channels[$0.channel]?($0.payload) }, onReconnect: all)
                listener.withLock { $0 = Task.isCancelled ? nil : listening }
                all()
                return
            } catch {
                guard (try? await pause(Self.retrySecondsMax)) != nil else { return }
            }
        }
    }
}
