import Synchronization

/// What has to hold before a process is given work, by name.
public final class Health: Sendable {
    public typealias Check = @Sendable () -> String?

    private let checks = Mutex<[(name: String, check: Check)]>([])
    private let mentions = Mutex<[(name: String, check: Check)]>([])
    private let starting = Atomic<Bool>(false)
    private let stopping = Atomic<Bool>(false)
    private let wasReady = Atomic<Bool>(false)
    private let openings = Mutex<[@Sendable () -> Void]>([])

    public init() {}

    /// - Parameter check: nil when all is well, otherwise a sentence. Called on every look: it must not wait.
    public func require(_ name: String, _ check: @escaping Check) {
        checks.withLock { $0.append((name, check)) }
    }

    /// As `require`, of what a process can do without for a while: it is told, and the process stays ready.
    public func mention(_ name: String, _ check: @escaping Check) {
        mentions.withLock { $0.append((name, check)) }
    }

    /// What is wrong without keeping the process from its work.
    public func remarks() -> [(name: String, problem: String)] {
        mentions.withLock { $0 }.compactMap { name, check in check().map { (name, $0) } }
    }

    /// Called once the configuration is known to be right: what looks after a check begins then, and not before.
    public func whenStarting(_ body: @escaping @Sendable () -> Void) { openings.withLock { $0.append(body) } }

    /// Whether the process is still on its way to listening: until then it is not ready, whatever else holds.
    func setStarting(_ isStarting: Bool) {
        starting.store(isStarting, ordering: .relaxed)
        guard isStarting else { return }
        let bodies = openings.withLock { openings in
            defer { openings = [] }
            return openings
        }
        for body in bodies { body() }
    }

    /// From now on not ready: the process is on its way out.
    public func stop() { stopping.store(true, ordering: .relaxed) }

    /// From the first time that nothing was wrong until `stop()`.
    var isWelcoming: Bool {
        if stopping.load(ordering: .relaxed) { return false }
        if wasReady.load(ordering: .relaxed) { return true }
        guard problems().isEmpty else { return false }
        wasReady.store(true, ordering: .relaxed)
        return true
    }

    /// What does not hold; empty when ready.
    public func problems() -> [(name: String, problem: String)] {
        var found: [(name: String, problem: String)] = []
        if starting.load(ordering: .relaxed) { found.append(("process", "starting")) }
        if stopping.load(ordering: .relaxed) { found.append(("process", "stopping")) }
        for (name, check) in checks.withLock({ $0 }) {
            if let problem = check() { found.append((name, problem)) }
        }
        return found
    }
}
