import Core
import Crypto

/// `application/x-www-form-urlencoded`, as the URL standard decodes it, but for what is malformed.
enum FormEncoding {
    /// `%XX` and `+` undone; what comes out may be any bytes.
    /// - Throws: `invalid` for a percent sign without two hexadecimal digits.
    static func decode(_ text: some Collection<UInt8>) throws(AppError) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count)
        var iterator = text.makeIterator()
        while let byte = iterator.next() {
            switch byte {
            case UInt8(ascii: "+"): bytes.append(UInt8(ascii: " "))
            case UInt8(ascii: "%"):
                guard let high = iterator.next().flatMap(Hex.value), let low = iterator.next().flatMap(Hex.value)
                else { throw AppError(.invalid, "The query has a percent sign without two hexadecimal digits.") }
                bytes.append(high << 4 | low)
            default: bytes.append(byte)
            }
        }
        return bytes
    }
}
