import Cuv
import Foundation
import Synchronization

/// One libuv loop on a thread of its own, and the executor of everything that lives there.
///
/// Actors that return `asUnownedSerialExecutor()` as their executor are pinned on the loop; all of one loop's actors
/// may call each other without leaving the thread. Jobs from the loop's own thread are queued without a lock; others
/// wake it.
/// Source of the pattern and its costs: docs/decisions/0001-runtime.md.
public final class EventLoop: SerialExecutor, TaskExecutor, @unchecked Sendable {
    public let name: String
    /// The position of this loop in its `LoopGroup`.
    public let index: Int

    /// For the wrappers of this module and modules that bring their own libuv handles. Touch on the loop's thread only.
    /// A driven loop has none: descriptors, files and processes are for real ones.
    public var uv: UnsafeMutablePointer<uv_loop_t> {
        precondition(driven == nil, "a driven loop has no libuv")
        return handle
    }

    /// The clock of a driven loop (DrivenLoop.swift); nil for a real one.
    let driven: DrivenClock?

    /// Jobs run in one go before sockets are looked at again, so that a busy task cannot starve them.
    static let jobsPerTurnMax = 4096
    /// All reads of a loop share one buffer: an idle connection holds none.
    static let readBufferSize = 64 * 1024

    private struct Remote {
        var jobs: [UnownedJob] = []
        var calls: [@Sendable () -> Void] = []
        var stopping = false
        var woken = false
        /// The handle that wakes the loop is closed: it is sent to under the lock, and only before this is set.
        var ending = false
        var ended = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let remote = Mutex(Remote())
    private let handle: UnsafeMutablePointer<uv_loop_t>
    private let wake: UnsafeMutablePointer<uv_async_t>
    private let prepare: UnsafeMutablePointer<uv_prepare_t>
    private let check: UnsafeMutablePointer<uv_check_t>
    private let idle: UnsafeMutablePointer<uv_idle_t>
    let readBuffer: UnsafeMutableRawBufferPointer

