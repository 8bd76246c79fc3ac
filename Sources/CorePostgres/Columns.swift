import Postgres

/// The columns that `RowReader` reads, in its order. The letters are the aliases that statements give the tables:
/// `u` users, `p` job_postings, `c` companies, `l` a company's logo, `a` applications, `cv` an application's CV,
/// `m` any media. A test prepares every statement with its fragments put in place.
enum Columns {
    static let mediaCount = 22

    static let user: SQL =
        """
        u.id, u.username, u.email, u.first_name, u.last_name, u.phone_number, u.role, u.confirmed, u.blocked,
        u.time_zone, u.profile_media_id, u.created_at, u.updated_at
        """

    static let posting: SQL =
        """
        p.id, p.title, p.description, p.employment_type, p.environment, p.place, p.lat, p.lng, p.salary_min,
        p.salary_max, p.salary_currency, p.salary_period, p.skills, p.apply_url, p.state, p.published_at,
        p.valid_through, p.created_at, p.updated_at
        """

    static let company: SQL =
        """
        c.id, c.name, c.email, c.phone, c.address, c.category, c.bio, c.website, c.created_at, c.updated_at
        """

    static let application: SQL =
        """
        a.id, a.status, a.posting_id, a.applicant_id, room.id, a.created_at, a.updated_at
        """

    static let logo: SQL =
        """
        l.id, l.owner_id, l.kind, l.state, l.rejection, l.rejection_message, l.name, l.alternative_text, l.caption,
        l.mime, l.ext, l.hash, l.bytes, l.storage_key, l.width, l.height, l.page_count, l.note, l.url_generation,
        lv.packed, l.created_at, l.updated_at
        """

    static let cv: SQL =
        """
        cv.id, cv.owner_id, cv.kind, cv.state, cv.rejection, cv.rejection_message, cv.name, cv.alternative_text,
        cv.caption, cv.mime, cv.ext, cv.hash, cv.bytes, cv.storage_key, cv.width, cv.height, cv.page_count, cv.note,
        cv.url_generation, cvv.packed, cv.created_at, cv.updated_at
        """

    static let media: SQL =
        """
        m.id, m.owner_id, m.kind, m.state, m.rejection, m.rejection_message, m.name, m.alternative_text, m.caption,
        m.mime, m.ext, m.hash, m.bytes, m.storage_key, m.width, m.height, m.page_count, m.note, m.url_generation,
        mv.packed, m.created_at, m.updated_at
        """
}

/// The joins that bring those columns in.
enum Joins {
    /// To `p`: its company with the logo. Without a logo nobody looks for variants, which took longer than all the
    /// rest of a read by key.
    static let companyOfPosting: SQL =
        """
        JOIN companies c ON c.id = p.company_id
        LEFT JOIN media l ON l.id = c.logo_media_id
        LEFT JOIN LATERAL (SELECT CASE WHEN l.id IS NOT NULL THEN (
          SELECT string_agg(concat_ws(E'\\t', v.name, v.storage_key, v.hash, v.mime, v.ext, v.bytes, v.width, v.height),
                            E'\\n')
          FROM media_variants v WHERE v.media_id = l.id) END AS packed) lv ON true
        """

    /// To `c`: its logo.
    static let logoOfCompany: SQL =
        """
        LEFT JOIN media l ON l.id = c.logo_media_id
        LEFT JOIN LATERAL (SELECT CASE WHEN l.id IS NOT NULL THEN (
          SELECT string_agg(concat_ws(E'\\t', v.name, v.storage_key, v.hash, v.mime, v.ext, v.bytes, v.width, v.height),
                            E'\\n')
          FROM media_variants v WHERE v.media_id = l.id) END AS packed) lv ON true
        """

    /// To `a`: its CV, and the room if there is one.
    static let partsOfApplication: SQL =
        """
        JOIN media cv ON cv.id = a.cv_media_id
        LEFT JOIN LATERAL (
          SELECT string_agg(concat_ws(E'\\t', v.name, v.storage_key, v.hash, v.mime, v.ext, v.bytes, v.width, v.height),
                            E'\\n') AS packed
          FROM media_variants v WHERE v.media_id = cv.id) cvv ON true
        LEFT JOIN rooms room ON room.application_id = a.id
        """

    /// To `m`: its variants.
    static let variantsOfMedia: SQL =
        """
        LEFT JOIN LATERAL (
          SELECT string_agg(concat_ws(E'\\t', v.name, v.storage_key, v.hash, v.mime, v.ext, v.bytes, v.width, v.height),
                            E'\\n') AS packed
          FROM media_variants v WHERE v.media_id = m.id) mv ON true
        """
}
