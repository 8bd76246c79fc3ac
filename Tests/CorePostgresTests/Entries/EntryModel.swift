import Core
import CorePostgres
import Foundation
import Postgres

/// The same board in memory, read one by one, and the rules of the list language said once more: plain loops over
/// everything, with no SQL.
struct EntryModel {
    private var values: [EntryKind: [Int64: Entry.Value]] = [:]
    /// Every text of the board in the order of the database.
    private let order: [String: Int]
    let now = EntryWorld.now

    init(_ db: Database) async throws {
        let world = World(db)
        for id in 1...6 as ClosedRange<Int64> {
            values[.user, default: [:]][id] = .user(try await world.users.find(User.ID(id)))
        }
        for id in 1...12 as ClosedRange<Int64> {
            values[.media, default: [:]][id] = .media(try await world.media.find(Media.ID(id)))
        }
        for id in 1...4 as ClosedRange<Int64> {
            values[.company, default: [:]][id] = .company(try await world.find(Company.ID(id)))
        }
        for id in 1...10 as ClosedRange<Int64> {
            let member = id <= 4 ? EntryWorld.jane : EntryWorld.bob
            values[.posting, default: [:]][id] = .posting(
                try await world.find(JobPosting.ID(id), viewer: member))
        }
        for id in 1...5 as ClosedRange<Int64> {
            let member = id == 4 ? EntryWorld.bob : EntryWorld.jane
            values[.application, default: [:]][id] = .application(
                try await world.find(Application.ID(id), viewer: member))
        }
        var texts: Set<String> = []
        for (kind, entries) in values {
            for field in EntryField.all(of: kind) where field.type == .text {
                for value in entries.values {
                    if case .text(let text)? = Self.value(of: field, in: value, now: EntryWorld.now) {
                        texts.insert(text)
                    }
                }
            }
        }
        let sorted = try await db.short.rows("SELECT t FROM unnest(\(Array(texts))::text[]) t ORDER BY t") {
            try $0.get(0, as: String.self)
        }
        order = Dictionary(uniqueKeysWithValues: sorted.enumerated().map { ($1, $0) })
    }

    func ids(_ kind: EntryKind) -> [Int64] { (values[kind] ?? [:]).keys.sorted() }
    func value(_ kind: EntryKind, _ id: Int64) -> Entry.Value? { values[kind]?[id] }

    /// All values of a field, for conditions that find something.
    func samples(_ field: EntryField) -> [EntryValue] {
        ids(field.kind).compactMap { id in value(field.kind, id).flatMap { Self.value(of: field, in: $0, now: now) } }
    }

    // MARK: Who sees what

    private func company(of viewer: User.ID?) -> Company.ID? { viewer.flatMap { EntryWorld.companies[$0] } }

    private func isOpen(_ posting: JobPosting) -> Bool { posting.standing(at: now) == .published }

    func isListed(_ kind: EntryKind, _ id: Int64, _ viewer: User.ID?) -> Bool {
        if case .posting(let posting)? = value(kind, id) { return isOpen(posting) }
        return isVisible(kind, id, viewer)
    }

    func isFound(_ kind: EntryKind, _ id: Int64, _ viewer: User.ID?) -> Bool {
        if case .posting(let posting)? = value(kind, id) {
            return posting.state != .draft || posting.company.id == company(of: viewer)
        }
        return isVisible(kind, id, viewer)
    }

    private func isVisible(_ kind: EntryKind, _ id: Int64, _ viewer: User.ID?) -> Bool {
        switch value(kind, id) {
        case .posting(let posting): isOpen(posting) || posting.company.id == company(of: viewer)
        case .company: true
        case .application(let application):
            application.applicantID == viewer || isOfCompany(application, company(of: viewer))
        case .user(let user): user.id == viewer || isColleague(user.id, viewer) || isApplicant(user.id, to: viewer)
        case .media(let media): mayRead(media, viewer)
        case nil: false
        }
    }

