import Foundation

public struct Company: Sendable, Equatable, Identifiable {
    public typealias ID = Identifier<Company>

    public let id: ID
    public let name: String
    public let email: String
    public let phone: String
    public let address: String
    public let category: String
    public let bio: String
    public let website: String
    public let logo: Media?
    public let createdAt: Date
    public let updatedAt: Date

    public init(
        id: ID, name: String, email: String, phone: String, address: String, category: String, bio: String,
        website: String, logo: Media?, createdAt: Date, updatedAt: Date
    ) {
        self.id = id
        self.name = name
        self.email = email
        self.phone = phone
        self.address = address
        self.category = category
        self.bio = bio
        self.website = website
        self.logo = logo
        self.createdAt = createdAt
        self.updatedAt = updatedAt
    }

    /// What a representative gives: the whole of the company's card.
    public struct Draft: Sendable, Equatable {
        public static let name = TextField("name", min: 1, max: 255)
        public static let bio = TextField("bio", max: 10_000, multiline: true)
        public static let website = TextField("website", max: 2000)
        public static func line(_ name: String) -> TextField { TextField(name, max: 255) }

        public let name: String
        public let email: String
        public let phone: String
        public let address: String
        public let category: String
        public let bio: String
        public let website: String

        public init(
            name: String, email: String = "", phone: String = "", address: String = "", category: String = "",
            bio: String = "", website: String = ""
        ) throws(AppError) {
            self.name = try Self.name.accept(name)
            self.email = email.isEmpty ? "" : try User.acceptEmail(email)
            self.phone = try Self.line("phone").accept(phone)
            self.address = try Self.line("address").accept(address)
            self.category = try Self.line("category").accept(category)
            self.bio = try Self.bio.accept(bio)
            self.website = try WebLink.accept(website, field: Self.website)
        }
    }
}

/// Links from outside are http or https, or they are not kept.
public enum WebLink {
    public static func accept(_ text: String, field: TextField) throws(AppError) -> String {
        let text = try field.accept(text)
        guard !text.isEmpty else { return "" }
        guard let parts = URLComponents(string: text), let scheme = parts.scheme?.lowercased(),
            scheme == "http" || scheme == "https", parts.host?.isEmpty == false
        else { throw .invalid(field.name, "\(field.name) must be a link that begins with http:// or https://") }
        return text
    }
}
