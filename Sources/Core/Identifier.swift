/// A key of one table. `User.ID` and `Company.ID` do not mix.
public struct Identifier<Entity>: Hashable, Sendable, Comparable, CustomStringConvertible {
    public let value: Int64

    public init(_ value: Int64) { self.value = value }

    /// A decimal number above zero as it stands in a path or a form field; nil otherwise.
    public init?(text: some StringProtocol) {
        guard text.utf8.count <= 19, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let value = Int64(text),
            value > 0
        else { return nil }
        self.value = value
    }

    public var description: String { String(value) }
    public static func < (left: Self, right: Self) -> Bool { left.value < right.value }
}
