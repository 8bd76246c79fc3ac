import Foundation

/// A person with an account. Values of this type never carry the password hash.
public struct User: Sendable, Equatable, Identifiable {
    public typealias ID = Identifier<User>

    public enum Role: String, Sendable, CaseIterable {
        case authenticated, administrator
    }

    public let id: ID
    public let username: String
    public let email: String
    public let firstName: String
    public let lastName: String
    public let phoneNumber: String
    public let role: Role
    public let confirmed: Bool
    public let blocked: Bool
    public let timeZone: String
    public let profileMediaID: Media.ID?
    public let createdAt: Date
    public let updatedAt: Date

    public init(
        id: ID, username: String, email: String, firstName: String, lastName: String, phoneNumber: String, role: Role,
        confirmed: Bool, blocked: Bool, timeZone: String, profileMediaID: Media.ID?, createdAt: Date, updatedAt: Date
    ) {
        self.id = id
        self.username = username
        self.email = email
        self.firstName = firstName
        self.lastName = lastName
        self.phoneNumber = phoneNumber
        self.role = role
        self.confirmed = confirmed
        self.blocked = blocked
        self.timeZone = timeZone
        self.profileMediaID = profileMediaID
        self.createdAt = createdAt
        self.updatedAt = updatedAt
    }

    public static let usernameField = TextField("username", min: 3, max: 50)
    public static func nameField(_ name: String) -> TextField { TextField(name, max: 255) }
    public static let emailLengthMin = 6
    /// Octets. RFC 5321 4.5.3.1.3: a path has at most 256 with its angle brackets.
    public static let emailLengthMax = 254
    public static let timeZoneLengthMax = 64
    public static let passwordLengthMin = 6
    /// argon2 takes more; a longer one is a mistake or an attack on the hasher.
    public static let passwordBytesMax = 1024

    /// Names are shown to others, in a chat too: nothing in them may be invisible. An @ in a name could be taken for
    /// somebody else's e-mail address at sign-in.
    public static func acceptUsername(_ text: String) throws(AppError) -> String {
        let name = try usernameField.accept(text)
        guard !name.contains("@") else { throw .invalid("username", "username may not contain @") }
        for scalar in name.unicodeScalars where scalar != " " && !scalar.isVisible {
            throw .invalid("username", "username may not have invisible characters")
        }
        return name
    }

    /// Lower-cases and checks the shape: one `@`, something on both sides, a dot in the domain, but not at its ends.
    public static func acceptEmail(_ text: String) throws(AppError) -> String {
        let email = text.trimmingCharacters(in: .whitespacesAndNewlines).lowercased()
        let parts = email.split(separator: "@", omittingEmptySubsequences: false)
        let allowed = email.unicodeScalars.allSatisfy { $0.isVisible && !emailRefused.contains($0) }
        guard parts.count == 2, !parts[0].isEmpty, parts[0].utf8.count <= 64, parts[1].utf8.count >= 3,
            parts[1].contains("."), !parts[1].hasPrefix("."), !parts[1].hasSuffix("."), !parts[1].contains(".."),
            allowed, email.unicodeScalars.count >= emailLengthMin, email.utf8.count <= emailLengthMax
        else { throw .invalid("email", "email must be a valid email") }
        return email
    }

    /// What RFC 5321 allows between quotation marks only: nobody's real address has it, and headers break on it.
    private static let emailRefused = Set("<>(),;:\\\"[]".unicodeScalars)

    /// An IANA name. Offsets such as "GMT+5" are refused: PostgreSQL reads their sign the other way round.
    public static func acceptTimeZone(_ name: String) throws(AppError) -> String {
        let known =
            name == "UTC"
            || (name.contains("/") && !name.hasPrefix("Etc/") && name.utf8.count <= timeZoneLengthMax
                && name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F } && TimeZone(identifier: name) != nil)
        guard known else { throw .invalid("time_zone", "time_zone must be an IANA name such as Europe/Berlin") }
        return name
    }

    public static func acceptPassword(_ password: String) throws(AppError) -> String {
        guard password.unicodeScalars.count >= passwordLengthMin else {
            throw .invalid("password", "password must be at least \(passwordLengthMin) characters")
        }
        guard password.utf8.count <= passwordBytesMax, !password.utf8.contains(0) else {
            throw .invalid("password", "password must be at most \(passwordBytesMax) bytes, without NUL")
        }
        return password
    }

    /// What a person gives to register. A draft that exists is valid.
    public struct Draft: Sendable {
        public let username: String
        public let email: String
        public let password: String
        public let firstName: String
        public let lastName: String
        public let phoneNumber: String

        public init(
            username: String, email: String, password: String, firstName: String = "", lastName: String = "",
            phoneNumber: String = ""
        ) throws(AppError) {
            self.username = try User.acceptUsername(username)
            self.email = try User.acceptEmail(email)
            self.password = try User.acceptPassword(password)
            self.firstName = try User.nameField("first_name").accept(firstName)
            self.lastName = try User.nameField("last_name").accept(lastName)
            self.phoneNumber = try User.nameField("phone_number").accept(phoneNumber)
        }
    }

    /// A change of one's own profile; nil leaves a field as it is.
    public struct Change: Sendable {
        public let username: String?
        /// Asked for, not yet the user's: it has to be confirmed.
        public let email: String?
        public let firstName: String?
        public let lastName: String?
        public let phoneNumber: String?
        public let timeZone: String?
        /// One of the user's own profile pictures.
        public let profileMediaID: Media.ID?

        public init(
            username: String? = nil, email: String? = nil, firstName: String? = nil, lastName: String? = nil,
            phoneNumber: String? = nil, timeZone: String? = nil, profileMediaID: Media.ID? = nil
        ) throws(AppError) {
            self.username = if let username { try User.acceptUsername(username) } else { nil }
            self.email = if let email { try User.acceptEmail(email) } else { nil }
            self.firstName = if let firstName { try User.nameField("first_name").accept(firstName) } else { nil }
            self.lastName = if let lastName { try User.nameField("last_name").accept(lastName) } else { nil }
            self.phoneNumber =
                if let phoneNumber { try User.nameField("phone_number").accept(phoneNumber) } else { nil }
            self.timeZone = if let timeZone { try User.acceptTimeZone(timeZone) } else { nil }
            self.profileMediaID = profileMediaID
        }
    }
}
