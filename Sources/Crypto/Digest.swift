import Copenssl

/// SHA-256 (FIPS 180-4). Digests are 32 bytes.
public enum SHA256 {
    public static let digestBytes = 32

    public static func hash(_ bytes: [UInt8]) -> [UInt8] {
        bytes.withUnsafeBytes { hash($0) }
    }

    /// The digest of the UTF-8 of `string`.
    public static func hash(_ string: String) -> [UInt8] {
        var string = string
        return string.withUTF8 { hash(UnsafeRawBufferPointer($0)) }
    }

    public static func hash(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
        let hasher = Hasher()
        hasher.update(bytes)
        return hasher.finish()
    }

    /// Hashes what comes in pieces, such as an upload while it streams to the store. One owner, one thread at a time.
    public final class Hasher {
        private let context: OpaquePointer

        public init() {
            guard let context = EVP_MD_CTX_new() else { preconditionFailure("OpenSSL is out of memory") }
            self.context = context
            reset()
        }

        deinit { EVP_MD_CTX_free(context) }

        public func update(_ bytes: UnsafeRawBufferPointer) {
            check(EVP_DigestUpdate(context, bytes.baseAddress, bytes.count))
        }

        public func update(_ bytes: [UInt8]) {
            bytes.withUnsafeBytes { update($0) }
        }

        /// The digest of all bytes so far. The hasher is then as new and may be used again.
        public func finish() -> [UInt8] {
            var digest = [UInt8](repeating: 0, count: SHA256.digestBytes)
            check(EVP_DigestFinal_ex(context, &digest, nil))
            reset()
            return digest
        }

        private func reset() { check(EVP_DigestInit_ex(context, EVP_sha256(), nil)) }
    }
}

/// HMAC-SHA256 (RFC 2104). Codes are 32 bytes.
public enum HMACSHA256 {
    public static func code(for message: [UInt8], key: [UInt8]) -> [UInt8] {
        message.withUnsafeBytes { code(for: $0, key: key) }
    }

    public static func code(for message: UnsafeRawBufferPointer, key: [UInt8]) -> [UInt8] {
        guard let keyBytes = Int32(exactly: key.count) else { preconditionFailure("a key of over 2 GiB") }
        var code = [UInt8](repeating: 0, count: SHA256.digestBytes)
        var codeBytes: UInt32 = 0
        let start = message.baseAddress?.assumingMemoryBound(to: UInt8.self)
        let done = HMAC(EVP_sha256(), key, keyBytes, start, message.count, &code, &codeBytes)
        precondition(done != nil && Int(codeBytes) == SHA256.digestBytes, "OpenSSL could not make an HMAC")
        return code
    }
}

/// Whether two secrets are equal, in a time that tells nothing of where they differ. Their lengths are not secret.
public func constantTimeEquals(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    left.count == right.count && CRYPTO_memcmp(left, right, left.count) == 0
}

/// These calls fail only when memory is out, where no caller could go on.
private func check(_ code: Int32) {
    precondition(code == 1, "OpenSSL could not hash")
}
