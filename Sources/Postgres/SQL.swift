/// A statement and the values bound to it. Written as a literal; `\( )` is always a bind, or another `SQL` put in
/// place.
///
///     db.short.first("SELECT id, title FROM job_postings WHERE id = \(id)", as: …)
///
/// A runtime `String` does not compile as a statement, so nothing a client sends becomes SQL.
public struct SQL: ExpressibleByStringInterpolation, Sendable {
    /// More parameters than this cannot be counted by the protocol's 16 bits.
    public static let bindsMax = 65_535

    let key: Key
    let binds: [PostgresBind]
    /// What cannot be sent: found when the value is bound, thrown when the statement is run.
    let problem: PostgresEncodingError?
    /// Whether a connection keeps it prepared.
    private(set) var isKept = true

    public init(stringLiteral value: StaticString) {
        key = Key(pieces: [.literal(value)], digest: Key.mix(Key.seed, value))
        binds = []
        problem = nil
    }

    public init(stringInterpolation interpolation: StringInterpolation) {
        key = Key(pieces: interpolation.pieces, digest: interpolation.digest)
        binds = interpolation.binds
        problem = interpolation.binds.count > Self.bindsMax ? .tooManyBinds : interpolation.problem
    }

    /// The same statement, planned each time for its own values and kept by no connection: for shapes that clients
    /// choose. There are too many of them, a plan may have megabytes, and they would drive out what is asked all the
    /// time.
    public var unprepared: SQL {
        var copy = self
        copy.isKept = false
        return copy
    }

    /// The statement as PostgreSQL sees it, with `$1`, `$2`… for the binds.
    public var text: String { key.text }

    public struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var pieces: [Key.Piece] = []
        fileprivate var binds: [PostgresBind] = []
        fileprivate var digest = Key.seed
        fileprivate var problem: PostgresEncodingError?

        public init(literalCapacity: Int, interpolationCount: Int) {
            pieces.reserveCapacity(interpolationCount * 2 + 1)
            binds.reserveCapacity(interpolationCount)
        }

        public mutating func appendLiteral(_ literal: StaticString) {
            guard literal.utf8CodeUnitCount > 0 else { return }
            pieces.append(.literal(literal))
            digest = Key.mix(digest, literal)
        }

        public mutating func appendInterpolation(_ value: some PostgresEncodable) { append(value.postgresBind) }

        /// Nil is NULL. Of its own, so that the compiler does not take the optional for an oversight.
        public mutating func appendInterpolation<T: PostgresEncodable>(_ value: T?) { append(value.postgresBind) }

        private mutating func append(_ bind: PostgresBind) {
            if problem == nil { problem = bind.problem }
            binds.append(bind)
            pieces.append(.bind)
            digest = Key.mix(digest, 1)
        }

        /// Puts another statement's text and binds in place; its binds are numbered on.
        public mutating func appendInterpolation(_ fragment: SQL) {
            if problem == nil { problem = fragment.problem }
            binds.append(contentsOf: fragment.binds)
            for piece in fragment.key.pieces {
                pieces.append(piece)
                switch piece {
                case .literal(let literal): digest = Key.mix(digest, literal)
                case .bind: digest = Key.mix(digest, 1)
                }
            }
        }
    }
}

extension SQL {
    /// What makes two statements the same: the literals they are made of, by address. Comparing a handful of
    /// addresses is cheaper than building and hashing the text for each call; the same text written in two places is
    /// prepared twice.
    struct Key: Hashable, Sendable {
        enum Piece: Sendable {
            case literal(StaticString)
            case bind
        }

        static let seed: UInt64 = 0xcbf2_9ce4_8422_2325

        let pieces: [Piece]
        let digest: UInt64

        static func mix(_ digest: UInt64, _ value: UInt64) -> UInt64 {
            var mixed = (digest ^ value) &* 0x9e37_79b9_7f4a_7c15
            mixed ^= mixed >> 32
            return mixed
        }

        static func mix(_ digest: UInt64, _ literal: StaticString) -> UInt64 {
            mix(mix(digest, UInt64(address(literal))), UInt64(literal.utf8CodeUnitCount))
        }

        /// A literal of one scalar may have no address; its scalar then stands for it.
        private static func address(_ literal: StaticString) -> UInt {
            guard literal.hasPointerRepresentation else { return UInt(literal.unicodeScalar.value) }
            return UInt(bitPattern: literal.utf8Start)
        }

        var text: String {
            var text = ""
            var bind = 0
            for piece in pieces {
                switch piece {
                case .literal(let literal):
                    text += literal.withUTF8Buffer { String(decoding: $0, as: UTF8.self) }
                case .bind:
                    bind += 1
                    text += "$\(bind)"
                }
            }
            return text
        }

        static func == (left: Key, right: Key) -> Bool {
            guard left.digest == right.digest, left.pieces.count == right.pieces.count else { return false }
            for index in left.pieces.indices {
                switch (left.pieces[index], right.pieces[index]) {
                case (.bind, .bind): continue
                case (.literal(let one), .literal(let other)):
                    guard address(one) == address(other), one.utf8CodeUnitCount == other.utf8CodeUnitCount else {
                        return false
                    }
                default: return false
                }
            }
            return true
        }

        func hash(into hasher: inout Hasher) { hasher.combine(digest) }
    }
}
