import Core
import Foundation
import Postgres

/// What a viewer may see (`EntryRepository`), as conditions on a kind's own row. There are two forms of some: for a
/// list the ids that the viewer may see are collected first, so that the list is read by index; for one row, or the end
/// of a relation, the row is asked.
struct EntryVisibility {
    enum Place { case list, single, related }

    let viewer: User.ID?
    let now: Date

    /// Nil inside, like any comparison with it, when the viewer has no company. Evaluated once a statement.
    private func ownCompany(of viewer: User.ID) -> SQL {
        "(SELECT me.company_id FROM company_members me WHERE me.user_id = \(viewer))"
    }

    /// Nil where there is nothing that is hidden.
    func condition(_ kind: EntryKind, _ place: Place) -> SQL? {
        switch kind {
        case .posting: posting(place)
        case .company: nil
        case .application: viewer.map { application($0, place) } ?? "false"
        case .user: viewer.map { user($0, place) } ?? "false"
        case .media: viewer.map { media($0, place) } ?? "m.kind = 'logo'"
        }
    }

    /// For what is at the end of a relation whose start the viewer sees.
    func condition(_ relation: EntryRelation) -> SQL? {
        switch relation {
        case .postingCompany, .companyLogo, .applicationPosting, .applicationApplicant, .applicationCV: nil
        case .postingApplications, .userApplications, .companyPostings, .userProfile:
            condition(relation.to, .related)
        case .companyRepresentative: viewer.map { "c.id = \(ownCompany(of: $0))" } ?? "false"
        case .userCompany: viewer.map { "(u.id = \($0) OR c.id = \(ownCompany(of: $0)))" } ?? "false"
        }
    }

    private func posting(_ place: Place) -> SQL {
        let open: SQL = "p.state = 'published' AND (p.valid_through IS NULL OR p.valid_through > \(now)::timestamptz)"
        switch (place, viewer) {
        case (.list, _), (.related, nil): return open
        case (.related, let viewer?): return "(\(open) OR p.company_id = \(ownCompany(of: viewer)))"
        case (.single, nil): return "p.state <> 'draft'"
        case (.single, let viewer?): return "(p.state <> 'draft' OR p.company_id = \(ownCompany(of: viewer)))"
        }
    }

    private func application(_ viewer: User.ID, _ place: Place) -> SQL {
        guard place == .list else {
            return """
                (a.applicant_id = \(viewer) OR \(ownCompany(of: viewer)) = (
                  SELECT o.company_id FROM job_postings o WHERE o.id = a.posting_id))
                """
        }
        return """
            (a.applicant_id = \(viewer) OR a.posting_id = ANY (ARRAY(
              SELECT o.id FROM job_postings o WHERE o.company_id = \(ownCompany(of: viewer)))))
            """
    }

    private func user(_ viewer: User.ID, _ place: Place) -> SQL {
        guard place == .list else {
            return """
                (u.id = \(viewer) OR EXISTS (
                  SELECT FROM company_members w WHERE w.user_id = u.id AND w.company_id = \(ownCompany(of: viewer)))
                OR EXISTS (
                  SELECT FROM applications t JOIN job_postings o ON o.id = t.posting_id
                  WHERE t.applicant_id = u.id AND o.company_id = \(ownCompany(of: viewer))))
                """
        }
        return """
            u.id = ANY (ARRAY(
              SELECT \(viewer)::bigint
              UNION ALL
              SELECT w.user_id FROM company_members w WHERE w.company_id = \(ownCompany(of: viewer))
              UNION ALL
              SELECT t.applicant_id FROM job_postings o JOIN applications t ON t.posting_id = o.id
              WHERE o.company_id = \(ownCompany(of: viewer))))
            """
    }

    /// `PostgresMedia.mayRead`; a test holds the three together.
    private func media(_ viewer: User.ID, _ place: Place) -> SQL {
        guard place == .list else {
            return """
                (m.kind = 'logo' OR m.owner_id = \(viewer)
                OR m.kind = 'cv' AND EXISTS (
                  SELECT FROM applications t JOIN job_postings o ON o.id = t.posting_id
                  WHERE t.cv_media_id = m.id AND o.company_id = \(ownCompany(of: viewer)))
                OR m.kind = 'attachment' AND EXISTS (
                  SELECT FROM messages x JOIN room_members mine ON mine.room_id = x.room_id
                  WHERE x.media_id = m.id AND mine.user_id = \(viewer))
                OR m.kind = 'profile' AND (EXISTS (
                  SELECT FROM room_members mine JOIN room_members theirs ON theirs.room_id = mine.room_id
                  WHERE mine.user_id = \(viewer) AND theirs.user_id = m.owner_id)
                OR EXISTS (
                  SELECT FROM applications t JOIN job_postings o ON o.id = t.posting_id
                  WHERE t.applicant_id = m.owner_id AND o.company_id = \(ownCompany(of: viewer)))))
                """
        }
        return """
            (m.kind = 'logo' OR m.owner_id = \(viewer)
            OR m.kind = 'cv' AND m.id = ANY (ARRAY(
              SELECT t.cv_media_id FROM job_postings o JOIN applications t ON t.posting_id = o.id
              WHERE o.company_id = \(ownCompany(of: viewer))))
            OR m.kind = 'attachment' AND m.id = ANY (ARRAY(
              SELECT x.media_id FROM room_members mine JOIN messages x ON x.room_id = mine.room_id
              WHERE mine.user_id = \(viewer) AND x.media_id IS NOT NULL))
            OR m.kind = 'profile' AND m.owner_id = ANY (ARRAY(
              SELECT theirs.user_id FROM room_members mine JOIN room_members theirs ON theirs.room_id = mine.room_id
              WHERE mine.user_id = \(viewer)
              UNION ALL
              SELECT t.applicant_id FROM job_postings o JOIN applications t ON t.posting_id = o.id
              WHERE o.company_id = \(ownCompany(of: viewer)))))
            """
    }
}