    private var applications: [Application] {
        ids(.application).compactMap {
            if case .application(let found)? = value(.application, $0) { found } else { nil }
        }
    }

    private func isOfCompany(_ application: Application, _ company: Company.ID?) -> Bool {
        guard case .posting(let posting)? = value(.posting, application.postingID.value) else { return false }
        return posting.company.id == company
    }

    private func isColleague(_ user: User.ID, _ viewer: User.ID?) -> Bool {
        company(of: user).map { $0 == company(of: viewer) } ?? false
    }

    private func isApplicant(_ user: User.ID, to viewer: User.ID?) -> Bool {
        applications.contains { $0.applicantID == user && isOfCompany($0, company(of: viewer)) }
    }

    private func mayRead(_ media: Media, _ viewer: User.ID?) -> Bool {
        guard media.kind != .logo else { return true }
        guard let viewer else { return false }
        if media.ownerID == viewer { return true }
        switch media.kind {
        case .logo: return true
        case .cv: return applications.contains { $0.cv.id == media.id && isOfCompany($0, company(of: viewer)) }
        case .attachment: return media.id.value == 10 && EntryWorld.rooms[0].contains(viewer)
        case .profile:
            return EntryWorld.rooms.contains { $0.contains(viewer) && $0.contains(media.ownerID) }
                || isApplicant(media.ownerID, to: viewer)
        }
    }

    /// What the viewer sees at the end of a relation.
    func ends(_ relation: EntryRelation, of start: Int64, _ viewer: User.ID?) -> [Int64] {
        switch value(relation.from, start) {
        case .posting(let posting):
            guard relation == .postingApplications else { return [posting.company.id.value] }
            return applications.filter { $0.postingID == posting.id }.map(\.id.value)
                .filter { isVisible(.application, $0, viewer) }
        case .company(let own):
            switch relation {
            case .companyLogo: return own.logo.map { [$0.id.value] } ?? []
            case .companyRepresentative:
                guard own.id == company(of: viewer) else { return [] }
                return EntryWorld.representatives[own.id].map { [$0.value] } ?? []
            default: return ids(.posting).filter { belongs($0, to: own.id) && isVisible(.posting, $0, viewer) }
            }
        case .application(let application):
            switch relation {
            case .applicationPosting: return [application.postingID.value]
            case .applicationApplicant: return [application.applicantID.value]
            default: return [application.cv.id.value]
            }
        case .user(let user):
            switch relation {
            case .userProfile:
                return user.profileMediaID.map { [$0.value] }?.filter { isVisible(.media, $0, viewer) } ?? []
            case .userCompany:
                guard let own = company(of: user.id), user.id == viewer || own == company(of: viewer) else { return [] }
                return [own.value]
            default:
                return applications.filter { $0.applicantID == user.id }.map(\.id.value)
                    .filter { isVisible(.application, $0, viewer) }
            }
        case .media, nil: return []
        }
    }

    private func belongs(_ posting: Int64, to company: Company.ID) -> Bool {
        guard case .posting(let found)? = value(.posting, posting) else { return false }
        return found.company.id == company
    }
}

// MARK: Values

extension EntryModel {
    static func value(of field: EntryField, in value: Entry.Value, now: Date) -> EntryValue? {
        switch (field, value) {
        case (.posting(let field), .posting(let posting)): Self.posting(field, posting, now)
        case (.company(let field), .company(let company)): Self.company(field, company)
        case (.application(let field), .application(let application)):
            switch field {
            case .id: .integer(application.id.value)
            case .status: .text(application.status.rawValue)
            case .createdAt: .date(application.createdAt)
            default: .date(application.updatedAt)
            }
        case (.user(let field), .user(let user)):
            switch field {
            case .id: .integer(user.id.value)
            case .username: .text(user.username)
            case .email: .text(user.email)
            case .firstName: .text(user.firstName)
            case .lastName: .text(user.lastName)
            default: .text(user.phoneNumber)
            }
        case (.media(let field), .media(let media)): Self.media(field, media)
        default: nil
        }
    }

