import Foundation
import Synchronization

/// What says which seed was at work when a round ends the process, or does not end itself.
///
/// The words for each target at work are kept ready in plain memory, where a handler of signals may read them; with
/// MARTLET_FUZZ_STATE this memory is that file's, and outlives a process that was killed.
enum FuzzWatch {
    /// A round takes milliseconds, in the slowest target a second.
    static let roundSecondsMax = 120.0
    /// Targets at work at once: those of one test program.
    private static let placesMax = 32
    private static let placeBytes = 96

    nonisolated(unsafe) private static let memory: UnsafeMutablePointer<UInt8> = {
        let bytes = placesMax * placeBytes
        if let path = ProcessInfo.processInfo.environment["MARTLET_FUZZ_STATE"] {
            let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
            if file >= 0, ftruncate(file, off_t(bytes)) == 0,
                let map = mmap(nil, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), map != MAP_FAILED
            {
                return map.bindMemory(to: UInt8.self, capacity: bytes)
            }
        }
        let plain = UnsafeMutablePointer<UInt8>.allocate(capacity: bytes)
        plain.initialize(repeating: 0, count: bytes)
        return plain
    }()

    private static let begun = Mutex<[Int: (at: ContinuousClock.Instant, what: String)]>([:])
    private static let taken = Mutex<Set<Int>>([])

    /// Once in a process.
    private static let started: Bool = {
        memory[0] = 0
        for number in [SIGILL, SIGTRAP, SIGABRT, SIGFPE, SIGBUS, SIGSEGV] {
            signal(number) { number in
                FuzzWatch.tell()
                // What happened happens again when this returns, and ends the process as it should.
                signal(number, SIG_DFL)
            }
        }
        let thread = Thread {
            // Nobody signals it: a look each second, at what should have ended long ago.
            let never = DispatchSemaphore(value: 0)
            while never.wait(timeout: .now() + 1) == .timedOut { watch() }
        }
        thread.name = "fuzz watch"
        thread.start()
        return true
    }()

    static func enter() -> Int {
        _ = started
        return taken.withLock { taken in
            let place = (0..<placesMax).first { !taken.contains($0) } ?? 0
            taken.insert(place)
            return place
        }
    }

    static func begins(_ place: Int, target: String, seed: UInt64) {
        let what = "make fuzz TARGET=\(target) SEED=\(seed)"
        write(what + "\n", at: place)
        begun.withLock { $0[place] = (.now, what) }
    }

    static func leave(_ place: Int) {
        write("", at: place)
        begun.withLock { $0[place] = nil }
        taken.withLock { _ = $0.remove(place) }
    }

    /// To the standard error, at once.
    static func say(_ text: String) {
        let bytes = Array(text.utf8)
        _ = bytes.withUnsafeBytes { Foundation.write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }

    private static func write(_ text: String, at place: Int) {
        let bytes = text.utf8.prefix(placeBytes - 1)
        let start = memory + place * placeBytes
        var index = 0
        for byte in bytes {
            start[index] = byte
            index += 1
        }
        start[index] = 0
    }

    /// In a handler of signals: no allocation, no lock.
    private static func tell() {
        var place = 0
        while place < placesMax {
            let start = memory + place * placeBytes
            var count = 0
            while count < placeBytes, start[count] != 0 { count += 1 }
            if count > 0 { _ = Foundation.write(STDERR_FILENO, start, count) }
            place += 1
        }
    }

    private static func watch() {
        let late = begun.withLock { begun in
            begun.values.first { (ContinuousClock.now - $0.at) / .seconds(1) > roundSecondsMax }?.what
        }
        guard let late else { return }
        say("\nA round does not end: \(late)\n")
        abort()
    }
}
