import Core
import Foundation
import Postgres

/// What a field is in SQL, in the type of its `EntryField.ValueType`.
enum EntryColumns {
    /// Nil for fields that are only shown.
    static func expression(_ field: EntryField, now: Date) -> SQL? {
        switch field {
        case .posting(let field): posting(field, now: now)
        case .company(let field): company(field)
        case .application(let field): application(field)
        case .user(let field): user(field)
        case .media(let field): media(field)
        }
    }

    private static func posting(_ field: EntryField.Posting, now: Date) -> SQL? {
        switch field {
        case .id: "p.id"
        case .title: "p.title"
        case .description: visibleText
        case .employmentType: "p.employment_type"
        case .environment: "p.environment"
        // JobPosting.Standing.word.
        case .standing:
            """
            (CASE WHEN p.state <> 'published' THEN p.state
                  WHEN p.valid_through <= \(now)::timestamptz THEN 'expired' ELSE 'available' END)
            """
        case .place: "p.place"
        // Remoteness.remote.
        case .isRemote: "(p.remote = 2)"
        // As they are shown: the shortest number in which a float is told from its neighbours, read as a double, is
        // another one.
        case .latitude: "p.lat::float8"
        case .longitude: "p.lng::float8"
        case .applyURL: "p.apply_url"
        case .publishedAt: "p.published_at"
        case .validThrough: "p.valid_through"
        case .createdAt: "p.created_at"
        case .updatedAt: "p.updated_at"
        case .descriptionHTML, .salary, .skills: nil
        }
    }

    /// The words of a description as people see them, so that nobody searches in markup, nor misses "A & B" or a word
    /// that is half in bold: tags within a line leave nothing behind, all others a space; runs of white space become
    /// one space, which `text(of:)` does to the text that is looked for; then the five escapes of the sanitiser. The
    /// bullets and numbers that are shown before list items are not part of it. Between the tags and the escapes there
    /// is no angle bracket in the text, so that they can stand for "a space" and "the end of one" there.
    private static let visibleText: SQL =
        """
        replace(replace(replace(replace(replace(btrim(
          replace(replace(replace(translate(
            regexp_replace(regexp_replace(p.description, '</?(?:strong|b|em|i|code|a)(?: [^>]*)?>', '', 'g'),
              '<[^>]*>', ' ', 'g'),
            E'\\t\\n\\r\\f\\x0B', '     '), ' ', '<>'), '><', ''), '<>', ' ')),
          '&lt;', '<'), '&gt;', '>'), '&quot;', '"'), '&#39;', ''''), '&amp;', '&')
        """

    private static func company(_ field: EntryField.Company) -> SQL? {
        switch field {
        case .id: "c.id"
        case .name: "c.name"
        case .email: "c.email"
        case .phone: "c.phone"
        case .address: "c.address"
        case .category: "c.category"
        case .bio: "c.bio"
        case .website: "c.website"
        case .createdAt: "c.created_at"
        case .updatedAt: "c.updated_at"
        }
    }

    private static func application(_ field: EntryField.Application) -> SQL? {
        switch field {
        case .id: "a.id"
        case .status: "a.status"
        case .createdAt: "a.created_at"
        case .updatedAt: "a.updated_at"
        case .room: nil
        }
    }

    private static func user(_ field: EntryField.User) -> SQL? {
        switch field {
        case .id: "u.id"
        case .username: "u.username"
        case .email: "u.email"
        case .firstName: "u.first_name"
        case .lastName: "u.last_name"
        case .phoneNumber: "u.phone_number"
        case .provider, .confirmed, .blocked, .createdAt, .updatedAt: nil
        }
    }

    private static func media(_ field: EntryField.Media) -> SQL? {
        switch field {
        case .id: "m.id"
        case .name: "m.name"
        case .hash: "m.hash"
        case .ext: "m.ext"
        case .mime: "m.mime"
        // Of what is served, as it is shown: an image's address gives the one that was written anew.
        case .size:
            """
            round(coalesce((SELECT v.bytes FROM media_variants v WHERE v.media_id = m.id AND v.name = 'upright'),
                           m.bytes) / 1000.0, 2)::float8
            """
        case .width: "m.width"
        case .height: "m.height"
        case .ownerID: "m.owner_id"
        case .createdAt: "m.created_at"
        case .updatedAt: "m.updated_at"
        case .alternativeText, .caption, .formats, .url, .previewURL, .provider: nil
        }
    }
}
