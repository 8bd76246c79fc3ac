import Core

/// What clients may call the fields and relations of one kind (contracts/01 §3, and our own beside them): the
/// whitelist of the list language. A name that is not here is refused, whether the database has such a column or not.
struct WireNames: Sendable {
    let kind: EntryKind
    let fields: [(name: String, field: EntryField)]
    let relations: [(name: String, relation: EntryRelation)]

    static func of(_ kind: EntryKind) -> WireNames {
        switch kind {
        case .posting: posting
        case .company: company
        case .application: application
        case .user: user
        case .media: media
        }
    }

    func field(_ name: String) -> EntryField? { fields.first { $0.name == name }?.field }
    func relation(_ name: String) -> EntryRelation? { relations.first { $0.name == name }?.relation }

    /// Strapi's other relation of users: it is always shown of oneself, and of nobody else. Asking for it is right.
    func isShownAnyway(_ name: String) -> Bool { kind == .user && name == "role" }

    private static let posting = WireNames(
        kind: .posting,
        fields: [
            ("id", .id), ("name", .title), ("description", .description), ("description_html", .descriptionHTML),
            ("type", .employmentType), ("environment", .environment), ("status", .standing), ("place", .place),
            ("remote", .isRemote), ("lat", .latitude), ("lng", .longitude), ("salary", .salary), ("skills", .skills),
            ("apply_url", .applyURL), ("published_at", .publishedAt), ("valid_through", .validThrough),
            ("createdAt", .createdAt), ("updatedAt", .updatedAt),
        ].map { ($0, .posting($1)) },
        relations: [("company", .postingCompany), ("applications", .postingApplications)])

    private static let company = WireNames(
        kind: .company,
        fields: [
            ("id", .id), ("name", .name), ("email", .email), ("phone", .phone), ("address", .address),
            ("category", .category), ("bio", .bio), ("website", .website), ("createdAt", .createdAt),
            ("updatedAt", .updatedAt),
        ].map { ($0, .company($1)) },
        relations: [
            ("logo", .companyLogo), ("jobs", .companyPostings), ("representative", .companyRepresentative),
        ])

    private static let application = WireNames(
        kind: .application,
        fields: [
            ("id", .id), ("status", .status), ("room", .room), ("createdAt", .createdAt), ("updatedAt", .updatedAt),
        ].map { ($0, .application($1)) },
        relations: [("applicant", .applicationApplicant), ("job", .applicationPosting), ("cv", .applicationCV)])

    private static let user = WireNames(
        kind: .user,
        fields: [
            ("id", .id), ("username", .username), ("email", .email), ("first_name", .firstName),
            ("last_name", .lastName), ("phone_number", .phoneNumber), ("provider", .provider),
            ("confirmed", .confirmed), ("blocked", .blocked), ("createdAt", .createdAt), ("updatedAt", .updatedAt),
        ].map { ($0, .user($1)) },
        relations: [("profile", .userProfile), ("applications", .userApplications), ("company", .userCompany)])

    private static let media = WireNames(
        kind: .media,
        fields: [
            ("id", .id), ("name", .name), ("alternativeText", .alternativeText), ("caption", .caption),
            ("width", .width), ("height", .height), ("formats", .formats), ("hash", .hash), ("ext", .ext),
            ("mime", .mime), ("size", .size), ("url", .url), ("previewUrl", .previewURL), ("provider", .provider),
            ("createdAt", .createdAt), ("updatedAt", .updatedAt),
        ].map { ($0, .media($1)) },
        relations: [])
}
