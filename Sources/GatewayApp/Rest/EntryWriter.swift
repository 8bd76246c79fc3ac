import Core
import CoreHTTP
import Foundation
import JSON

/// Writes entries as clients know them (contracts/01 §4): `{id, attributes}` with relations as `{data}`, or flat. A
/// relation is there when it was asked for, and absent otherwise.
struct EntryWriter {
    let links: MediaLinks
    let now: Date
    /// What nobody but a person may see of an account is written for this person only.
    let viewer: User.ID?

    /// - Parameter query: nil for all fields of everything that comes along.
    func writeEnveloped(_ entry: Entry, _ query: EntryQuery?, to json: inout JSONWriter) {
        json.field("id", entry.id)
        json.object("attributes") { json in
            writeAttributes(entry.value, query?.fields, to: &json)
            writeRelations(of: entry, query, to: &json) { name, related, relation, query, json in
                json.key(text: name)
                json.object { json in
                    json.key("data")
                    writeRelated(related, relation, to: &json) { entry, json in
                        writeEnveloped(entry, query, to: &json)
                    } none: { json in
                        json.field("id", 0)
                        json.object("attributes") { MediaBody.writeNoLogo(query?.fields, to: &$0) }
                    }
                }
            }
        }
    }

    func writeFlat(_ entry: Entry, _ query: EntryQuery?, to json: inout JSONWriter) {
        json.field("id", entry.id)
        writeAttributes(entry.value, query?.fields, to: &json)
        writeRelations(of: entry, query, to: &json) { name, related, relation, query, json in
            json.key(text: name)
            writeRelated(related, relation, to: &json) { entry, json in
                writeFlat(entry, query, to: &json)
            } none: { json in
                json.field("id", 0)
                MediaBody.writeNoLogo(query?.fields, to: &json)
            }
        }
    }

    private func writeAttributes(_ value: Entry.Value, _ fields: Set<EntryField>?, to json: inout JSONWriter) {
        switch value {
        case .posting(let posting): PostingBody.writeAttributes(posting, fields, now: now, to: &json)
        case .company(let company): CompanyBody.writeAttributes(company, fields, to: &json)
        case .application(let application): ApplicationBody.writeAttributes(application, fields, to: &json)
        case .user(let user): UserBody.writeAttributes(user, fields, isSelf: user.id == viewer, to: &json)
        case .media(let media): MediaBody.writeFile(media, fields, links: links, to: &json)
        }
    }

    /// In the order of `WireNames`.
    private func writeRelations(
        of entry: Entry, _ query: EntryQuery?, to json: inout JSONWriter,
        _ write: (String, Entry.Related, EntryRelation, EntryQuery?, inout JSONWriter) -> Void
    ) {
        guard !entry.related.isEmpty else { return }
        for (name, relation) in WireNames.of(entry.value.kind).relations {
            guard let related = entry.related[relation] else { continue }
            write(name, related, relation, query?.populate[relation], &json)
        }
    }

    /// - Parameter none: What stands for a logo that is not there: the stock client's list fails as a whole where one
    ///   is missing.
    private func writeRelated(
        _ related: Entry.Related, _ relation: EntryRelation, to json: inout JSONWriter,
        _ write: (Entry, inout JSONWriter) -> Void, none: (inout JSONWriter) -> Void
    ) {
        switch related {
        case .one(let entry?): json.object { write(entry, &$0) }
        case .one(nil) where relation == .companyLogo: json.object(none)
        case .one(nil): json.null()
        case .many(let entries):
            json.array(entries) { json, entry in
                json.object { write(entry, &$0) }
            }
        }
    }
}

extension Entry {
    /// A posting as the stock client shows it: with its company and the company's logo.
    static func stock(_ posting: JobPosting) -> Entry {
        Entry(.posting(posting), related: [.postingCompany: .one(.stock(posting.company))])
    }

    static func stock(_ company: Company) -> Entry {
        Entry(.company(company), related: [.companyLogo: .one(company.logo.map { Entry(.media($0)) })])
    }
}
