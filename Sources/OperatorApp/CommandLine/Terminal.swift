import Foundation
import Glibc
import Synchronization

/// Where a command's words go. Results to standard output, everything else to standard error.
public struct Terminal: Sendable {
    let write: @Sendable (String) -> Void
    let complain: @Sendable (String) -> Void
    /// Somebody is looking: progress is shown, on one line that is written over.
    let isWatched: Bool

    public init(
        write: @escaping @Sendable (String) -> Void, complain: @escaping @Sendable (String) -> Void, isWatched: Bool
    ) {
        self.write = write
        self.complain = complain
        self.isWatched = isWatched
    }

    /// The process's own.
    public static let standard = Terminal(
        write: { FileHandle.standardOutput.write(Data($0.utf8)) },
        complain: { FileHandle.standardError.write(Data($0.utf8)) },
        isWatched: isatty(STDERR_FILENO) == 1)

    func line(_ text: String) { write(text + "\n") }
    func warn(_ text: String) { complain("martlet: \(text)\n") }
}

/// One line on the terminal that is written over until it is cleared. Nothing where nobody looks.
final class ProgressLine: Sendable {
    /// Often enough to look alive.
    private static let pause = Duration.milliseconds(200)

    private let terminal: Terminal
    private let last = Mutex<ContinuousClock.Instant?>(nil)

    init(_ terminal: Terminal) { self.terminal = terminal }

    func show(_ text: @autoclosure () -> String) {
        guard terminal.isWatched else { return }
        let now = ContinuousClock.now
        let isDue = last.withLock { last in
            if let last, now - last < Self.pause { return false }
            last = now
            return true
        }
        // Back to the start, the text, and what is left of a longer one before it taken away.
        if isDue { terminal.complain("\r\(text())\u{1B}[K") }
    }

    func clear() {
        guard terminal.isWatched, last.withLock({ $0 != nil }) else { return }
        terminal.complain("\r\u{1B}[K")
    }
}
