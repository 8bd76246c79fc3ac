import Core
import Foundation
import Postgres

extension Identifier: PostgresEncodable, PostgresDecodable {
    public var postgresBind: PostgresBind { .integer(value) }
    public static func decode(_ cell: PostgresCell) throws(PostgresCellError) -> Identifier {
        Identifier(try Int64.decode(cell))
    }
}

extension User.Role: PostgresDecodable, PostgresEncodable {}
extension AccountToken.Purpose: PostgresDecodable {}
extension AccountMail.Kind: PostgresDecodable {}
extension Core.Session.Kind: PostgresDecodable, PostgresEncodable {}
extension JobPosting.State: PostgresDecodable, PostgresEncodable {}
extension EmploymentKind: PostgresEncodable {}
extension Remoteness: PostgresEncodable {}
extension Salary.Period: PostgresDecodable, PostgresEncodable {}
extension Application.Status: PostgresDecodable, PostgresEncodable {}
extension Media.Kind: PostgresDecodable, PostgresEncodable {}
extension Media.State: PostgresDecodable, PostgresEncodable {}
extension Message.Kind: PostgresDecodable, PostgresEncodable {}

/// Reads the columns of a row one after the other, in the order in which `Columns` lists them.
struct RowReader {
    let row: Row
    private(set) var index: Int

    init(_ row: Row, from index: Int = 0) {
        self.row = row
        self.index = index
    }

    mutating func next<T: PostgresDecodable>(_ type: T.Type = T.self) throws(PostgresDecodingError) -> T {
        defer { index += 1 }
        return try row.get(index, as: type)
    }

    /// What `Columns.user` lists.
    mutating func user() throws -> User {
        try User(
            id: next(), username: next(), email: next(), firstName: next(), lastName: next(), phoneNumber: next(),
            role: next(), confirmed: next(), blocked: next(), timeZone: next(), profileMediaID: next(),
            createdAt: next(), updatedAt: next())
    }

    /// What `Columns.media`, `Columns.logo` and `Columns.cv` list; nil when the join found none.
    mutating func media() throws -> Media? {
        guard let id = try next(Media.ID?.self) else {
            index += Columns.mediaCount - 1
            return nil
        }
        return try Media(
            id: id, ownerID: next(), kind: next(), state: next(), rejection: next(), rejectionMessage: next(),
            name: next(), alternativeText: next(), caption: next(), mime: next(), ext: next(), hash: next(),
            bytes: next(), storageKey: next(), width: next(), height: next(), pageCount: next(), note: next(),
            urlGeneration: next(), variants: variants(), createdAt: next(), updatedAt: next())
    }

    /// One line a variant, its fields separated by tabs: a fifth of the cost of an array for each field.
    private mutating func variants() throws -> [Media.Variant] {
        guard let packed = try next(String?.self) else { return [] }
        let variants = try packed.split(separator: "\n").map { line in
            let parts = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 8, let bytes = Int64(parts[5]), let width = Int(parts[6]), let height = Int(parts[7])
            else { throw PostgresDecodingError(column: "variants", reason: .cell(.malformed(wanted: "variants"))) }
            return Media.Variant(
                name: parts[0], storageKey: parts[1], hash: parts[2], mime: parts[3], ext: parts[4], bytes: bytes,
                width: width, height: height)
        }
        return variants.sorted { ($0.width, $0.name) < ($1.width, $1.name) }
    }

    /// What `Columns.company` and `Columns.logo` list.
    mutating func company() throws -> Company {
        let id = try next(Company.ID.self)
        let name = try next(String.self)
        let (email, phone, address) = try (next(String.self), next(String.self), next(String.self))
        let (category, bio, website) = try (next(String.self), next(String.self), next(String.self))
        let (createdAt, updatedAt) = try (next(Date.self), next(Date.self))
        return try Company(
            id: id, name: name, email: email, phone: phone, address: address, category: category, bio: bio,
            website: website, logo: media(), createdAt: createdAt, updatedAt: updatedAt)
    }

    /// What `Columns.posting`, `Columns.company` and `Columns.logo` list.
    mutating func posting() throws -> JobPosting {
        let id = try next(JobPosting.ID.self)
        let (title, description) = try (next(String.self), next(String.self))
        let terms = try terms()
        let state = try next(JobPosting.State.self)
        let (publishedAt, validThrough) = try (next(Date?.self), next(Date?.self))
        let (createdAt, updatedAt) = try (next(Date.self), next(Date.self))
        return try JobPosting(
            id: id, company: company(), title: title, description: description, terms: terms, state: state,
            publishedAt: publishedAt, validThrough: validThrough, createdAt: createdAt, updatedAt: updatedAt)
    }

    private mutating func terms() throws -> JobPosting.Terms {
        let (employmentType, environment, place) = try (next(String.self), next(String.self), next(String.self))
        let (latitude, longitude) = try (next(Float?.self), next(Float?.self))
        let (minimum, maximum) = try (next(Int64?.self), next(Int64?.self))
        let (currency, period) = try (next(String?.self), next(Salary.Period?.self))
        return try JobPosting.Terms(
            employmentType: employmentType, environment: environment, place: place,
            coordinate: latitude.flatMap { latitude in
                try longitude.map { try Coordinate(latitude: latitude, longitude: $0) }
            },
            salary: currency.flatMap { currency in
                try period.map { try Salary(minimum: minimum, maximum: maximum, currency: currency, period: $0) }
            },
            skills: next(), applyURL: next())
    }

    /// What `Columns.application` and `Columns.cv` list.
    mutating func application() throws -> Application {
        let (id, status) = try (next(Application.ID.self), next(Application.Status.self))
        let (postingID, applicantID) = try (next(JobPosting.ID.self), next(User.ID.self))
        let roomID = try next(Room.ID?.self)
        let (createdAt, updatedAt) = try (next(Date.self), next(Date.self))
        guard let cv = try media() else { throw PostgresDecodingError(column: "cv", reason: .cell(.null)) }
        return Application(
            id: id, status: status, postingID: postingID, applicantID: applicantID, cv: cv, roomID: roomID,
            createdAt: createdAt, updatedAt: updatedAt)
    }
}
