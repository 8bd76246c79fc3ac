import Copenssl

/// Where unpredictable bytes come from. Injected, so that a test can know the tokens it will see.
public protocol RandomSource: Sendable {
    /// `count` bytes nobody can foretell. Never fails: a source that cannot give them must end the process.
    func bytes(_ count: Int) -> [UInt8]
}

/// OpenSSL's generator, seeded by the kernel.
public struct SystemRandom: RandomSource {
    public init() {}

    public func bytes(_ count: Int) -> [UInt8] {
        guard count > 0, let length = Int32(exactly: count) else { return [] }
        var bytes = [UInt8](repeating: 0, count: count)
        // Going on with guessable tokens would be worse than ending, and no caller could do anything about it.
        precondition(RAND_bytes(&bytes, length) == 1, "OpenSSL has no randomness to give")
        return bytes
    }
}

extension RandomSource {
    /// A number from 0 to `max`, each as likely as the others but for one part in 2^32 or less: for spreading, not for
    /// secrets. Not above 0: 0.
    public func number(upTo max: Int) -> Int {
        guard max > 0 else { return 0 }
        let bits = bytes(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return Int(bits % (UInt64(max) + 1))
    }
}
