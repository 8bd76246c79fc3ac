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
        let bytes = try FormEncoding.decode(text)
        guard !bytes.contains(0), let decoded = String(validating: bytes, as: UTF8.self) else {
            throw AppError(.invalid, "The query is not UTF-8, or has a NUL.")
        }
        return decoded
    }
}
