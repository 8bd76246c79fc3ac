import Foundation

/// A system call of the store that failed: an outage, or a folder that is not ours. Carries no content.
public struct StoreError: Error, Equatable, CustomStringConvertible {
    public enum Reason: Sendable, Equatable {
        case system(call: String, errno: Int32)
        case badKey
        /// `write` or `commit` after `commit` or `abort`.
        case finished
    }

    public let reason: Reason

    init(_ reason: Reason) { self.reason = reason }

    /// Takes `errno` as the call left it.
    static func system(_ call: String) -> StoreError { StoreError(.system(call: call, errno: errno)) }

    public var description: String {
        switch reason {
        case .system(let call, let code): "object store: \(call): \(String(cString: strerror(code)))"
        case .badKey: "object store: this is not a key"
        case .finished: "object store: the object is finished already"
        }
    }
}
