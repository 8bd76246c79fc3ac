import Core
import CoreHTTP
import Crypto
import HTTPServer
import JSON
import ServiceKit

struct SearchRoutes: Sendable {
    /// Words for which spelling help is looked up when nothing was found.
    static let suggestedWordsMax = 4

    let search: any PostingSearchRepository
    let clock: any ServiceClock
    let links: MediaLinks

    func register(on router: inout Router) {
        router.on(.get, "/api/jobs/search", find)
        router.on(.get, "/api/jobs/facets", facets)
    }

    @Sendable func find(_ request: HTTPRequest) async throws -> HTTPResponse {
        let query = try QueryItems(request.query)
        let asked = try SearchFields(named: { query[$0] }).search()
        let limit = min(max(try query.int("limit") ?? 25, 1), PostingSearch.pageSizeMax)
        let cursor = if let text = query["cursor"] { try SearchCursor.decode(text) } else { PostingSearch.Cursor?.none }
        let now = clock.now()
        let page = try await search.search(asked, after: cursor, limit: limit, now: now)
        let suggestions =
            page.postings.isEmpty && cursor == nil ? try await suggestions(for: asked.q) : [:]
        let writer = EntryWriter(links: links, now: now, viewer: nil)
        return .json(capacity: 65_536) { json in
            json.object { json in
                json.array("data", page.postings) { json, posting in
                    json.object { writer.writeEnveloped(.stock(posting), nil, to: &$0) }
                }
                json.object("meta") { json in
                    json.field("next", orNull: page.next.map(SearchCursor.encode))
                    guard !suggestions.isEmpty else { return }
                    json.object("suggestions") { json in
                        for (word, known) in suggestions.sorted(by: { $0.key < $1.key }) {
                            json.key(text: word)
                            json.array(known) { $0.value($1) }
                        }
                    }
                }
            }
        }
    }

    @Sendable func facets(_ request: HTTPRequest) async throws -> HTTPResponse {
        let query = try QueryItems(request.query)
        let facets = try await search.facets(try SearchFields(named: { query[$0] }).search(), now: clock.now())
        return .json { json in
            json.object { json in
                json.array("data", facets) { json, facet in
                    json.object { json in
                        json.field("facet", facet.name)
                        json.field("value", facet.value)
                        json.field("label", Self.label(facet))
                        json.field("count", facet.count)
                        json.field("estimated", !facet.exact)
                    }
                }
                json.object("meta") { _ in }
            }
        }
    }

    private func suggestions(for q: String) async throws -> [String: [String]] {
        var found: [String: [String]] = [:]
        // Bounded, and only when a search found nothing.
        for word in q.lowercased().split(whereSeparator: { !$0.isLetter }).prefix(Self.suggestedWordsMax)
        where word.count > 3 {
            let known = try await search.suggestions(for: String(word))
            if !known.isEmpty { found[String(word)] = known }
        }
        return found
    }

    private static func label(_ facet: PostingSearch.Facet) -> String {
        switch facet.name {
        case "kind": Int16(exactly: facet.value).flatMap(EmploymentKind.init).map { "\($0)" } ?? ""
        case "remote": Int16(exactly: facet.value).flatMap(Remoteness.init).map { "\($0)" } ?? ""
        case "salary": "from \(facet.value)0000 a year"
        default: ""
        }
    }
}

/// A search from named texts: the query of a request, or the fields of an alert.
struct SearchFields {
    private let named: (String) -> String?

    init(named: @escaping (String) -> String?) { self.named = named }

    func search() throws(AppError) -> PostingSearch {
        try PostingSearch(
            q: named("q") ?? "", kind: kind(), remote: remote(), salaryAtLeast: salary(), companyID: company(),
            placeName: named("place") ?? "", place: place())
    }

    private func kind() throws(AppError) -> EmploymentKind? {
        guard let text = named("type") else { return nil }
        let kind = EmploymentKind(text: text)
        guard kind != .other || text.lowercased() == "other" else {
            throw .invalid("type", "type must be a kind of employment such as full_time, contract or internship")
        }
        return kind
    }

    private func remote() throws(AppError) -> Remoteness? {
        switch named("remote")?.lowercased() {
        case nil, "any": return nil
        case "true", "1", "remote", "yes": return .remote
        case "hybrid": return .hybrid
        case "false", "0", "onsite", "on_site", "no": return .onSite
        default: throw .invalid("remote", "remote must be true, false, hybrid or any")
        }
    }

    private func salary() throws(AppError) -> Int32? {
        guard let text = named("salary") else { return nil }
        guard let salary = Int32(text) else { throw .invalid("salary", "salary must be a whole number a year") }
        return salary
    }

    private func company() throws(AppError) -> Company.ID? {
        guard let text = named("company") else { return nil }
        guard let id = Company.ID(text: text) else { throw .invalid("company", "company must be an id") }
        return id
    }

    private func place() throws(AppError) -> PostingSearch.Place? {
        func number(_ name: String) throws(AppError) -> Float? {
            guard let text = named(name) else { return nil }
            guard let number = Float(text), number.isFinite else { throw .invalid(name, "\(name) must be a number") }
            return number
        }
        let latitude = try number("lat")
        let longitude = try number("lng")
        let radius = try number("radius")
        guard latitude != nil || longitude != nil || radius != nil else { return nil }
        guard let latitude, let longitude else { throw .invalid("lat", "give lat and lng together") }
        return try PostingSearch.Place(
            center: Coordinate(latitude: latitude, longitude: longitude), radiusKm: radius ?? 50)
    }
}

/// Opaque to clients: base64url of the last row's place in the order.
enum SearchCursor {
    static func encode(_ cursor: PostingSearch.Cursor) -> String {
        Base64URL.encode(Array("\(cursor.fromDay).\(cursor.toDay).\(cursor.score.bitPattern).\(cursor.id)".utf8))
    }

    static func decode(_ text: String) throws(AppError) -> PostingSearch.Cursor {
        guard text.utf8.count <= 120, let bytes = Base64URL.decode(text) else { throw wrong }
        let parts = String(decoding: bytes, as: UTF8.self).split(separator: ".")
        guard parts.count == 4, let from = Int32(parts[0]), let to = Int32(parts[1]), let bits = UInt32(parts[2]),
            let id = JobPosting.ID(text: parts[3]), from <= to, Float(bitPattern: bits).isFinite
        else { throw wrong }
        return PostingSearch.Cursor(fromDay: from, toDay: to, score: Float(bitPattern: bits), id: id)
    }

    private static var wrong: AppError { .invalid("cursor", "cursor must be the meta.next of the page before") }
}
