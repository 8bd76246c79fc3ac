import Core
import CoreHTTP
import Foundation
import JSON
import SafeHTML

/// The fields of an answer: all of them unless some were chosen. Looking a field up happens only then.
struct ChosenFields {
    let fields: Set<EntryField>?

    init(_ fields: Set<EntryField>?) { self.fields = fields }

    func has(_ field: @autoclosure () -> EntryField) -> Bool {
        guard let fields else { return true }
        return fields.contains(field())
    }
}

/// A user as the clients know one: flat, every text present.
enum UserBody {
    /// One's own account, whole.
    static func write(_ user: User, to json: inout JSONWriter) {
        json.field("id", user.id.value)
        writeAttributes(user, nil, isSelf: true, to: &json)
    }

    /// - Parameter isSelf: Whether it is written for the person whose account it is; others see how to reach an
    ///   applicant, and not what concerns the account.
    static func writeAttributes(_ user: User, _ fields: Set<EntryField>?, isSelf: Bool, to json: inout JSONWriter) {
        let chosen = ChosenFields(fields)
        func has(_ field: EntryField.User) -> Bool {
            (isSelf || !EntryField.user(field).isPersonal) && chosen.has(.user(field))
        }
        if has(.username) { json.field("username", user.username) }
        if has(.email) { json.field("email", user.email) }
        if has(.provider) { json.field("provider", "local") }
        if has(.confirmed) { json.field("confirmed", user.confirmed) }
        if has(.blocked) { json.field("blocked", user.blocked) }
        if has(.createdAt) { json.field("createdAt", user.createdAt) }
        if has(.updatedAt) { json.field("updatedAt", user.updatedAt) }
        if has(.firstName) { json.field("first_name", user.firstName) }
        if has(.lastName) { json.field("last_name", user.lastName) }
        if has(.phoneNumber) { json.field("phone_number", user.phoneNumber) }
    }

    static func writeRole(_ role: User.Role, to json: inout JSONWriter) {
        switch role {
        case .authenticated:
            json.field("name", "Authenticated")
            json.field("description", "Default role given to authenticated user.")
        case .administrator:
            json.field("name", "Administrator")
            json.field("description", "May block users and see the queue.")
        }
        json.field("type", role.rawValue)
    }

    /// Of someone else: what the other side of an application may see.
    static func writeApplicant(_ user: User, to json: inout JSONWriter) {
        json.field("id", user.id.value)
        writeAttributes(user, nil, isSelf: false, to: &json)
    }
}

enum CompanyBody {
    static func writeAttributes(_ company: Company, _ fields: Set<EntryField>? = nil, to json: inout JSONWriter) {
        let chosen = ChosenFields(fields)
        if chosen.has(.company(.name)) { json.field("name", company.name) }
        if chosen.has(.company(.email)) { json.field("email", company.email) }
        if chosen.has(.company(.phone)) { json.field("phone", company.phone) }
        if chosen.has(.company(.address)) { json.field("address", company.address) }
        if chosen.has(.company(.category)) { json.field("category", company.category) }
        if chosen.has(.company(.bio)) { json.field("bio", company.bio) }
        if chosen.has(.company(.website)) { json.field("website", company.website) }
        if chosen.has(.company(.createdAt)) { json.field("createdAt", company.createdAt) }
        if chosen.has(.company(.updatedAt)) { json.field("updatedAt", company.updatedAt) }
    }

    /// Flat, with `logo: {id, url}` always: the client's list fails as a whole without it.
    static func writeFlat(_ company: Company, links: MediaLinks, to json: inout JSONWriter) {
        json.field("id", company.id.value)
        writeAttributes(company, to: &json)
        json.object("logo") { json in
            json.field("id", company.logo?.id.value ?? 0)
            links.writeLogo(company.logo, to: &json)
        }
    }
}

