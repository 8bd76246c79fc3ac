import EventLoop
import Foundation

/// A text that must not be shown. Printing it, reflecting it or putting it into a log gives `•••`.
public struct Secret: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The text itself, for the one place that uses it.
    public let value: String

    public init(_ value: String) { self.value = value }

    public var description: String { "•••" }
    public var debugDescription: String { "•••" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// Everything that is wrong with the configuration, in one message.
public struct ConfigurationError: Error, CustomStringConvertible, Equatable {
    /// EX_CONFIG of sysexits.h.
    public static let exitStatus: Int32 = 78

    public let mistakes: [String]

    public init(_ mistakes: [String]) { self.mistakes = mistakes }

    public var description: String {
        "The configuration has \(mistakes.count == 1 ? "a mistake" : "\(mistakes.count) mistakes"):\n"
            + mistakes.map { "  - \($0)" }.joined(separator: "\n")
    }
}

/// Reads configuration from environment variables and gathers every mistake, so that an operator mends all at once.
///
/// `NAME_FILE` gives any value by the path of a file that holds it (its last line end is dropped), as container
/// secrets do. Both at once is a mistake: whichever were taken, somebody would believe in the other.
public struct Environment {
    /// A secret longer than this is the wrong file.
    public static let fileBytesMax = 64 * 1024
    private static let fileSuffix = "_FILE"

    private let values: [String: String]
    private var mistakes: [String] = []

    public init(_ values: [String: String] = ProcessInfo.processInfo.environment) { self.values = values }

    /// Throws all mistakes made so far, or nothing.
    public func check() throws(ConfigurationError) {
        guard mistakes.isEmpty else { throw ConfigurationError(mistakes) }
    }

    public mutating func mistake(_ text: String) {
        // A setting may be read more than once, and is wrong once.
        if !mistakes.contains(text) { mistakes.append(text) }
    }

    private enum Found {
        case nothing, unreadable
        case text(String)
    }

    private mutating func find(_ name: String) -> Found {
        let fileName = name + Self.fileSuffix
        let path = values[fileName].flatMap { $0.isEmpty ? nil : $0 }
        if let value = values[name], !value.isEmpty {
            if path != nil { mistake("\(name) and \(fileName) are both set; take one of them away") }
            return .text(value)
        }
        guard let path else { return .nothing }
        guard let data = FileManager.default.contents(atPath: path) else {
            let reason = access(path, R_OK) == 0 ? "it is no file" : String(cString: strerror(errno))
            mistake("\(fileName) names \(path), which cannot be read: \(reason)")
            return .unreadable
        }
        guard data.count <= Self.fileBytesMax, let text = String(data: data, encoding: .utf8) else {
            mistake("\(fileName) names \(path), which is not a short text file")
            return .unreadable
        }
        let value = text.hasSuffix("\n") ? text.dropLast() : text[...]
        return value.isEmpty ? .nothing : .text(String(value))
    }

    /// The value of `name`, or the content of the file that `name_FILE` names; nil when neither is set or it is empty.
    public mutating func value(_ name: String) -> String? {
        guard case .text(let value) = find(name) else { return nil }
        return value
    }

    public mutating func string(_ name: String, default fallback: String? = nil) -> String {
        switch find(name) {
        case .text(let value): return value
        // That is told already.
        case .unreadable: return fallback ?? ""
        case .nothing:
            if fallback == nil { mistake("\(name) is not set") }
            return fallback ?? ""
        }
    }

    /// Looks at every setting whose name begins so and that is given by a file, whoever reads it.
    public mutating func tryFiles(ofNamesWith prefix: String) {
        for name in values.keys.sorted() where name.hasPrefix(prefix) && name.hasSuffix(Self.fileSuffix) {
            _ = find(String(name.dropLast(Self.fileSuffix.count)))
        }
    }

    /// Tries what is set on what will use it; an error's description is a mistake. For values whose rules another
    /// module knows.
    public mutating func verify(_ name: String, _ use: (String) throws -> Void) {
        guard let text = value(name) else { return }
        do { try use(text) } catch { mistake("\(name): \(error)") }
    }

    public mutating func secret(_ name: String, bytesMin: Int) -> Secret {
        let text = string(name)
        if !text.isEmpty, text.utf8.count < bytesMin {
            mistake("\(name) has \(text.utf8.count) bytes; it needs at least \(bytesMin)")
        }
        return Secret(text)
    }

    /// The secrets that sign sessions: the first signs, a former one still verifies while its tokens live.
    public mutating func sessionSecrets(bytesMin: Int) -> [String] {
        let present = secret("MARTLET_SECRET", bytesMin: bytesMin)
        guard value("MARTLET_SECRET_FORMER") != nil else { return [present.value] }
        return [present.value, secret("MARTLET_SECRET_FORMER", bytesMin: bytesMin).value]
    }

    public mutating func int(_ name: String, default fallback: Int, in range: ClosedRange<Int>) -> Int {
        guard let text = value(name) else { return fallback }
        guard let value = Int(text), range.contains(value) else {
            let (low, high) = (range.lowerBound, range.upperBound)
            mistake("\(name) is \"\(text)\"; it must be a number from \(low) to \(high)")
            return fallback
        }
        return value
    }

    /// `on`/`off`, `true`/`false`, `1`/`0`, `yes`/`no`.
    public mutating func bool(_ name: String, default fallback: Bool) -> Bool {
        guard let text = value(name) else { return fallback }
        switch text.lowercased() {
        case "on", "true", "1", "yes": return true
        case "off", "false", "0", "no": return false
        default:
            mistake("\(name) is \"\(text)\"; it must be on or off")
            return fallback
        }
    }

    public mutating func choice<T: RawRepresentable & CaseIterable>(_ name: String, default fallback: T) -> T
    where T.RawValue == String {
        guard let text = value(name) else { return fallback }
        if let value = T(rawValue: text.lowercased()) { return value }
        let known = T.allCases.map(\.rawValue).joined(separator: ", ")
        mistake("\(name) is \"\(text)\"; it must be one of \(known)")
        return fallback
    }

    public mutating func address(_ name: String, default fallback: String) -> SocketAddress {
        let text = value(name) ?? fallback
        if let address = SocketAddress(text) { return address }
        mistake("\(name) is \"\(text)\"; it must be an IP address and a port, such as 127.0.0.1:8081")
        return SocketAddress(host: "127.0.0.1", port: 0)
    }

    /// An http or https URL without a trailing slash.
    public mutating func webURL(_ name: String, default fallback: String? = nil) -> String {
        let text = string(name, default: fallback)
        guard !text.isEmpty else { return text }
        guard let url = URLComponents(string: text), url.scheme == "http" || url.scheme == "https", url.host != nil
        else {
            mistake("\(name) is \"\(text)\"; it must be a URL such as https://jobs.example.org")
            return text
        }
        return text.hasSuffix("/") ? String(text.dropLast()) : text
    }
}
