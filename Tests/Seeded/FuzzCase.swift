import Foundation

/// One round: its seed, what is made of it, and what is read.
public struct FuzzCase {
    public let seed: UInt64
    public var random: SeededGenerator
    /// What the target reads: shown when the round fails. Set it before it is read.
    public var input: [UInt8] = [] {
        didSet { if let folder { _ = keep(in: folder) } }
    }
    private let target: String
    /// Of a seed that is run alone: it may end the process.
    private let folder: String?

    init(target: String, seed: UInt64, folder: String?) {
        self.target = target
        self.seed = seed
        self.folder = folder
        // Neighbouring seeds give unlike streams, and equal seeds of two targets too.
        random = SeededGenerator(seed: target.utf8.reduce(seed &* 0x9E37_79B9_7F4A_7C15) { ($0 &* 31) &+ UInt64($1) })
    }

    /// The file with the input.
    func keep(in folder: String) -> String? {
        let path = "\(folder)/\(target)-\(seed)"
        return (try? Data(input).write(to: URL(fileURLWithPath: path))) == nil ? nil : path
    }

    public struct Broken: Error, CustomStringConvertible {
        public let description: String

        public init(description: String) { self.description = description }
    }

    /// - Throws: when it does not hold; the round has failed.
    public func check(_ holds: Bool, _ what: @autoclosure () -> String) throws {
        if !holds { throw Broken(description: what()) }
    }

    public func checkEqual<T: Equatable>(_ one: T, _ other: T, _ what: @autoclosure () -> String) throws {
        if one != other { throw Broken(description: "\(what()):\n  \(one)\n  \(other)") }
    }

    // MARK: Chance

    public mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }

    /// True once in so many times.
    public mutating func once(in count: Int) -> Bool { number(1...count) == 1 }

    /// `items` must not be empty.
    public mutating func pick<T>(_ items: [T]) -> T { items[number(0...(items.count - 1))] }

    public mutating func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
    }

    /// Up to so many of the pieces, one behind the other.
    public mutating func text(of pieces: [String], max: Int) -> String {
        (0..<number(0...max)).map { _ in pick(pieces) }.joined()
    }

    /// The bytes in pieces of any sizes, now and then each alone.
    public mutating func split(_ bytes: [UInt8], sizeMax: Int = 40) -> [[UInt8]] {
        let sizeMax = once(in: 8) ? 1 : max(sizeMax, 1)
        var pieces: [[UInt8]] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = rest.prefix(number(1...sizeMax))
            rest = rest.dropFirst(piece.count)
            pieces.append(Array(piece))
        }
        return pieces
    }

    // MARK: Harm

    /// What parsers trip over.
    private static let trips: [UInt8] = [0, 1, 9, 10, 13, 32, 34, 38, 45, 60, 62, 92, 123, 127, 128, 0xC3, 254, 255]

    /// The bytes with a few things done to them: bits turned, stretches lost, doubled, moved, or replaced by words of
    /// the language, numbers made huge.
    public mutating func mutated(_ bytes: [UInt8], words: [String] = [], timesMax: Int = 4) -> [UInt8] {
        var bytes = bytes
        for _ in 0..<number(1...timesMax) { mutate(&bytes, words) }
        return bytes
    }

    private mutating func mutate(_ bytes: inout [UInt8], _ words: [String]) {
        guard !bytes.isEmpty else {
            bytes = self.bytes(number(0...4))
            return
        }
        let index = number(0...(bytes.count - 1))
        let end = min(bytes.count, index + number(1...(once(in: 4) ? bytes.count : 16)))
        switch number(0...8) {
        case 0: bytes[index] ^= 1 << UInt8(number(0...7))
        case 1: bytes[index] = pick(Self.trips)
        case 2: bytes.removeSubrange(index..<end)
        case 3: bytes.insert(contentsOf: bytes[index..<end].prefix(64), at: number(0...bytes.count))
        case 4: bytes.removeLast(bytes.count - index)
        case 5 where !words.isEmpty: bytes.insert(contentsOf: Array(pick(words).utf8), at: index)
        case 6 where !words.isEmpty: bytes.replaceSubrange(index..<end, with: Array(pick(words).utf8))
        case 7:
            guard let digits = bytes[index...].firstIndex(where: { (0x30...0x39).contains($0) }) else { return }
            let last = bytes[digits...].firstIndex { !(0x30...0x39).contains($0) } ?? bytes.count
            let huge = ["0", "1", "-1", "65536", "2147483648", "4294967295", "9223372036854775808", "00", "1e9"]
            bytes.replaceSubrange(digits..<last, with: Array(pick(huge).utf8))
        default: bytes.insert(pick(Self.trips), at: index)
        }
    }
}
