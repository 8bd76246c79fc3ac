import Foundation

/// What a store could not do: an outage, a folder or a bucket that is not ours. Carries no content and no secret.
public struct StoreError: Error, Equatable, CustomStringConvertible {
    public enum Reason: Sendable, Equatable {
        case system(call: String, errno: Int32)
        case badKey
        /// What a named folder would be made in is not there.
        case noFolder(String)
        /// `write` or `commit` after `commit` or `abort`.
        case finished
        /// An S3 said no: its status, and the name it has for the reason.
        case refused(status: Int, code: String)
        /// No answer of an S3 that one could understand; in libcurl's words, or ours.
        case unreachable(String)
        /// The object is another one than was opened, or gone.
        case changed
        /// More than a store takes as one object.
        case tooLarge
    }

    public let reason: Reason

    /// Whether the store is at fault, and not the one who asked.
    var isTrouble: Bool {
        switch reason {
        case .system, .noFolder, .refused, .unreachable: true
        case .badKey, .finished, .changed, .tooLarge: false
        }
    }

    init(_ reason: Reason) { self.reason = reason }

    /// Takes `errno` as the call left it.
    static func system(_ call: String) -> StoreError { StoreError(.system(call: call, errno: errno)) }

    public var description: String {
        switch reason {
        case .system(let call, let code): "object store: \(call): \(String(cString: strerror(code)))"
        case .noFolder(let path): "object store: there is no folder \(path), and only the last one of a path is made"
        case .badKey: "object store: this is not a key"
        case .finished: "object store: the object is finished already"
        case .refused(let status, let code): "object store: S3 answers \(status) \(code)\(Self.advice(code))"
        case .unreachable(let text): "object store: S3 cannot be reached: \(text)"
        case .changed: "object store: the object is not the one that was opened"
        case .tooLarge: "object store: the object is too large"
        }
    }

    /// For the mistakes that an operator makes, and can mend.
    private static func advice(_ code: String) -> String {
        switch code {
        case "SignatureDoesNotMatch", "InvalidAccessKeyId":
            " (look at MARTLET_S3_ACCESS_KEY, MARTLET_S3_SECRET_KEY and the region)"
        case "NoSuchBucket": " (the bucket of MARTLET_STORE is not there)"
        case "AccessDenied": " (the key lacks a permission: it needs to get, put, delete and list)"
        case "PermanentRedirect", "AuthorizationHeaderMalformed": " (look at the region and the endpoint)"
        case "RequestTimeTooSkewed": " (the clock of this machine is wrong)"
        default: ""
        }
    }
}
