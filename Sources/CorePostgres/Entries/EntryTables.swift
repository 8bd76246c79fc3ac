import Core
import Postgres

/// The parts of which entry statements are put together. Each kind's table has the alias that `Columns` gives it, at
/// every depth of a statement: a subquery for the end of a relation names the row it comes from by its alias, and no
/// relation leads from a kind to the same kind. Nothing here comes from a client; what does is bound.
enum EntryTables {
    static func table(_ kind: EntryKind) -> SQL {
        switch kind {
        case .posting: "job_postings p"
        case .company: "companies c"
        case .application: "applications a"
        case .user: "users u"
        case .media: "media m"
        }
    }

    static func id(_ kind: EntryKind) -> SQL {
        switch kind {
        case .posting: "p.id"
        case .company: "c.id"
        case .application: "a.id"
        case .user: "u.id"
        case .media: "m.id"
        }
    }

    /// What `EntryRows` reads.
    static func columns(_ kind: EntryKind) -> SQL {
        switch kind {
        case .posting: "\(Columns.posting), \(Columns.company), \(Columns.logo)"
        case .company: "\(Columns.company), \(Columns.logo)"
        case .application: "\(Columns.application), \(Columns.cv)"
        case .user: Columns.user
        case .media: Columns.media
        }
    }

    static func joins(_ kind: EntryKind) -> SQL {
        switch kind {
        case .posting: Joins.companyOfPosting
        case .company: Joins.logoOfCompany
        case .application: Joins.partsOfApplication
        case .user: ""
        case .media: Joins.variantsOfMedia
        }
    }

    /// How an entry at the end of a relation is known to belong to the one at its start.
    static func link(_ relation: EntryRelation) -> SQL {
        switch relation {
        case .postingCompany: "c.id = p.company_id"
        case .postingApplications: "a.posting_id = p.id"
        case .companyLogo: "m.id = c.logo_media_id"
        case .companyPostings: "p.company_id = c.id"
        case .companyRepresentative:
            """
            u.id = (SELECT r.user_id FROM company_members r WHERE r.company_id = c.id AND r.role = 'representative'
                    ORDER BY r.created_at, r.user_id LIMIT 1)
            """
        case .applicationPosting: "p.id = a.posting_id"
        case .applicationApplicant: "u.id = a.applicant_id"
        case .applicationCV: "m.id = a.cv_media_id"
        case .userProfile: "m.id = u.profile_media_id"
        case .userApplications: "a.applicant_id = u.id"
        case .userCompany: "c.id = (SELECT w.company_id FROM company_members w WHERE w.user_id = u.id)"
        }
    }

    /// The column that holds the id at the end of a relation, where there is always one and everyone who sees the start
    /// sees it: a condition on that id alone needs no look at the other table.
    static func key(_ relation: EntryRelation) -> SQL? {
        switch relation {
        case .postingCompany: "p.company_id"
        case .applicationPosting: "a.posting_id"
        case .applicationApplicant: "a.applicant_id"
        case .applicationCV: "a.cv_media_id"
        case .postingApplications, .companyLogo, .companyPostings, .companyRepresentative, .userProfile,
            .userApplications, .userCompany:
            nil
        }
    }

    /// Of the rows `l` that populate a relation, only as many as have so many bytes of long text; and one more, so that
    /// the reader sees that there are more. Sizes are known without reading the texts.
    static func weighed(_ links: SQL, _ kind: EntryKind, bytesMax: Int) -> SQL {
        switch kind {
        case .posting:
            """
            (SELECT l.parent, l.id, l.x, l.y, sum(octet_length(w.description)) OVER (ORDER BY l.x, l.y
                           ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes
             FROM \(links) l JOIN job_postings w ON w.id = l.id) link
            JOIN job_postings p ON p.id = link.id AND coalesce(link.bytes, 0) <= \(bytesMax)::bigint
            """
        case .company:
            """
            (SELECT l.parent, l.id, l.x, l.y, sum(octet_length(w.bio)) OVER (ORDER BY l.x, l.y
                           ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes
             FROM \(links) l JOIN companies w ON w.id = l.id) link
            JOIN companies c ON c.id = link.id AND coalesce(link.bytes, 0) <= \(bytesMax)::bigint
            """
        case .application: "\(links) link JOIN applications a ON a.id = link.id"
        case .user: "\(links) link JOIN users u ON u.id = link.id"
        case .media: "\(links) link JOIN media m ON m.id = link.id"
        }
    }
}
