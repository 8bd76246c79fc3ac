import Cseccomp
import Foundation

/// One media child, seen from the parent. Belongs to one thread, which may block on it.
final class ChildProcess {
    enum Failure: Error, Equatable {
        /// It did not start, or not in its sandbox: our fault, not a file's.
        case notStarted(String)
        /// It was gone before it had the file.
        case gone
        /// It ended with the file in its hands.
        case crashed
        case timedOut
        /// The pool ended in the meantime.
        case givenUp
    }

    let pid: pid_t
    let hello: MediaHello
    private(set) var filesServed = 0
    private let input: Int32
    private let output: Int32
    private var isReaped = false

    /// Starts a child and waits until it says that it is in its sandbox.
    init(_ configuration: MediaChildPool.Configuration, _ options: ChildOptions) throws(Failure) {
        var requests: [Int32] = [-1, -1]
        var answers: [Int32] = [-1, -1]
        guard martlet_pipe(&requests) == 0 else { throw .notStarted("no pipe for a child") }
        guard martlet_pipe(&answers) == 0 else {
            requests.forEach { _ = close($0) }
            throw .notStarted("no pipe for a child")
        }
        let arguments = [configuration.executable, MediaChild.argument] + options.words + configuration.roots
        var pid: pid_t = 0
        let code = Self.withCStrings(arguments) { arguments in
            Self.withCStrings(Self.environment) { environment in
                martlet_spawn(&pid, configuration.executable, arguments, environment, requests[0], answers[1])
            }
        }
        close(requests[0])
        close(answers[1])
        self.pid = pid
        input = requests[1]
        output = answers[0]
        guard code == 0 else {
            isReaped = true
            hello = MediaHello(networkDenied: false, processesDenied: false, filesDenied: false)
            throw .notStarted("\(configuration.executable): errno \(code)")
        }
        let deadline = ContinuousClock.now + configuration.startDeadline
        let body = try? Frames.read(from: output, until: deadline)
        let hello = body.flatMap { try? JSONDecoder().decode(MediaHello.self, from: $0) }
        self.hello = hello ?? MediaHello(networkDenied: false, processesDenied: false, filesDenied: false)
        guard hello != nil else {
            kill()
            throw .notStarted("the child did not come up in its sandbox")
        }
    }

    deinit {
        // The end of its input ends a child that waits; one that works has been killed before.
        close(input)
        close(output)
        if !isReaped { waitpid(pid, nil, 0) }
    }

    /// Gives it one request and waits for the answer, at most until the deadline or the signal; then it is killed.
    func process(
        _ request: Data, deadline: ContinuousClock.Instant, unless signal: EndSignal? = nil, onTaken: (pid_t) -> Void
    ) throws(Failure) -> MediaAnswer {
        do {
            try Frames.write(request, to: input)
            // The child says that it has the request before it touches the file.
            guard try Frames.read(from: output, until: deadline).isEmpty else { throw Frames.Failure.tooLong }
        } catch {
            kill()
            throw error as? Frames.Failure == .timedOut ? .timedOut : .gone
        }
        onTaken(pid)
        do {
            let answer = try Frames.read(from: output, until: deadline, unless: signal)
            filesServed += 1
            return try JSONDecoder().decode(MediaAnswer.self, from: answer)
        } catch {
            kill()
            switch error as? Frames.Failure {
            case .timedOut: throw .timedOut
            case .givenUp: throw .givenUp
            default: throw .crashed
            }
        }
    }

    /// The most memory it has had, in KiB, or nil when it is gone.
    func peakKiB() -> Int? {
        guard let status = try? String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8),
            let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmHWM:") })
        else { return nil }
        return Int(line.filter(\.isNumber))
    }

    /// Whether it has ended by itself.
    func hasEnded() -> Bool {
        guard !isReaped else { return true }
        isReaped = waitpid(pid, nil, WNOHANG) == pid
        return isReaped
    }

    func kill() {
        guard !isReaped else { return }
        Glibc.kill(pid, SIGKILL)
        waitpid(pid, nil, 0)
        isReaped = true
    }

    /// Nothing of ours: no secret is inherited. Few heaps, so that freed memory goes back; no helper on a crash; and
    /// one processor for a reader of scans, whose threads wait for each other most of the time.
    private static let environment = [
        "LANG=C.UTF-8", "HOME=/nonexistent", "MALLOC_ARENA_MAX=2", "SWIFT_BACKTRACE=enable=no", "GIO_USE_VFS=local",
        "OMP_THREAD_LIMIT=1",
    ]

    private static func withCStrings<Result>(
        _ strings: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> Result
    ) -> Result {
        let copies = strings.map { strdup($0) }
        defer { copies.forEach { free($0) } }
        return body(copies + [nil])
    }
}
