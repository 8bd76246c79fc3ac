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
        if isPlain(text) { return text }
        let text = Self.trimmed(text)
        let length = text.unicodeScalars.count
        guard length >= lengthMin else {
            throw .invalid(
                name, length == 0 ? "\(name) is required." : "\(name) must have at least \(lengthMin) characters.")
        }
        guard length <= lengthMax else {
            throw .invalid(name, "\(name) is limited to \(lengthMax) characters; this has \(length).")
        }
        for scalar in text.unicodeScalars where scalar.breaksLine || scalar.isControl {
            if multiline, scalar.breaksLine || scalar == "\t" { continue }
            throw .invalid(name, "\(name) may not have control characters.")
        }
        return text
    }

    /// Most texts: ASCII, of the right length, with nothing to trim or refuse. An import asks this ten times a posting,
    /// and the general way costs thirty times as much.
    private func isPlain(_ text: String) -> Bool {
        let answer = text.utf8.withContiguousStorageIfAvailable { bytes in
            guard bytes.count >= lengthMin, bytes.count <= lengthMax else { return false }
            guard let first = bytes.first, let last = bytes.last else { return true }
            return first > 0x20 && last > 0x20
                && bytes.allSatisfy { $0 < 0x7F && ($0 >= 0x20 || (multiline && $0 == 0x0A)) }
        }
        return answer ?? false
    }

    private static func trimmed(_ text: String) -> String {
        let scalars = text.unicodeScalars
        guard let start = scalars.firstIndex(where: { !$0.properties.isWhitespace }),
            let last = scalars.lastIndex(where: { !$0.properties.isWhitespace })
        else { return "" }
        return String(scalars[start...last])
    }
}

extension Unicode.Scalar {
    /// C0, DEL and C1: no text of a person has them but for tabs and ends of lines.
    var isControl: Bool { value < 0x20 || (0x7F...0x9F).contains(value) }

    /// LF, CR, NEL and Unicode's own two.
    var breaksLine: Bool { [0x0A, 0x0D, 0x85, 0x2028, 0x2029].contains(value) }

    /// Leaves some mark on paper. White space does not, nor do joiners and marks that turn the direction of writing.
    var isVisible: Bool {
        switch properties.generalCategory {
        case .control, .format, .surrogate, .privateUse, .unassigned: false
        case .spaceSeparator, .lineSeparator, .paragraphSeparator: false
        default: !properties.isDefaultIgnorableCodePoint
        }
    }
}
