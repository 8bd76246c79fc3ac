import Core

/// The query of a request: pairs in order, percent-decoded, `+` as a space (application/x-www-form-urlencoded).
public struct QueryItems: Sendable {
    public static let itemsMax = 200

    public let items: [(name: String, value: String)]

    /// - Throws: `invalid` for bad escapes, what is not UTF-8, NUL, and more items than `itemsMax`.
    public init(_ query: String) throws(AppError) {
        var items: [(name: String, value: String)] = []
        for part in query.utf8.split(separator: UInt8(ascii: "&")) {
            guard items.count < Self.itemsMax else {
                throw AppError(.invalid, "The query has more than \(Self.itemsMax) parameters.")
            }
            let pair = part.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            items.append((try Self.decode(pair[0]), pair.count > 1 ? try Self.decode(pair[1]) : ""))
        }
        self.items = items
    }

    /// The last value of this name, nil when absent or empty.
    public subscript(name: String) -> String? {
        guard let value = items.last(where: { $0.name == name })?.value, !value.isEmpty else { return nil }
        return value
    }

    public func all(_ name: String) -> [String] { items.filter { $0.name == name }.map(\.value) }

    public func int(_ name: String) throws(AppError) -> Int? {
        guard let text = self[name] else { return nil }
        guard let number = Int(text) else { throw .invalid(name, "\(name) must be a whole number") }
        return number
    }

    public func float(_ name: String) throws(AppError) -> Float? {
        guard let text = self[name] else { return nil }
        guard let number = DecimalText.float(text) else { throw .invalid(name, "\(name) must be a number") }
        return number
    }

    private static func decode(_ text: some Collection<UInt8>) throws(AppError) -> String {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count)
        var iterator = text.makeIterator()
        while let byte = iterator.next() {
            switch byte {
            case UInt8(ascii: "+"): bytes.append(UInt8(ascii: " "))
            case UInt8(ascii: "%"):
                guard let high = iterator.next().flatMap(hexadecimal), let low = iterator.next().flatMap(hexadecimal)
                else { throw AppError(.invalid, "The query has a percent sign without two hexadecimal digits.") }
                bytes.append(high << 4 | low)
            default: bytes.append(byte)
            }
        }
        guard !bytes.contains(0), let decoded = String(validating: bytes, as: UTF8.self) else {
            throw AppError(.invalid, "The query is not UTF-8, or has a NUL.")
        }
        return decoded
    }

    private static func hexadecimal(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x41...0x46: byte - 0x41 + 10
        case 0x61...0x66: byte - 0x61 + 10
        default: nil
        }
    }
}
