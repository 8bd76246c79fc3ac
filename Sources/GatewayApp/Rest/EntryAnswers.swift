import Core
import CoreHTTP
import HTTPServer
import JSON
import ServiceKit

/// Answers in Strapi's list language for any kind of entry. Who asks decides what is there; the routes decide who may
/// ask.
struct EntryAnswers: Sendable {
    /// Bytes of an entry with its relations, as a guess: room for a page is made once.
    private static let entryCapacity = 4096

    let entries: any EntryRepository
    let clock: any ServiceClock
    let links: MediaLinks
    private let shared = SharedAnswers()

    init(entries: any EntryRepository, clock: any ServiceClock, links: MediaLinks) {
        self.entries = entries
        self.clock = clock
        self.links = links
    }

    /// `{data: [{id, attributes}], meta: {pagination}}`.
    /// - Throws: `invalid` with the path of what is wrong in the query, `refused` for what would take too long.
    func list(_ kind: EntryKind, _ request: HTTPRequest, viewer: User.ID?) async throws -> HTTPResponse {
        let query = try RestQuery(list: request.query, of: kind)
        guard query.entries.isSameForEveryone else { return try await list(query, viewer: viewer) }
        return try await shared.answer("\(kind)?\(request.query)") { try await list(query, viewer: nil) }
    }

    private func list(_ query: RestQuery, viewer: User.ID?) async throws -> HTTPResponse {
        let now = clock.now()
        let page = try await entries.entries(query.entries, viewer: viewer, now: now)
        let writer = EntryWriter(links: links, now: now, viewer: viewer)
        return .json(capacity: Self.entryCapacity * (page.entries.count + 1)) { json in
            json.object { json in
                json.array("data", page.entries) { json, entry in
                    json.object { writer.writeEnveloped(entry, query.entries, to: &$0) }
                }
                query.page.write(total: page.total, to: &json)
            }
        }
    }

    /// `[{id, …}]`, as the upload and users-permissions routes have it: nothing is counted.
    /// - Parameter own: what all of them must fulfil, whatever is asked for.
    func flatList(
        _ kind: EntryKind, _ request: HTTPRequest, viewer: User.ID?, only own: EntryFilter
    ) async throws -> HTTPResponse {
        let query = try RestQuery(list: request.query, of: kind, counted: false).entries.narrowed(by: own)
        let now = clock.now()
        let page = try await entries.entries(query, viewer: viewer, now: now)
        let writer = EntryWriter(links: links, now: now, viewer: viewer)
        return .json(capacity: Self.entryCapacity * (page.entries.count + 1)) { json in
            json.array(page.entries) { json, entry in
                json.object { writer.writeFlat(entry, query, to: &$0) }
            }
        }
    }

    /// `{data: {id, attributes}, meta: {}}`.
    /// - Throws: `notFound`, as above.
    func one(_ kind: EntryKind, _ id: Int64, _ request: HTTPRequest, viewer: User.ID?) async throws -> HTTPResponse {
        let query = try RestQuery(entry: request.query, of: kind).entries
        let now = clock.now()
        let entry = try await entries.entry(id, query, viewer: viewer, now: now)
        let writer = EntryWriter(links: links, now: now, viewer: viewer)
        return .json(capacity: Self.entryCapacity) { json in
            json.object { json in
                json.object("data") { writer.writeEnveloped(entry, query, to: &$0) }
                json.object("meta") { _ in }
            }
        }
    }

    /// `{id, …}` and what `more` adds.
    /// - Throws: `notFound`, as above.
    func flatOne(
        _ kind: EntryKind, _ id: Int64, _ request: HTTPRequest, viewer: User.ID?, headers: HTTPHeaders = [:],
        more: (Entry, inout JSONWriter) -> Void = { _, _ in }
    ) async throws -> HTTPResponse {
        let query = try RestQuery(entry: request.query, of: kind).entries
        let now = clock.now()
        let entry = try await entries.entry(id, query, viewer: viewer, now: now)
        let writer = EntryWriter(links: links, now: now, viewer: viewer)
        return .json(headers: headers, capacity: Self.entryCapacity) { json in
            json.object { json in
                writer.writeFlat(entry, query, to: &json)
                more(entry, &json)
            }
        }
    }
}