    // Only on the loop's thread.
    private var local = JobQueue()
    private var turnEnd: [() -> Void] = []

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key, nil)
        return key
    }()

    /// A peer that has gone is an error of `write`, as any other: the signal would end the process.
    private static let ignoreBrokenPipes: Void = {
        signal(SIGPIPE, SIG_IGN)
    }()

    /// Starts the loop's thread. It ends by `stop()`.
    public convenience init(name: String, index: Int = 0) {
        self.init(name: name, index: index, driven: nil)
        start()
    }

    init(name: String, index: Int, driven: DrivenClock?) {
        self.name = name
        self.index = index
        self.driven = driven
        handle = .allocate(capacity: 1)
        wake = .allocate(capacity: 1)
        prepare = .allocate(capacity: 1)
        check = .allocate(capacity: 1)
        idle = .allocate(capacity: 1)
        readBuffer = .allocate(byteCount: driven == nil ? Self.readBufferSize : 0, alignment: 16)
    }

    private func start() {
        Self.ignoreBrokenPipes
        precondition(uv_loop_init(uv) == 0, "libuv could not make a loop: out of file descriptors or memory")
        uv.pointee.data = Unmanaged.passUnretained(self).toOpaque()
        uv_async_init(uv, wake) { handle in
            guard let handle else { return }
            EventLoop.from(handle.pointee.loop).takeRemote()
        }
        uv_prepare_init(uv, prepare)
        uv_check_init(uv, check)
        uv_idle_init(uv, idle)
        uv_prepare_start(prepare) { handle in
            guard let handle else { return }
            EventLoop.from(handle.pointee.loop).drain()
        }
        uv_check_start(check) { handle in
            guard let handle else { return }
            EventLoop.from(handle.pointee.loop).drain()
        }
        let thread = Thread { [self] in run() }
        thread.name = name
        thread.stackSize = 1 << 20
        thread.start()
    }

    deinit {
        local.deallocate()
        readBuffer.deallocate()
        handle.deallocate()
        wake.deallocate()
        prepare.deallocate()
        check.deallocate()
        idle.deallocate()
    }

    /// The loop whose thread this is, if it is one.
    public static var current: EventLoop? {
        let pointer: UnsafeMutableRawPointer? = pthread_getspecific(key)
        guard let pointer else { return nil }
        return Unmanaged<EventLoop>.fromOpaque(pointer)._withUnsafeGuaranteedRef { $0 }
    }

    public var isCurrent: Bool {
        let pointer: UnsafeMutableRawPointer? = pthread_getspecific(Self.key)
        return pointer == Unmanaged.passUnretained(self).toOpaque()
    }

    static func from(_ loop: UnsafeMutablePointer<uv_loop_t>) -> EventLoop {
        Unmanaged<EventLoop>.fromOpaque(loop.pointee.data).takeUnretainedValue()
    }

    /// Where reads of this loop go.
    static func readBuffer(of loop: UnsafeMutablePointer<uv_loop_t>) -> uv_buf_t {
        Unmanaged<EventLoop>.fromOpaque(loop.pointee.data)._withUnsafeGuaranteedRef { loop in
            uv_buf_init(loop.readBuffer.baseAddress?.assumingMemoryBound(to: CChar.self), UInt32(readBufferSize))
        }
    }

    // MARK: Executor

    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        if isCurrent {
            local.append(job)
            return
        }
        remote.withLock { remote in
            remote.jobs.append(job)
            wakeUp(&remote)
        }
    }

    public func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    public func checkIsolated() {
        precondition(isCurrent, "this must run on the loop \(name)")
    }

    public func isIsolatingCurrentContext() -> Bool? { isCurrent }

    /// Runs `body` on the loop's thread, soon; from any thread. Calls keep their order. On a loop that has ended
    /// nothing runs any more.
    public func execute(_ body: @escaping @Sendable () -> Void) {
        remote.withLock { remote in
            guard !remote.ending else { return }
            remote.calls.append(body)
            wakeUp(&remote)
        }
    }

    private func wakeUp(_ remote: inout Remote) {
        guard !remote.woken, !remote.ending else { return }
        remote.woken = true
        if let driven { driven.isDue = true } else { uv_async_send(wake) }
    }

    /// Runs `body` once, after the jobs of this turn: the place to flush what they have gathered. On the loop's thread
    /// only.
    public func atTurnEnd(_ body: @escaping () -> Void) {
        turnEnd.append(body)
    }

    /// Milliseconds of the loop's monotonic clock, read once a turn. On the loop's thread only.
    public var nowMilliseconds: UInt64 { driven?.now ?? uv_now(handle) }

    // MARK: Running

    private func run() {
        pthread_setspecific(Self.key, Unmanaged.passUnretained(self).toOpaque())
        uv_run(uv, UV_RUN_DEFAULT)
        remote.withLock { $0.ending = true }
        uv_walk(uv, { handle, _ in if uv_is_closing(handle) == 0 { uv_close(handle, nil) } }, nil)
        uv_run(uv, UV_RUN_DEFAULT)
        uv_loop_close(uv)
        pthread_setspecific(Self.key, nil)
        let waiting = remote.withLock { remote in
            remote.ended = true
            defer { remote.waiting = [] }
            return remote.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    private func takeRemote() {
        let (jobs, calls, stopping) = remote.withLock { remote in
            defer {
                remote.jobs = []
                remote.calls = []
                remote.woken = false
            }
            return (remote.jobs, remote.calls, remote.stopping)
        }
        for job in jobs { local.append(job) }
        for call in calls { call() }
        drain()
        if stopping { uv_stop(uv) }
    }

    private func drain() {
        var left = Self.jobsPerTurnMax
        let (serial, task) = (asUnownedSerialExecutor(), asUnownedTaskExecutor())
        while !local.isEmpty || !turnEnd.isEmpty {
            while left > 0, let job = local.popFirst() {
                left -= 1
                job.runSynchronously(isolatedTo: serial, taskExecutor: task)
            }
            if !turnEnd.isEmpty {
                let due = turnEnd
                turnEnd = []
                for body in due { body() }
            }
            if left == 0 { break }
        }
        guard driven == nil else { return }
        if !local.isEmpty || !turnEnd.isEmpty {
            // More is due than one turn may take: look at the sockets without waiting, then go on.
            uv_idle_start(idle) { _ in }
        } else if uv_is_active(UnsafeRawPointer(idle).assumingMemoryBound(to: uv_handle_t.self)) != 0 {
            uv_idle_stop(idle)
        }
    }

    /// Ends the loop after what is queued; handles still open are closed. Waits for the thread to end, unless called on
    /// it.
    public func stop() async {
        guard driven == nil else {
            // It has no thread that could end; what is queued is never run.
            return remote.withLock { $0.ending = true }
        }
        let onLoop = isCurrent
        await withCheckedContinuation { continuation in
            let ended = remote.withLock { remote in
                remote.stopping = true
                if !remote.ended && !onLoop { remote.waiting.append(continuation) }
                if !remote.ending { uv_async_send(wake) }
                return remote.ended || onLoop
            }
            if ended { continuation.resume() }
            if onLoop { uv_stop(uv) }
        }
    }

    // MARK: Driven

    /// What libuv does in one round, on the calling thread, which is the loop's meanwhile.
    func runTurn(_ clock: DrivenClock, at milliseconds: UInt64) {
        let former = pthread_getspecific(Self.key)
        pthread_setspecific(Self.key, Unmanaged.passUnretained(self).toOpaque())
        clock.isDue = false
        clock.goOn(to: milliseconds)
        clock.fire()
        drain()
        takeRemote()
        if !local.isEmpty { clock.isDue = true }
        pthread_setspecific(Self.key, former)
    }
}
