import Foundation

/// A fuzz target: a parser, what is fed to it, and what must hold whatever that is.
///
/// All run the same way. `make test` gives each its rounds with the same seeds each time; `make fuzz` gives each some
/// seconds with new ones, or runs one seed alone. A round depends on nothing but its seed, so the line that a failure
/// prints runs it again.
///
///     try Fuzz("query", rounds: 5_000).run { fuzz in
///         fuzz.input = fuzz.mutated(sample, words: words)
///         try fuzz.check(accepted(fuzz.input) == reference(fuzz.input), "both take the same")
///     }
public struct Fuzz: Sendable {
    /// `make test` waits no longer for one target, however slow the machine is.
    static let testSecondsMax = 30.0

    let target: String
    let rounds: UInt64
    let isQuiet: Bool
    private let settings: FuzzSettings

    /// - Parameters:
    ///   - rounds: of `make test`, a second or two.
    ///   - isQuiet: says nothing of how many rounds there were.
    public init(
        _ target: String, rounds: UInt64, isQuiet: Bool = false,
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) {
        self.target = target
        self.rounds = rounds
        self.isQuiet = isQuiet
        settings = FuzzSettings(environment)
    }

    /// Runs rounds until one fails.
    /// - Returns: how many rounds there were.
    /// - Throws: `FuzzFailure`, with the seed and the input.
    @discardableResult public func run(_ body: (inout FuzzCase) throws -> Void) throws -> UInt64 {
        var clock = FuzzClock(self, settings)
        while let seed = clock.next() {
            var round = FuzzCase(target: target, seed: seed, folder: settings.only == nil ? nil : settings.folder)
            do { try body(&round) } catch { throw failure(round, error) }
        }
        return clock.rounds
    }

    /// The same for what has to wait.
    @discardableResult public func runAsync(_ body: (inout FuzzCase) async throws -> Void) async throws -> UInt64 {
        var clock = FuzzClock(self, settings)
        while let seed = clock.next() {
            var round = FuzzCase(target: target, seed: seed, folder: settings.only == nil ? nil : settings.folder)
            do { try await body(&round) } catch { throw failure(round, error) }
        }
        return clock.rounds
    }

    private func failure(_ round: FuzzCase, _ error: any Error) -> FuzzFailure {
        FuzzFailure(
            target: target, seed: round.seed, reason: "\(error)", input: round.input,
            kept: settings.folder.flatMap { round.keep(in: $0) })
    }
}

/// What `make fuzz` asks for (ops/scripts/fuzz).
struct FuzzSettings: Sendable {
    /// For each target, instead of its rounds.
    let seconds: Double?
    /// One seed alone.
    let only: UInt64?
    /// The first seed.
    let first: UInt64
    /// Where inputs that failed are kept.
    let folder: String?

    init(_ environment: [String: String]) {
        seconds = environment["MARTLET_FUZZ_SECONDS"].flatMap(Double.init)
        only = environment["MARTLET_FUZZ_SEED"].flatMap { UInt64($0) }
        first = environment["MARTLET_FUZZ_FIRST"].flatMap { UInt64($0) } ?? 1
        folder = environment["MARTLET_FUZZ_FOLDER"]
    }
}

/// A round that went wrong.
public struct FuzzFailure: Error, CustomStringConvertible {
    /// Of the input, in its description. All of it is in the file.
    static let shownBytesMax = 1_500

    public let target: String
    public let seed: UInt64
    public let reason: String
    public let input: [UInt8]
    /// The file with the input, if it could be kept.
    public let kept: String?

    public var description: String {
        let shown = String(decoding: input.prefix(Self.shownBytesMax), as: UTF8.self).debugDescription
        let more = input.count > Self.shownBytesMax ? " … (\(input.count) bytes)" : ""
        let file = kept.map { "\nInput: \($0)" } ?? ""
        return "\(reason)\nAgain: make fuzz TARGET=\(target) SEED=\(seed)\(file)\nRead: \(shown)\(more)"
    }
}

/// Which seeds are run, and for how long.
private struct FuzzClock {
    /// Between two lines of progress, on a terminal.
    private static let progressSeconds = 0.5

    private(set) var rounds: UInt64 = 0
    private let fuzz: Fuzz
    private let settings: FuzzSettings
    private let begun = ContinuousClock.now
    private let place: Int
    private var shown = 0.0
    private let isTerminal = isatty(STDERR_FILENO) == 1

    init(_ fuzz: Fuzz, _ settings: FuzzSettings) {
        self.fuzz = fuzz
        self.settings = settings
        place = FuzzWatch.enter()
    }

    private var seconds: Double { (ContinuousClock.now - begun) / .seconds(1) }

    mutating func next() -> UInt64? {
        let seconds = seconds
        let isOver =
            if settings.only != nil { rounds == 1 } else if let wanted = settings.seconds { seconds >= wanted } else {
                rounds == fuzz.rounds || seconds >= Fuzz.testSecondsMax
            }
        guard !isOver else {
            finish(seconds)
            return nil
        }
        if isTerminal, settings.seconds != nil, seconds - shown >= Self.progressSeconds {
            shown = seconds
            FuzzWatch.say("\r  \(fuzz.target): \(rounds) rounds, \(Int(seconds)) s ")
        }
        let seed = settings.only ?? settings.first &+ rounds
        rounds += 1
        FuzzWatch.begins(place, target: fuzz.target, seed: seed)
        return seed
    }

    private func finish(_ seconds: Double) {
        FuzzWatch.leave(place)
        guard settings.only == nil, !fuzz.isQuiet else { return }
        let tenths = Int(seconds * 10)
        let text =
            "fuzz \(fuzz.target): \(rounds) rounds from seed \(settings.first) in \(tenths / 10).\(tenths % 10) s"
        FuzzWatch.say((isTerminal ? "\r" : "") + text + "\n")
    }
}
