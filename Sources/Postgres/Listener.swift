import Cpq
import EventLoop
import Foundation
import Synchronization

/// A wake-up that arrived by NOTIFY. The payload is a hint; the rows are the truth.
public struct PostgresNotification: Sendable, Equatable {
    public let channel: String
    public let payload: String
    /// The server process of the connection that sent it.
    public let processID: Int32
}

/// LISTENs on a connection of its own until it is stopped. Keep it: letting go of it stops it.
public final class Listener: Sendable {
    /// Channels are constant and few: each costs every commit that notifies.
    public static let channelsMax = 8
    /// NAMEDATALEN - 1.
    public static let channelBytesMax = 63

    private let home: ListenerLoop

    init(home: ListenerLoop) { self.home = home }

    deinit { home.stopSoon() }

    /// The server process of the present connection; nil while there is none.
    public var processID: Int32? {
        get async { await home.processID }
    }

    /// Ends the connection. Nothing is delivered afterwards.
    public func stop() async { await home.stop() }
}

extension Database {
    /// Opens a connection and LISTENs. Returns once the server has agreed; from then on `onWake` gets every
    /// notification, on a loop, and must not block. After a loss the connection is made again, with growing pauses;
    /// when it LISTENs again `onReconnect` is called: what was sent in between did not arrive, so read the rows.
    /// - Parameters:
    ///   - channels: 1 to `Listener.channelsMax` constant names of at most 63 bytes.
    ///   - advisoryLock: the key of a lock that the connection holds as long as it lives; others see by it, in
    ///     `pg_locks`, that this process does. It is shared, so that a new connection does not wait until the server
    ///     notices that the one before is gone.
    /// - Throws: `PostgresMisuse.channelName`, `.noSession` behind a pooler; `PostgresUnavailable` when the server
    ///   does not agree in time.
    public func listen(
        _ channels: [String], advisoryLock: Int64? = nil,
        onWake: @escaping @Sendable (PostgresNotification) -> Void,
        onReconnect: @escaping @Sendable () -> Void
    ) async throws -> Listener {
        guard (1...Listener.channelsMax).contains(channels.count),
            channels.allSatisfy({
                (1...Listener.channelBytesMax).contains($0.utf8.count) && !$0.utf8.contains(0)
            })
        else { throw PostgresMisuse.channelName }
        guard let direct else { throw PostgresMisuse.noSession }
        let home = ListenerLoop(
            database: self, direct: direct, loop: loops.loops[0], channels: channels, advisoryLock: advisoryLock,
            onWake: onWake,
            onReconnect: onReconnect)
        listeners.withLock { $0.append(home) }
        do {
            try await home.start()
        } catch {
            await home.stop()
            throw error
        }
        return Listener(home: home)
    }
}

