import EventLoop
import Foundation
import HTTPServer

/// What every service is given: made once in `main`, before anything else.
public struct ServiceContext: Sendable {
    public let name: String
    public let log: Log
    public let metrics: Metrics
    public let health: Health
    public let loops: LoopGroup
    public let clock: any ServiceClock
    /// Nil: nothing is traced.
    public let traces: Traces?
}

/// A built service, not started yet.
public struct Service: Sendable {
    /// Starts to serve. Returns when the process may be given work, or could be as soon as its dependencies are there.
    public let start: @Sendable () async throws -> Void
    /// Stops without losing anything, within the seconds given.
    public let stop: @Sendable (_ graceSeconds: Int) async -> Void

    public init(
        start: @escaping @Sendable () async throws -> Void,
        stop: @escaping @Sendable (_ graceSeconds: Int) async -> Void
    ) {
        self.start = start
        self.stop = stop
    }
}

public enum ServiceRunner {
    /// From SIGTERM on, for requests to finish.
    public static let graceSecondsMax = 8
    /// From SIGTERM to the end, whatever hangs; a container is given 30 seconds.
    public static let exitSecondsMax = 10
    /// `MARTLET_UNREADY_SECONDS`, so that requests under way have their time as well.
    public static let unreadySecondsMax = 5

    /// Reads the settings all services share, builds the service, runs it until SIGTERM or SIGINT, and stops it.
    /// With the argument `health` it asks the one that runs instead; `--help` and `--version` are answered.
    /// - Parameter summary: what the service is, in a sentence for `--help`.
    /// - Returns: the exit status: 0, 1 when it could not start, 64 for arguments that it does not take, 78 for a wrong
    ///   configuration.
    public static func run(
        _ name: String, _ summary: String, environment values: [String: String] = ProcessInfo.processInfo.environment,
        arguments: [String] = CommandLine.arguments,
        build: (ServiceContext, inout Environment) async throws -> Service
    ) async -> Int32 {
        var environment = Environment(values)
        let asked = ServiceArguments(arguments.dropFirst())
        if let status = asked.answer(name, summary, &environment) { return status }
        let sink = LogSink()
        defer { sink.flush() }
        let settings = ServiceSettings(&environment)
        let log = Log(service: name, level: settings.logLevel, format: settings.logFormat, sink: sink)
        raiseDescriptorLimit()
        signal(SIGPIPE, SIG_IGN)
        let signals = TerminationSignals()
        await signals.areWatched()
        let context = context(name, log, loops: settings.loops, &environment)
        do {
            let service = try await build(context, &environment)
            try environment.check()
            context.health.setStarting(true)
            context.traces?.start()
            var adminServer: HTTPServer?
            if let admin = settings.admin {
                let server = AdminServer(health: context.health, metrics: context.metrics)
                    .server(loops: context.loops, address: admin)
                _ = try await server.start(setting: "MARTLET_ADMIN_ADDRESS")
                adminServer = server
            }
            let starting = Task { try await service.start() }
            let signal = Task {
                let name = await signals.first()
                // Whoever waits for a database that is away is not to wait on.
                starting.cancel()
                return name
            }
            do {
                try await starting.value
                context.health.setStarting(false)
                log.info(
                    "started",
                    ["version": .string(Release.version), "admin": .string(settings.admin?.description ?? "off")])
            } catch {
                guard starting.isCancelled else { throw error }
            }
            log.info("stopping", ["signal": .string(await signal.value)])
            let watchdog = watchdog(log, sink)
            await stop(service, context, unreadySeconds: settings.unreadySeconds)
            async let flushed: Void? = context.traces?.stop()
            await adminServer?.drain(graceSeconds: 1)
            await flushed
            await context.loops.stop()
            watchdog.cancel()
            log.info("stopped")
            return 0
        } catch let error as ConfigurationError {
            FileHandle.standardError.write(Data("\(name): \(error)\n".utf8))
            return ConfigurationError.exitStatus
        } catch {
            FileHandle.standardError.write(Data("\(name): could not start: \(error)\n".utf8))
            return 1
        }
    }

    private static func context(
        _ name: String, _ log: Log, loops: Int, _ environment: inout Environment
    ) -> ServiceContext {
        let (metrics, clock) = (Metrics(), SystemClock())
        let traces = Traces(&environment, service: name, clock: clock, log: log, metrics: metrics)
        metrics.collect { await ProcessMetrics.families() }
        return ServiceContext(
            name: name, log: log, metrics: metrics, health: Health(), loops: LoopGroup(count: loops, name: name),
            clock: clock, traces: traces)
    }

    /// Says that the service goes, serves on while a front door finds out, as that might not be able to send elsewhere
    /// what it cannot deliver here, and stops it within what is left.
    static func stop(_ service: Service, _ context: ServiceContext, unreadySeconds: Int) async {
        context.health.stop()
        if unreadySeconds > 0 { try? await context.clock.sleep(seconds: Double(unreadySeconds)) }
        await service.stop(graceSecondsMax - unreadySeconds)
    }

    /// Ends the process when stopping it hangs: what was acknowledged is in the database, and nothing else counts.
    private static func watchdog(_ log: Log, _ sink: LogSink) -> DispatchWorkItem {
        let item = DispatchWorkItem {
            log.error("stopping took too long")
            sink.flush()
            _exit(1)
        }
        DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(exitSecondsMax), execute: item)
        return item
    }

    /// Sockets are descriptors; the soft limit of a login shell is far below what the kernel allows.
    private static func raiseDescriptorLimit() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
}

/// SIGTERM and SIGINT as something to wait for.
struct TerminationSignals {
    private let stream: AsyncStream<String>
    private let sources: [any DispatchSourceSignal]
    private let unwatched = DispatchGroup()

    init() {
        let (stream, continuation) = AsyncStream<String>.makeStream(bufferingPolicy: .bufferingOldest(1))
        self.stream = stream
        sources = [(SIGTERM, "SIGTERM"), (SIGINT, "SIGINT")].map { [unwatched] number, name in
            // Before the source is registered, since that puts a handler in its place.
            signal(number, SIG_IGN)
            unwatched.enter()
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler { continuation.yield(name) }
            source.setRegistrationHandler { unwatched.leave() }
            source.resume()
            return source
        }
    }

    /// Returns once none is lost any more: sources are registered on a thread of their own.
    func areWatched() async {
        await withCheckedContinuation { continuation in
            unwatched.notify(queue: .global()) { continuation.resume() }
        }
    }

    func first() async -> String {
        for await name in stream { return name }
        return "none"
    }
}
