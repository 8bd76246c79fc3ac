/// The only error meant to cross a module boundary. Anything else is an outage or a bug.
public struct AppError: Error, Equatable, Sendable {
    public enum Code: String, Sendable, CaseIterable {
        case invalid, unauthenticated, forbidden, conflict, gone, unavailable
        /// A rule of the application said no to valid input.
        case refused
        case notFound = "not_found"
        case tooLarge = "too_large"
        case tooMany = "too_many"
        case unsupportedType = "unsupported_type"
    }

    /// One field that is wrong: `["company", "name"]`, and a sentence about it.
    public struct Issue: Equatable, Sendable {
        public let path: [String]
        public let message: String

        public init(path: [String], message: String) {
            self.path = path
            self.message = message
        }
    }

    public let code: Code
    /// Shown to the client as it stands: no SQL, no secrets, nobody else's data.
    public let message: String
    public let issues: [Issue]
    /// For `conflict`: the thing that is there already, as a path of the API.
    public let location: String?
    /// For `unavailable` and `tooMany`: when to come back.
    public let retryAfterSeconds: Int?

    public init(
        _ code: Code, _ message: String, issues: [Issue] = [], location: String? = nil, retryAfterSeconds: Int? = nil
    ) {
        self.code = code
        self.message = message
        self.issues = issues
        self.location = location
        self.retryAfterSeconds = retryAfterSeconds
    }

    public static func invalid(_ field: String, _ message: String) -> AppError {
        let path = field.split(separator: ".").map(String.init)
        return AppError(.invalid, message, issues: [Issue(path: path, message: message)])
    }

    public static let notFound = AppError(.notFound, "Not Found")
    public static let unauthenticated = AppError(.unauthenticated, "Missing or invalid credentials")
    public static let unavailable = AppError(
        .unavailable, "The service is not available for the moment. Try again.", retryAfterSeconds: 1)
    /// The database went away between a change and its acknowledgement: it may have been made.
    public static let outcomeUnknown = AppError(
        .unavailable, "The connection to the database broke: the change may have been made. Look before trying again.",
        retryAfterSeconds: 1)
}

/// For logs: what it is and where, in one line.
extension AppError: CustomStringConvertible {
    /// `invalid: A name is required. (company.name)`: the code, the message, and the paths of the issues. What clients
    /// sent is in none of them but for what the message says to the client itself.
    public var description: String {
        let paths = issues.map { $0.path.joined(separator: ".") }.filter { !$0.isEmpty }
        return "\(code.rawValue): \(message)" + (paths.isEmpty ? "" : " (\(paths.joined(separator: ", ")))")
    }
}
