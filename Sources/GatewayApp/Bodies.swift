import Core
import CoreHTTP
import Foundation
import JSON
import SafeHTML

/// A user as the clients know one: flat, every text present.
enum UserBody {
    static func write(_ user: User, to json: inout JSONWriter) {
        json.field("id", user.id.value)
        json.field("username", user.username)
        json.field("email", user.email)
        json.field("provider", "local")
        json.field("confirmed", user.confirmed)
        json.field("blocked", user.blocked)
        json.field("createdAt", user.createdAt)
        json.field("updatedAt", user.updatedAt)
        json.field("first_name", user.firstName)
        json.field("last_name", user.lastName)
        json.field("phone_number", user.phoneNumber)
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
        json.field("username", user.username)
        json.field("email", user.email)
        json.field("first_name", user.firstName)
        json.field("last_name", user.lastName)
        json.field("phone_number", user.phoneNumber)
    }
}

enum CompanyBody {
    static func writeAttributes(_ company: Company, to json: inout JSONWriter) {
        json.field("name", company.name)
        json.field("email", company.email)
        json.field("phone", company.phone)
        json.field("address", company.address)
        json.field("category", company.category)
        json.field("bio", company.bio)
        json.field("website", company.website)
        json.field("createdAt", company.createdAt)
        json.field("updatedAt", company.updatedAt)
    }

    /// Flat, with `logo: {id, url}` always: the client's list fails as a whole without it.
    static func writeFlat(_ company: Company, links: MediaLinks, to json: inout JSONWriter) {
        json.field("id", company.id.value)
        writeAttributes(company, to: &json)
        json.object("logo") { json in
            json.field("id", company.logo?.id.value ?? 0)
            json.field("url", links.logo(company.logo))
        }
    }

    /// `{id, attributes}` with the logo and its four formats.
    static func writeEntry(_ company: Company, links: MediaLinks, to json: inout JSONWriter) {
        json.field("id", company.id.value)
        json.object("attributes") { json in
            writeAttributes(company, to: &json)
            json.object("logo") { json in
                json.object("data") { json in
                    json.field("id", company.logo?.id.value ?? 0)
                    json.object("attributes") { links.writeLogo(company.logo, to: &$0) }
                }
            }
        }
    }
}

enum PostingBody {
    /// The contract's word for a published posting that is open.
    static func status(_ standing: JobPosting.Standing) -> String {
        standing == .published ? "available" : standing.rawValue
    }

    /// The five the stock client knows, then ours. `description` is plain text; `description_html` is safe to show as
    /// it is.
    static func writeAttributes(_ posting: JobPosting, now: Date, to json: inout JSONWriter) {
        json.field("name", posting.title)
        json.field("description", SafeHTML.text(ofSafe: posting.description))
        json.field("description_html", posting.description)
        json.field("type", posting.terms.employmentType)
        json.field("environment", posting.terms.environment)
        json.field("status", status(posting.standing(at: now)))
        json.field("place", posting.terms.place)
        json.field("remote", posting.terms.remote == .remote)
        if let coordinate = posting.terms.coordinate {
            json.field("lat", Double(coordinate.latitude))
            json.field("lng", Double(coordinate.longitude))
        }
        if let salary = posting.terms.salary {
            json.object("salary") { json in
                json.field("min", orNull: salary.minimum)
                json.field("max", orNull: salary.maximum)
                json.field("currency", salary.currency)
                json.field("period", salary.period.rawValue)
            }
        }
        json.array("skills", posting.terms.skills) { $0.value($1) }
        json.field("apply_url", posting.terms.applyURL)
        json.field("published_at", orNull: posting.publishedAt)
        json.field("valid_through", orNull: posting.validThrough)
        json.field("createdAt", posting.createdAt)
        json.field("updatedAt", posting.updatedAt)
    }

    static func writeFlat(_ posting: JobPosting, now: Date, to json: inout JSONWriter) {
        json.field("id", posting.id.value)
        writeAttributes(posting, now: now, to: &json)
    }

    /// `{id, attributes}`, with the company when relations are asked for.
    static func writeEntry(
        _ posting: JobPosting, populated: Bool, now: Date, links: MediaLinks, to json: inout JSONWriter
    ) {
        json.field("id", posting.id.value)
        json.object("attributes") { json in
            writeAttributes(posting, now: now, to: &json)
            guard populated else { return }
            json.object("company") { json in
                json.object("data") { CompanyBody.writeEntry(posting.company, links: links, to: &$0) }
            }
        }
    }
}

enum ApplicationBody {
    static func writeFlat(_ application: Application, links: MediaLinks, to json: inout JSONWriter) {
        json.field("id", application.id.value)
        json.field("status", application.status.rawValue)
        json.object("cv") { links.writeCV(application.cv, to: &$0) }
        json.field("room", orNull: application.roomID?.value)
        json.field("createdAt", application.createdAt)
        json.field("updatedAt", application.updatedAt)
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

extension HTTPListPage {
    /// `meta.pagination` as Strapi writes it.
    func write(total: Int64?, to json: inout JSONWriter) {
        json.object("meta") { json in
            json.object("pagination") { json in
                json.field("page", page)
                json.field("pageSize", size)
                if let total {
                    json.field("pageCount", (total + Int64(size) - 1) / Int64(size))
                    json.field("total", total)
                }
            }
        }
    }
}

/// `pagination[page]` and `pagination[pageSize]`: from 1 and 25, at most 100 (contracts).
struct HTTPListPage: Sendable {
    static let sizeMax = 100
    /// Deep pages are scans; a client that walks that far uses search.
    static let pageMax = 10_000

    let page: Int
    let size: Int
    let counted: Bool

    init(_ query: QueryItems) throws(AppError) {
        page = min(max(try query.int("pagination[page]") ?? 1, 1), Self.pageMax)
        size = min(max(try query.int("pagination[pageSize]") ?? 25, 1), Self.sizeMax)
        counted = !["false", "0", "f"].contains(query["pagination[withCount]"] ?? "true")
    }

    var offset: Int { (page - 1) * size }
}
