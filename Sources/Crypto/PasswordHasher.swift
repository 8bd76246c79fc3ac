import Cargon2
import Foundation

/// What went wrong with a password. None of it contains the password.
public enum PasswordError: Error, Equatable, Sendable {
    /// Over `PasswordHasher.passwordBytesMax`.
    case tooLong
    /// The stored text is not an argon2id hash within our limits: a fault of the data, not of the person.
    case malformedHash
    /// libargon2 could not work, by its own code (it is out of memory, as a rule).
    case failed(code: Int32)
}

/// Password hashes by argon2id (RFC 9106) in PHC text form.
///
/// A call takes tens of milliseconds and `memoryKiB` of memory: run it off the event loops, a bounded number at a time.
public struct PasswordHasher: Sendable {
    public struct Parameters: Equatable, Sendable {
        public let memoryKiB: UInt32
        public let iterations: UInt32
        public let lanes: UInt32

        /// The first choice of OWASP's password storage cheat sheet: 19 MiB, two passes, one lane.
        public static let standard = Parameters(memoryKiB: 19 * 1024, iterations: 2, lanes: 1)

        public init(memoryKiB: UInt32, iterations: UInt32, lanes: UInt32) {
            self.memoryKiB = memoryKiB
            self.iterations = iterations
            self.lanes = lanes
        }
    }

    /// Nobody types more, and hashing is not to be fed by the megabyte.
    public static let passwordBytesMax = 1024
    /// A stored hash that asks for more was not made by us; obeying it could take all the memory there is.
    static let storedMemoryKiBMax: UInt32 = 1 << 20
    static let storedIterationsMax: UInt32 = 64
    static let storedLanesMax: UInt32 = 64
    static let storedBytesMax = 256
    private static let saltBytes = 16
    private static let hashBytes = 32

    public let parameters: Parameters
    private let random: any RandomSource

    public init(parameters: Parameters = .standard, random: any RandomSource = SystemRandom()) {
        self.parameters = parameters
        self.random = random
    }

    /// `$argon2id$v=19$m=…,t=…,p=…$salt$hash` for a new password.
    public func hash(_ password: String) throws(PasswordError) -> String {
        let password = try Self.bytes(of: password)
        let salt = random.bytes(Self.saltBytes)
        let encodedBytes = argon2_encodedlen(
            parameters.iterations, parameters.memoryKiB, parameters.lanes, UInt32(Self.saltBytes),
            UInt32(Self.hashBytes), Argon2_id)
        var encoded = [CChar](repeating: 0, count: encodedBytes)
        let code = argon2id_hash_encoded(
            parameters.iterations, parameters.memoryKiB, parameters.lanes, password, password.count, salt, salt.count,
            Self.hashBytes, &encoded, encodedBytes)
        guard code == ARGON2_OK.rawValue else { throw .failed(code: code) }
        return String(decoding: encoded.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Whether `password` is the one `stored` was made from. A password over the limit is simply wrong.
    public func verify(_ password: String, against stored: String) throws(PasswordError) -> Bool {
        guard Self.parameters(of: stored) != nil else { throw .malformedHash }
        guard let password = try? Self.bytes(of: password) else { return false }
        let code = argon2id_verify(stored, password, password.count)
        switch code {
        case ARGON2_OK.rawValue: return true
        case ARGON2_VERIFY_MISMATCH.rawValue: return false
        case ARGON2_DECODING_FAIL.rawValue, ARGON2_DECODING_LENGTH_FAIL.rawValue, ARGON2_SALT_TOO_SHORT.rawValue,
            ARGON2_OUTPUT_TOO_SHORT.rawValue, ARGON2_MEMORY_TOO_LITTLE.rawValue:
            throw .malformedHash
        default: throw .failed(code: code)
        }
    }

    /// Spends the time `verify` takes and finds nothing, for a user who does not exist: how long the answer took must
    /// not tell whether there is such a user.
    public func verifyUnknown(_ password: String) throws(PasswordError) {
        guard let password = try? Self.bytes(of: password) else { return }
        let salt = [UInt8](repeating: 0, count: Self.saltBytes)
        var hash = [UInt8](repeating: 0, count: Self.hashBytes)
        let code = argon2id_hash_raw(
            parameters.iterations, parameters.memoryKiB, parameters.lanes, password, password.count, salt, salt.count,
            &hash, hash.count)
        guard code == ARGON2_OK.rawValue else { throw .failed(code: code) }
    }

    /// Whether `stored` was made with other parameters than these, and is to be replaced at the next sign-in.
    public func needsRehash(_ stored: String) -> Bool {
        Self.parameters(of: stored) != parameters
    }

    /// NFC first (RFC 8265 section 4.2): an "é" is the same password whichever keyboard composed it.
    private static func bytes(of password: String) throws(PasswordError) -> [UInt8] {
        guard password.utf8.count <= passwordBytesMax else { throw .tooLong }
        return Array(password.precomposedStringWithCanonicalMapping.utf8)
    }

    /// The cost parameters of a stored hash, or nil when it is not one we would have made.
    static func parameters(of stored: String) -> Parameters? {
        guard stored.utf8.count <= storedBytesMax, !stored.utf8.contains(0) else { return nil }
        let fields = stored.split(separator: "$", omittingEmptySubsequences: false)
        guard fields.count == 6, fields[0].isEmpty, fields[1] == "argon2id", fields[2] == "v=19" else { return nil }
        let costs = fields[3].split(separator: ",", omittingEmptySubsequences: false)
        guard costs.count == 3,
            let memory = number(costs[0], after: "m="), let iterations = number(costs[1], after: "t="),
            let lanes = number(costs[2], after: "p="),
            (1...storedMemoryKiBMax).contains(memory), (1...storedIterationsMax).contains(iterations),
            (1...storedLanesMax).contains(lanes)
        else { return nil }
        return Parameters(memoryKiB: memory, iterations: iterations, lanes: lanes)
    }

    private static func number(_ field: Substring, after prefix: String) -> UInt32? {
        field.hasPrefix(prefix) ? UInt32(field.dropFirst(prefix.count)) : nil
    }
}
