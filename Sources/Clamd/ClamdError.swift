/// What clamd says of a file.
public enum ClamdVerdict: Sendable, Equatable {
    case clean
    /// The name of the signature that fits.
    case infected(String)
}

/// Why there is no verdict. Nothing is known of the file then.
public enum ClamdError: Error, Sendable, Equatable, CustomStringConvertible {
    /// There is no connection.
    case unreachable(String)
    case timedOut
    /// The connection ended before the answer did.
    case closed
    /// An answer that is none; its beginning.
    case garbage(String)
    /// clamd itself says that it could not, and why.
    case failed(String)
    /// The file is longer than clamd's `StreamMaxLength`.
    case streamTooLong
    /// The file itself could not be read, or was not as long as it said.
    case unreadable(String)

    public var description: String {
        switch self {
        case .unreachable(let text): "clamd cannot be reached: \(text)"
        case .timedOut: "clamd did not answer in time"
        case .closed: "clamd ended the connection without an answer"
        case .garbage(let text): "clamd answers what is no answer: \(text)"
        case .failed(let text): "clamd answers: \(text)"
        case .streamTooLong: "the file is longer than clamd's StreamMaxLength"
        case .unreadable(let text): "the file to scan cannot be read: \(text)"
        }
    }
}