    private static func posting(_ field: EntryField.Posting, _ posting: JobPosting, _ now: Date) -> EntryValue? {
        switch field {
        case .id: .integer(posting.id.value)
        case .title: .text(posting.title)
        case .description: .text(words(posting.description))
        case .employmentType: .text(posting.terms.employmentType)
        case .environment: .text(posting.terms.environment)
        case .standing: .text(posting.standing(at: now).word)
        case .place: .text(posting.terms.place)
        case .isRemote: .boolean(posting.terms.remote == .remote)
        case .latitude: posting.terms.coordinate.map { .number(Double($0.latitude)) }
        case .longitude: posting.terms.coordinate.map { .number(Double($0.longitude)) }
        case .applyURL: .text(posting.terms.applyURL)
        case .publishedAt: posting.publishedAt.map { .date($0) }
        case .validThrough: posting.validThrough.map { .date($0) }
        case .createdAt: .date(posting.createdAt)
        case .updatedAt: .date(posting.updatedAt)
        case .descriptionHTML, .salary, .skills: nil
        }
    }

    /// Enough for the descriptions of this board.
    private static func words(_ html: String) -> String {
        html.replacing(/<\/?b>/, with: "").replacing(/(<[^>]*>)+/, with: " ").replacing("&lt;", with: "<")
            .replacing("&amp;", with: "&").trimmingCharacters(in: .whitespaces)
    }

    private static func company(_ field: EntryField.Company, _ company: Company) -> EntryValue? {
        switch field {
        case .id: .integer(company.id.value)
        case .name: .text(company.name)
        case .email: .text(company.email)
        case .phone: .text(company.phone)
        case .address: .text(company.address)
        case .category: .text(company.category)
        case .bio: .text(company.bio)
        case .website: .text(company.website)
        case .createdAt: .date(company.createdAt)
        case .updatedAt: .date(company.updatedAt)
        }
    }

    private static func media(_ field: EntryField.Media, _ media: Media) -> EntryValue? {
        switch field {
        case .id: .integer(media.id.value)
        case .name: .text(media.name)
        case .hash: .text(media.hash)
        case .ext: media.ext.map { .text($0) }
        case .mime: media.mime.map { .text($0) }
        case .size: .number((Double(media.upright?.bytes ?? media.bytes) / 10).rounded() / 100)
        case .width: media.width.map { .integer(Int64($0)) }
        case .height: media.height.map { .integer(Int64($0)) }
        case .ownerID: .integer(media.ownerID.value)
        case .createdAt: .date(media.createdAt)
        case .updatedAt: .date(media.updatedAt)
        default: nil
        }
    }

    /// Less than zero, zero, more than zero; nil when one is not there.
    func compare(_ left: EntryValue?, _ right: EntryValue?, shown: Bool = true) -> Int? {
        func sign<T: Comparable>(_ left: T, _ right: T) -> Int { left < right ? -1 : left > right ? 1 : 0 }
        switch (left, right) {
        case (.text(let left), .text(let right)): return sign(order[left] ?? -1, order[right] ?? -1)
        case (.integer(let left), .integer(let right)): return sign(left, right)
        case (.number(let left), .number(let right)): return sign(left, right)
        case (.boolean(let left), .boolean(let right)): return sign(left ? 1 : 0, right ? 1 : 0)
        case (.date(let left), .date(let right)):
            return sign(Self.ticks(left, shown: shown), Self.ticks(right, shown: shown))
        default: return nil
        }
    }

    /// Microseconds, or milliseconds as times are shown.
    private static func ticks(_ date: Date, shown: Bool) -> Double {
        let microseconds = (date.timeIntervalSince1970 * 1_000_000).rounded()
        return shown ? (microseconds / 1000).rounded(.down) : microseconds
    }
}
