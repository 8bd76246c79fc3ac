/// A field of an entry that a client may name. What is not here does not exist for the list language: it can be
/// neither read, nor filtered, nor sorted by (password hashes, tokens, where files are stored).
public enum EntryField: Sendable, Hashable {
    case posting(Posting)
    case company(Company)
    case application(Application)
    case user(User)
    case media(Media)

    /// `description` is the text that people see, without markup; `standing` the word that people see
    /// (`JobPosting.Standing.word`); `isRemote` whether the work can be done from anywhere.
    public enum Posting: Sendable, Hashable, CaseIterable {
        case id, title, description, descriptionHTML, employmentType, environment, standing, place, isRemote, latitude
        case longitude, salary, skills, applyURL, publishedAt, validThrough, createdAt, updatedAt
    }

    public enum Company: Sendable, Hashable, CaseIterable {
        case id, name, email, phone, address, category, bio, website, createdAt, updatedAt
    }

    public enum Application: Sendable, Hashable, CaseIterable {
        case id, status, room, createdAt, updatedAt
    }

    /// From `provider` on only of the viewer's own account.
    public enum User: Sendable, Hashable, CaseIterable {
        case id, username, email, firstName, lastName, phoneNumber
        case provider, confirmed, blocked, createdAt, updatedAt
    }

    /// `size` is in kilobytes of 1000 bytes, with two decimals.
    public enum Media: Sendable, Hashable, CaseIterable {
        case id, name, hash, ext, mime, size, width, height, createdAt, updatedAt
        case alternativeText, caption, formats, url, previewURL, provider
        /// For conditions of ours: it has no name on the wire.
        case ownerID
    }

    public enum ValueType: Sendable, Hashable {
        case text, integer, number, boolean, date
        /// Has no order and is not compared as a whole.
        case longText
    }

    public var kind: EntryKind {
        switch self {
        case .posting: .posting
        case .company: .company
        case .application: .application
        case .user: .user
        case .media: .media
        }
    }

    public static func all(of kind: EntryKind) -> [EntryField] {
        switch kind {
        case .posting: Posting.allCases.map(EntryField.posting)
        case .company: Company.allCases.map(EntryField.company)
        case .application: Application.allCases.map(EntryField.application)
        case .user: User.allCases.map(EntryField.user)
        case .media: Media.allCases.map(EntryField.media)
        }
    }

    public static func id(of kind: EntryKind) -> EntryField {
        switch kind {
        case .posting: .posting(.id)
        case .company: .company(.id)
        case .application: .application(.id)
        case .user: .user(.id)
        case .media: .media(.id)
        }
    }

    /// Nil for what is only shown: neither filters nor sorts may name it.
    public var type: ValueType? {
        switch self {
        case .posting(let field): Self.type(field)
        case .company(let field): Self.type(field)
        case .application(let field): Self.type(field)
        case .user(let field): Self.type(field)
        case .media(let field): Self.type(field)
        }
    }

    public var allowsFilter: Bool { type != nil }
    public var allowsSort: Bool { type.map { $0 != .longText } ?? false }

    /// Told to nobody but the person whose account it is.
    public var isPersonal: Bool {
        guard case .user(let field) = self else { return false }
        switch field {
        case .id, .username, .email, .firstName, .lastName, .phoneNumber: return false
        case .provider, .confirmed, .blocked, .createdAt, .updatedAt: return true
        }
    }

    private static func type(_ field: Posting) -> ValueType? {
        switch field {
        case .id: .integer
        case .title, .employmentType, .environment, .standing, .place, .applyURL: .text
        case .description: .longText
        case .isRemote: .boolean
        case .latitude, .longitude: .number
        case .publishedAt, .validThrough, .createdAt, .updatedAt: .date
        case .descriptionHTML, .salary, .skills: nil
        }
    }

    private static func type(_ field: Company) -> ValueType? {
        switch field {
        case .id: .integer
        case .name, .email, .phone, .address, .category, .website: .text
        case .bio: .longText
        case .createdAt, .updatedAt: .date
        }
    }

    private static func type(_ field: Application) -> ValueType? {
        switch field {
        case .id: .integer
        case .status: .text
        case .room: nil
        case .createdAt, .updatedAt: .date
        }
    }

    /// What is personal has no type: a filter of someone else's list could ask for it.
    private static func type(_ field: User) -> ValueType? {
        switch field {
        case .id: .integer
        case .username, .email, .firstName, .lastName, .phoneNumber: .text
        case .provider, .confirmed, .blocked, .createdAt, .updatedAt: nil
        }
    }

    private static func type(_ field: Media) -> ValueType? {
        switch field {
        case .id, .width, .height, .ownerID: .integer
        case .name, .hash, .ext, .mime: .text
        case .size: .number
        case .createdAt, .updatedAt: .date
        case .alternativeText, .caption, .formats, .url, .previewURL, .provider: nil
        }
    }
}
