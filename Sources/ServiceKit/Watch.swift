import Synchronization

/// Whether something outside works that a process can do without for a while: an object store, a mail server.
///
/// Who uses it says what they find. While something is wrong it is probed every few seconds until it is well again;
/// while all is well nothing is. The log hears of each change once; readiness tells of the trouble, and so does a
/// metric, but the process stays ready.
public final class Watch: Sendable {
    /// Between two probes while something is wrong.
    public static let probeSeconds = 5.0

    /// What a probe shows.
    public enum Finding: Sendable, Equatable {
        case works
        case fails(String)
        /// Nothing was asked, or the answer says nothing of it: what was known stays.
        case unknown
    }

    private let broken: StaticString
    private let mended: StaticString
    private let clock: any ServiceClock
    private let log: Log
    private let probe: @Sendable () async -> Finding
    /// What was wrong when it was last used or probed.
    private let trouble = Mutex<String?>(nil)
    private let task = Mutex<Task<Void, Never>?>(nil)

    /// - Parameters:
    ///   - broken: what the log says when it ceases to work; the reason is beside it.
    ///   - mended: what the log says when it works again.
    ///   - probe: must not keep alive who owns this.
    public init(
        broken: StaticString, mended: StaticString, clock: any ServiceClock, log: Log,
        probe: @escaping @Sendable () async -> Finding
    ) {
        self.broken = broken
        self.mended = mended
        self.clock = clock
        self.log = log
        self.probe = probe
    }

    deinit { stop() }

    /// Has readiness mention what is wrong under a name, and a gauge be 1 while nothing is.
    /// - Parameter problem: in place of `problem`, for who knows of more that can be wrong.
    public func show(
        _ name: String, in health: Health, _ metrics: Metrics, gauge: String, _ help: String,
        problem: (@Sendable () -> String?)? = nil
    ) {
        let problem = problem ?? { [weak self] in self?.problem }
        health.mention(name, problem)
        metrics.observe(gauge, help) { problem() == nil ? 1 : 0 }
    }

    /// What is wrong, as far as is known; nil when the last that was found was well.
    public var problem: String? { trouble.withLock { $0 } }

    /// Probes now, and again while something is wrong.
    public func start() {
        task.withLock { task in
            task = Task { [weak self, clock] in
                await self?.look()
                while !Task.isCancelled {
                    do { try await clock.sleep(seconds: Self.probeSeconds) } catch { return }
                    guard let self else { return }
                    if problem != nil { await look() }
                }
            }
        }
    }

    public func stop() { task.withLock { $0?.cancel() } }

    /// One probe, whatever is known.
    public func look() async { note(await probe()) }

    public func note(_ finding: Finding) {
        let now: String?
        switch finding {
        case .unknown: return
        case .works: now = nil
        case .fails(let text): now = text
        }
        let before = trouble.withLock { trouble in
            defer { trouble = now }
            return trouble
        }
        if let now, before == nil {
            log.error(broken, ["error": .string(now)])
        } else if now == nil, before != nil {
            log.info(mended)
        }
    }
}