/// The listening connection, on its loop.
actor ListenerLoop {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private let configuration: PostgresConfiguration
    private let resolver: Resolver
    private let random: @Sendable () -> Double
    private let log: @Sendable (PostgresEvent) -> Void
    private let statement: String
    private let locks: Bool
    private let onWake: @Sendable (PostgresNotification) -> Void
    private let onReconnect: @Sendable () -> Void

    private var connection: Connection?
    private var backoff: Backoff
    private var retry: LoopTimer?
    private var starting: CheckedContinuation<Void, any Error>?
    private var startDeadline: LoopTimer?
    private var isListening = false
    private var hasListened = false
    private var isStopped = false
    private var failure: String?

    init(
        database: Database, direct: (configuration: PostgresConfiguration, resolver: Resolver), loop: EventLoop,
        channels: [String], advisoryLock: Int64?,
        onWake: @escaping @Sendable (PostgresNotification) -> Void, onReconnect: @escaping @Sendable () -> Void
    ) {
        self.loop = loop
        configuration = direct.configuration
        resolver = direct.resolver
        random = database.random
        log = database.log
        self.onWake = onWake
        self.onReconnect = onReconnect
        locks = advisoryLock != nil
        let listens = channels.map { "LISTEN \"\($0.replacing("\"", with: "\"\""))\";" }.joined(separator: " ")
        statement = listens + (advisoryLock.map { " SELECT pg_try_advisory_lock_shared(\($0));" } ?? "")
        backoff = Backoff(
            firstMilliseconds: configuration.reconnectFirstMilliseconds,
            maxMilliseconds: configuration.reconnectMilliseconds)
    }

    var processID: Int32? {
        guard isListening, let raw = connection?.raw else { return nil }
        return PQbackendPID(raw)
    }

    func start() async throws {
        let wait = UInt64(configuration.acquireMilliseconds)
        try await withCheckedThrowingContinuation { continuation in
            starting = continuation
            let timer = LoopTimer(on: loop) { self.answerStart(.failure(PostgresUnavailable.notReachable)) }
            timer.start(milliseconds: wait)
            startDeadline = timer
            open()
        }
    }

    private func answerStart(_ result: Result<Void, any Error>) {
        startDeadline?.cancel()
        startDeadline = nil
        starting?.resume(with: result)
        starting = nil
    }

    func stop() {
        isStopped = true
        isListening = false
        retry?.cancel()
        retry = nil
        connection?.close()
        connection = nil
        answerStart(.failure(PostgresUnavailable.closed))
    }

    nonisolated func stopSoon() {
        loop.execute { self.assumeIsolated { $0.stop() } }
    }

    private func open() {
        if let attempt = resolver.ready(for: .listen) { return connect(attempt) }
        Task {
            do {
                connect(try await resolver.resolve(for: .listen))
            } catch {
                lost("\(error)")
            }
        }
    }

    private func connect(_ attempt: Resolver.Attempt) {
        guard !isStopped else { return }
        let connection = Connection(on: loop)
        self.connection = connection
        failure = nil
        connection.onReady = {
            if let raw = self.connection?.raw { attempt.succeeded(raw) }
            self.sendListen()
        }
        connection.onInput = { self.drain() }
        connection.onLost = { reason in
            if !self.isListening { attempt.failed() }
            self.lost(reason)
        }
        connection.open(attempt.parameters, milliseconds: configuration.connectMilliseconds(attempt))
    }

    private func sendListen() {
        guard let connection, let raw = connection.raw else { return }
        guard PQsendQuery(raw, statement) == 1 else { return connection.lose("LISTEN could not be sent") }
        connection.flush()
    }

    private func drain() {
        guard let connection, let raw = connection.raw else { return }
        while PQisBusy(raw) == 0, let result = PQgetResult(raw) {
            defer { PQclear(result) }
            switch PQresultStatus(result) {
            case PGRES_FATAL_ERROR: failure = "\(PostgresError(result: result))"
            case PGRES_TUPLES_OK where locks:
                // Nobody of ours takes it for itself alone, but then nobody would see that we live.
                if PQgetvalue(result, 0, 0).map({ String(cString: $0) }) != "t" { failure = "the lock is held" }
            default: break
            }
        }
        if let failure { return connection.lose(failure) }
        if !isListening, PQisBusy(raw) == 0 { listening() }
        while let notification = PQnotifies(raw) {
            let wake = PostgresNotification(
                channel: notification.pointee.relname.map { String(cString: $0) } ?? "",
                payload: notification.pointee.extra.map { String(cString: $0) } ?? "",
                processID: notification.pointee.be_pid)
            PQfreemem(notification)
            onWake(wake)
            guard connection.raw != nil else { return }
        }
    }

    private func listening() {
        isListening = true
        backoff.reset()
        log(PostgresEvent(.listening, .listen))
        if hasListened { onReconnect() }
        hasListened = true
        answerStart(.success(()))
    }

    private func lost(_ reason: String) {
        guard !isStopped else { return }
        connection = nil
        isListening = false
        let pause = backoff.next(random: random())
        log(
            PostgresEvent(
                PoolerSign.isIn(reason) ? .poolerMet : .connectionLost, .listen, reason: reason,
                retryMilliseconds: pause))
        let timer = LoopTimer(on: loop) { self.retryNow() }
        timer.start(milliseconds: pause)
        retry = timer
    }

    private func retryNow() {
        retry = nil
        guard !isStopped else { return }
        open()
    }
}
