import Foundation
import Synchronization

/// What the pool cannot do. None of it is a file's fault: the caller tries again later.
public enum MediaPoolError: Error, Equatable, Sendable {
    case shutDown
    /// `Configuration.waitingMax` requests wait already.
    case tooManyWaiting
    /// As many scans are being read as may be: others of the pool are for files that take moments.
    case scansBusy
    /// The child's program does not start, or not in its sandbox.
    case childNotStarted(String)
}

/// A few sandboxed children that open strangers' files, one file at a time each. A file that takes too long or ends its
/// child is one rejected file; the next one finds a new child.
///
/// Each child has a thread of the parent that may block on its pipes, so callers on an event loop only suspend.
/// `shutdown()` must be called: the threads keep the pool alive until then.
public final class MediaChildPool: Sendable {
    public struct Configuration: Sendable {
        /// Absolute path of a program that calls `MediaChild.run` when its first argument is `MediaChild.argument`.
        public var executable: String
        /// The folders that hold all requests' files and output directories, absolute, existing.
        public var roots: [String]
        /// SVG is drawn, and the drawing kept. Otherwise it is refused.
        public var rasterizesSVG = false
        /// What CVs without text are read in, by tesseract in a child of their own. Empty: they are not.
        public var scanLanguages: [String] = []
        /// For the reading of one scan; longer than `MediaLimits.scanSecondsMax`, as drawing a page comes before.
        public var scanDeadline: Duration = .seconds(60)
        /// Told why a scan was not read, where that is not the scan's fault alone. From any thread.
        public var scanFailed: @Sendable (String) -> Void = { _ in }
        /// Each takes up to 256 MiB and a processor.
        public var children = 2
        /// Requests beyond the children. Work items wait in the database, not here.
        public var waitingMax = 64
        /// For one file, from the moment a child has it.
        public var deadline: Duration = .seconds(30)
        /// For a child to load its libraries and lock itself in.
        public var startDeadline: Duration = .seconds(10)
        /// Then the child is replaced, so that what leaks or lingers in it ends.
        public var filesPerChildMax = 100

        public init(executable: String, roots: [String]) {
            self.executable = executable
            self.roots = roots
        }
    }

    /// For tests: told of every child that has taken a file, and of the most memory (KiB) it has had after each answer.
    struct Probe: Sendable {
        var taken: @Sendable (pid_t) -> Void = { _ in }
        var peakKiB: @Sendable (Int) -> Void = { _ in }
        var started: @Sendable (pid_t, MediaHello) -> Void = { _, _ in }
    }

    private struct Waiting {
        let id: Int
        let request: MediaRequest
        let continuation: CheckedContinuation<MediaAnswer, any Error>
    }

    private struct State {
        var waiting: [Waiting] = []
        var idCount = 0
        var threadsRunning = 0
        var scansRunning = 0
        var isShutDown = false
        var whenEnded: [CheckedContinuation<Void, Never>] = []
    }

    private let configuration: Configuration
    private let probe: Probe
    private let state = Mutex(State())
    /// One count for each waiting request, and one for each thread at the end.
    private let work = DispatchSemaphore(value: 0)
    private let ending = EndSignal()

    public convenience init(_ configuration: Configuration) {
        self.init(configuration, probe: Probe())
    }

    init(_ configuration: Configuration, probe: Probe) {
        self.configuration = configuration
        self.probe = probe
        let threads = max(configuration.children, 1)
        state.withLock { $0.threadsRunning = threads }
        for number in 1...threads {
            let thread = Thread { self.serve() }
            thread.name = "media \(number)"
            thread.start()
        }
    }

    /// What became of a file.
    /// - Throws: `MediaPoolError`; `CancellationError` when the task ends while the request still waits.
    public func process(_ request: MediaRequest) async throws -> MediaAnswer {
        let id = state.withLock { state in
            state.idCount += 1
            return state.idCount
        }
        return try await withTaskCancellationHandler {
            try Task.checkCancellation()
            return try await withCheckedThrowingContinuation { continuation in
                enqueue(Waiting(id: id, request: request, continuation: continuation))
            }
        } onCancel: {
            remove(id)?.continuation.resume(throwing: CancellationError())
        }
    }

    /// Takes no more, fails those that wait and scans that are being read, lets the children finish what else they have
    /// (at most until their deadline), and returns when they have ended.
    public func shutdown() async {
        let (waiting, threads) = state.withLock { state in
            defer {
                state.isShutDown = true
                state.waiting = []
            }
            return (state.waiting, state.isShutDown ? 0 : state.threadsRunning)
        }
        ending.give()
        for each in waiting { each.continuation.resume(throwing: MediaPoolError.shutDown) }
        for _ in 0..<threads { work.signal() }
        await withCheckedContinuation { continuation in
            let haveEnded = state.withLock { state in
                if state.threadsRunning > 0 { state.whenEnded.append(continuation) }
                return state.threadsRunning == 0
            }
            if haveEnded { continuation.resume() }
        }
    }

    // MARK: The queue