enum PostingBody {
    /// The five the stock client knows, then ours. `description` is plain text; `description_html` is safe to show as
    /// it is.
    static func writeAttributes(
        _ posting: JobPosting, _ fields: Set<EntryField>? = nil, now: Date, to json: inout JSONWriter
    ) {
        let chosen = ChosenFields(fields)
        if chosen.has(.posting(.title)) { json.field("name", posting.title) }
        if chosen.has(.posting(.description)) {
            json.key("description")
            SafeHTML.withText(ofSafe: posting.description) { json.value(utf8: $0) }
        }
        if chosen.has(.posting(.descriptionHTML)) { json.field("description_html", posting.description) }
        if chosen.has(.posting(.employmentType)) { json.field("type", posting.terms.employmentType) }
        if chosen.has(.posting(.environment)) { json.field("environment", posting.terms.environment) }
        if chosen.has(.posting(.standing)) { json.field("status", posting.standing(at: now).word) }
        if chosen.has(.posting(.place)) { json.field("place", posting.terms.place) }
        if chosen.has(.posting(.isRemote)) { json.field("remote", posting.terms.remote == .remote) }
        if let coordinate = posting.terms.coordinate {
            if chosen.has(.posting(.latitude)) { json.field("lat", Double(coordinate.latitude)) }
            if chosen.has(.posting(.longitude)) { json.field("lng", Double(coordinate.longitude)) }
        }
        if let salary = posting.terms.salary, chosen.has(.posting(.salary)) {
            json.object("salary") { json in
                json.field("min", orNull: salary.minimum)
                json.field("max", orNull: salary.maximum)
                json.field("currency", salary.currency)
                json.field("period", salary.period.rawValue)
            }
        }
        if chosen.has(.posting(.skills)) { json.array("skills", posting.terms.skills) { $0.value($1) } }
        if chosen.has(.posting(.applyURL)) { json.field("apply_url", posting.terms.applyURL) }
        if chosen.has(.posting(.publishedAt)) { json.field("published_at", orNull: posting.publishedAt) }
        if chosen.has(.posting(.validThrough)) { json.field("valid_through", orNull: posting.validThrough) }
        if chosen.has(.posting(.createdAt)) { json.field("createdAt", posting.createdAt) }
        if chosen.has(.posting(.updatedAt)) { json.field("updatedAt", posting.updatedAt) }
    }

    static func writeFlat(_ posting: JobPosting, now: Date, to json: inout JSONWriter) {
        json.field("id", posting.id.value)
        writeAttributes(posting, now: now, to: &json)
    }
}

enum ApplicationBody {
    static func writeAttributes(
        _ application: Application, _ fields: Set<EntryField>? = nil, to json: inout JSONWriter
    ) {
        let chosen = ChosenFields(fields)
        if chosen.has(.application(.status)) { json.field("status", application.status.rawValue) }
        if chosen.has(.application(.room)) { json.field("room", orNull: application.roomID?.value) }
        if chosen.has(.application(.createdAt)) { json.field("createdAt", application.createdAt) }
        if chosen.has(.application(.updatedAt)) { json.field("updatedAt", application.updatedAt) }
    }

    static func writeFlat(_ application: Application, links: MediaLinks, to json: inout JSONWriter) {
        json.field("id", application.id.value)
        writeAttributes(application, to: &json)
        json.object("cv") { links.writeCV(application.cv, to: &$0) }
    }

    /// With the posting and its company, as the applicant's list shows it.
    static func writeDetail(_ detail: ApplicationDetail, now: Date, links: MediaLinks, to json: inout JSONWriter) {
        writeFlat(detail.application, links: links, to: &json)
        json.object("job") { json in
            PostingBody.writeFlat(detail.posting, now: now, to: &json)
            json.object("company") { CompanyBody.writeFlat(detail.posting.company, links: links, to: &$0) }
        }
        json.object("applicant") { UserBody.writeApplicant(detail.applicant, to: &$0) }
    }
}
