import Foundation

/// The rules every text from outside passes before it is a value of ours. Lengths count Unicode scalars, as the CHECKs
/// of the schema do; a test holds the two together.
public struct TextField: Sendable {
    public let name: String
    public let lengthMin: Int
    public let lengthMax: Int
    let multiline: Bool

    public init(_ name: String, min: Int = 0, max: Int, multiline: Bool = false) {
        self.name = name
        lengthMin = min
        lengthMax = max
        self.multiline = multiline
    }

    /// Trims white space, then refuses what is too short, too long, or has NUL or other control characters.
    public func accept(_ text: String) throws(AppError) -> String {
        let text = text.trimmingCharacters(in: .whitespacesAndNewlines)
        let length = text.unicodeScalars.count
        guard length >= lengthMin else {
            throw .invalid(
                name, length == 0 ? "\(name) is required." : "\(name) must have at least \(lengthMin) characters.")
        }
        guard length <= lengthMax else {
            throw .invalid(name, "\(name) is limited to \(lengthMax) characters; this has \(length).")
        }
        for scalar in text.unicodeScalars where scalar.value < 0x20 || scalar.value == 0x7F {
            if multiline, scalar == "\n" || scalar == "\r" || scalar == "\t" { continue }
            throw .invalid(name, "\(name) may not have control characters.")
        }
        return text
    }
}
