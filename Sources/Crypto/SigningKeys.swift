/// A mistake in the configuration of keys. Found when a service starts, never while it serves.
public enum SigningKeyError: Error, Equatable, CustomStringConvertible {
    case none
    case tooShort(bytes: Int)

    public var description: String {
        switch self {
        case .none: "At least one signing key is needed."
        case .tooShort(let bytes):
            "A signing key has \(bytes) bytes; \(SigningKeys.keyBytesMin) are the least that is safe."
        }
    }
}

/// The keys of a signer. The first signs, all of them verify, so that a secret is changed without ending every session:
/// put the new one first, and take the old one away when the last token made with it has expired.
public struct SigningKeys: Sendable {
    /// HS256 is as strong as its key; RFC 7518 section 3.2 asks for at least the digest's size.
    public static let keyBytesMin = 32

    let all: [[UInt8]]
    let signing: [UInt8]

    /// - Throws: `SigningKeyError` when there is no key or one is shorter than 32 bytes.
    public init(_ keys: [[UInt8]]) throws(SigningKeyError) {
        guard let first = keys.first else { throw .none }
        for key in keys where key.count < Self.keyBytesMin { throw .tooShort(bytes: key.count) }
        signing = first
        all = keys
    }

    /// The keys as the configuration has them: the UTF-8 bytes of each secret.
    public init(secrets: [String]) throws(SigningKeyError) {
        try self.init(secrets.map { Array($0.utf8) })
    }

    func code(for message: [UInt8]) -> [UInt8] { HMACSHA256.code(for: message, key: signing) }

    func verify(_ code: [UInt8], for message: [UInt8]) -> Bool {
        all.contains { constantTimeEquals(HMACSHA256.code(for: message, key: $0), code) }
    }
}

extension SigningKeys: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "•••" }
    public var debugDescription: String { "•••" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}