    private func enqueue(_ waiting: Waiting) {
        let refusal: MediaPoolError? = state.withLock { state in
            guard !state.isShutDown else { return .shutDown }
            guard state.waiting.count < configuration.waitingMax else { return .tooManyWaiting }
            state.waiting.append(waiting)
            return nil
        }
        if let refusal {
            waiting.continuation.resume(throwing: refusal)
        } else {
            work.signal()
            // A task that ended before its request was in the queue found nothing to take out of it.
            if Task.isCancelled { remove(waiting.id)?.continuation.resume(throwing: CancellationError()) }
        }
    }

    private func remove(_ id: Int) -> Waiting? {
        state.withLock { state in
            guard let index = state.waiting.firstIndex(where: { $0.id == id }) else { return nil }
            return state.waiting.remove(at: index)
        }
    }

    // MARK: On the threads

    private func serve() {
        // A child that dies closes its pipe; writing to it is to give an error, not to end the worker.
        var pipeSignal = sigset_t()
        sigemptyset(&pipeSignal)
        sigaddset(&pipeSignal, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &pipeSignal, nil)

        var child: ChildProcess?
        while true {
            work.wait()
            let (next, isShutDown) = state.withLock { state in
                (state.waiting.isEmpty ? nil : state.waiting.removeFirst(), state.isShutDown)
            }
            if let next {
                next.continuation.resume(
                    with: Result {
                        let answer = try answer(next.request, by: &child)
                        guard isScan(next.request, answer) else { return answer }
                        try admitScan()
                        defer { state.withLock { $0.scansRunning -= 1 } }
                        return try scanned(next.request, by: &child) ?? answer
                    })
            } else if isShutDown {
                break
            }
        }
        child = nil
        let ended = state.withLock { state in
            state.threadsRunning -= 1
            return state.threadsRunning == 0 ? state.whenEnded : []
        }
        for continuation in ended { continuation.resume() }
    }

    private func answer(_ request: MediaRequest, by child: inout ChildProcess?) throws -> MediaAnswer {
        let body = try JSONEncoder().encode(request)
        do {
            return try answerOnce(body, by: &child)
        } catch ChildProcess.Failure.gone {
            // Killed while it waited, by the machine rather than by this file: one more child may have it.
            do { return try answerOnce(body, by: &child) } catch ChildProcess.Failure.gone {
                throw MediaPoolError.childNotStarted("children end before they take a file")
            }
        }
    }

    private func answerOnce(_ body: Data, by child: inout ChildProcess?) throws -> MediaAnswer {
        if let used = child, used.hasEnded() || used.filesServed >= configuration.filesPerChildMax { child = nil }
        var options = ChildOptions()
        options.rasterizesSVG = configuration.rasterizesSVG
        let current: ChildProcess
        if let child { current = child } else { current = try start(options) }
        child = current
        do {
            let deadline = ContinuousClock.now + configuration.deadline
            let answer = try current.process(body, deadline: deadline, onTaken: probe.taken)
            if let peak = current.peakKiB() { probe.peakKiB(peak) }
            return answer
        } catch {
            child = nil
            switch error {
            case .timedOut: return .rejected(.timedOut)
            case .crashed: return .rejected(.crashed)
            case .gone, .notStarted, .givenUp: throw error
            }
        }
    }

    /// A CV without text, where somebody wants such CVs read.
    private func isScan(_ request: MediaRequest, _ answer: MediaAnswer) -> Bool {
        guard !configuration.scanLanguages.isEmpty, request.kind == .cv, case .document(let document) = answer else {
            return false
        }
        return document.type == .pdf && document.textOutcome == .none
    }

    /// A scan takes up to a minute. One thread at least is left to files that take moments, where there are two.
    private func admitScan() throws(MediaPoolError) {
        let refusal: MediaPoolError? = state.withLock { state in
            guard !state.isShutDown else { return .shutDown }
            guard state.scansRunning < max(1, configuration.children - 1) else { return .scansBusy }
            state.scansRunning += 1
            return nil
        }
        if let refusal { throw refusal }
    }

    /// It goes to a child that reads pictures, and ends with it: what happens there costs no CV that people can read.
    /// Nil when nothing was read.
    private func scanned(_ request: MediaRequest, by child: inout ChildProcess?) throws(MediaPoolError) -> MediaAnswer?
    {
        // One at a time for each thread.
        child = nil
        var options = ChildOptions()
        options.scanLanguages = configuration.scanLanguages
        var request = request
        request.isScan = true
        do {
            let reader = try start(options)
            defer { reader.kill() }
            guard reader.hello.readsScans else {
                configuration.scanFailed("tesseract's library is not there")
                return nil
            }
            let better = try reader.process(
                JSONEncoder().encode(request), deadline: ContinuousClock.now + configuration.scanDeadline,
                unless: ending, onTaken: probe.taken)
            if let peak = reader.peakKiB() { probe.peakKiB(peak) }
            if case .document(let read) = better, read.textOutcome == .scanned { return better }
        } catch ChildProcess.Failure.givenUp {
            throw .shutDown
        } catch {
            configuration.scanFailed("\(error)")
        }
        return nil
    }

    private func start(_ options: ChildOptions) throws -> ChildProcess {
        do throws(ChildProcess.Failure) {
            let child = try ChildProcess(configuration, options)
            probe.started(child.pid, child.hello)
            return child
        } catch {
            guard case .notStarted(let reason) = error else { throw error }
            throw MediaPoolError.childNotStarted(reason)
        }
    }
}
