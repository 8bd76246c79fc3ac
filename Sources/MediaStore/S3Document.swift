import Foundation

/// What S3 says in XML. Its documents are flat and have no attributes that matter: the texts between tags are all that
/// is looked for.
struct S3Document {
    private let text: Substring

    init(_ bytes: [UInt8]) { text = String(decoding: bytes, as: UTF8.self)[...] }

    private init(_ text: Substring) { self.text = text }

    /// Whether it is a whole document whose outermost element has this name. A page of HTML that stands where an answer
    /// of an S3 was asked for, or one that was cut off, is not.
    func isWhole(_ name: String) -> Bool {
        var rest = text.drop { $0 == "\u{FEFF}" || $0.isWhitespace }
        if rest.hasPrefix("<?xml") {
            guard let end = rest.range(of: "?>") else { return false }
            rest = rest[end.upperBound...].drop { $0.isWhitespace }
        }
        guard rest.hasPrefix("<\(name)"), let next = rest.dropFirst(name.count + 1).first,
            next == ">" || next.isWhitespace
        else { return false }
        let end = "</\(name)>"
        var last = rest
        while last.last?.isWhitespace == true { last.removeLast() }
        return last.hasSuffix(end) && last.range(of: end)?.upperBound == last.endIndex
    }

    /// What stands in each element of this name, in order. Elements of one name are never within each other.
    func elements(_ name: String) -> [S3Document] {
        var found: [S3Document] = []
        var rest = text
        while let open = rest.range(of: "<\(name)") {
            rest = rest[open.upperBound...]
            // "<Key" also begins "<KeyCount>".
            guard let next = rest.first, next == ">" || next == " " || next == "/" else { continue }
            guard let end = rest.firstIndex(of: ">") else { break }
            if rest[..<end].hasSuffix("/") { continue }
            rest = rest[rest.index(after: end)...]
            guard let close = rest.range(of: "</\(name)>") else { break }
            found.append(S3Document(rest[..<close.lowerBound]))
            rest = rest[close.upperBound...]
        }
        return found
    }

    /// The texts of the elements of this name.
    func texts(of name: String) -> [String] { elements(name).map { Self.unescape($0.text) } }

    private static func unescape(_ text: Substring) -> String {
        guard text.contains("&") else { return String(text) }
        // The ampersand comes last: what it makes is not looked at again.
        let pairs = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#34;", "\""), ("&apos;", "'"), ("&amp;", "&")]
        return pairs.reduce(String(text)) { $0.replacing($1.0, with: $1.1) }
    }

    static func escape(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
    }

    /// `2026-11-30T14:18:24.000Z`, with or without a fraction.
    static func date(_ text: String) -> Date? {
        let seconds = text.prefix { $0 != "." && $0 != "Z" }
        return try? Date(seconds + "Z", strategy: .iso8601)
    }

    /// `Mon, 30 Nov 2026 14:18:24 GMT` (RFC 9110 section 5.6.7).
    static func headerDate(_ text: String) -> Date? {
        let parts = text.split(whereSeparator: { $0 == " " || $0 == ":" })
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        guard parts.count == 8, let month = months.firstIndex(of: String(parts[2])) else { return nil }
        let day = parts[1].count == 1 ? "0" + parts[1] : String(parts[1])
        let number = month + 1 < 10 ? "0\(month + 1)" : "\(month + 1)"
        return date("\(parts[3])-\(number)-\(day)T\(parts[4]):\(parts[5]):\(parts[6])Z")
    }
}
