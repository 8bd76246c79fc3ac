import Core
import TestSupport
import Testing

@Suite("Limits in Core and in the schema")
struct LimitsTests {
    /// Tables whose texts come from outside by way of Core's drafts.
    private static let tables = [
        "users", "media", "companies", "job_postings", "applications", "application_events", "messages",
    ]

    private static let lengths: [String: ClosedRange<Int>] = [
        "users_username_length": range(User.usernameField),
        "users_email_length": User.emailLengthMin...User.emailLengthMax,
        "users_first_name_length": range(User.nameField("first_name")),
        "users_last_name_length": range(User.nameField("last_name")),
        "users_phone_number_length": range(User.nameField("phone_number")),
        "users_time_zone_length": 0...User.timeZoneLengthMax,
        "media_name_length": 0...Media.Draft.nameLengthMax,
        "media_alternative_text_length": range(Media.Info.alternativeText),
        "media_caption_length": range(Media.Info.caption),
        "media_declared_type_length": 0...Media.Draft.declaredTypeLengthMax,
        "companies_name_length": range(Company.Draft.name),
        "companies_email_length": 0...User.emailLengthMax,
        "companies_phone_length": range(Company.Draft.line("phone")),
        "companies_address_length": range(Company.Draft.line("address")),
        "companies_category_length": range(Company.Draft.line("category")),
        "companies_bio_length": range(Company.Draft.bio),
        "companies_website_length": range(Company.Draft.website),
        "job_postings_title_length": range(JobPosting.Draft.title),
        "job_postings_description_length": range(JobPosting.Draft.description),
        "job_postings_employment_type_length": range(JobPosting.Terms.type),
        "job_postings_environment_length": range(JobPosting.Terms.environment),
        "job_postings_place_length": range(JobPosting.Terms.place),
        "job_postings_apply_url_length": range(JobPosting.Terms.applyURL),
        "job_postings_skills_count": 0...JobPosting.Terms.skillsMax,
        "messages_client_id_length": 1...Message.clientIDLengthMax,
        "messages_body_length": 0...Message.bodyBytesMax,
    ]

    private static func range(_ field: TextField) -> ClosedRange<Int> { field.lengthMin...field.lengthMax }

    @Test("every length that a CHECK of the schema knows is the length that Core knows, and the other way round")
    func lengthsAgree() async throws {
        try await withTestDatabase { _, database in
            var found: [String: ClosedRange<Int>] = [:]
            for (name, text) in try await checks(database) {
                // A backstop that nothing reaches: what is in it is bounded piece by piece, in Resume.
                guard name != "media_resume_size" else { continue }
                guard let match = text.firstMatch(of: /(char_length|octet_length|cardinality)\(/) else { continue }
                let upper = try #require(text.firstMatch(of: /<= (\d+)/), "\(name): \(text)")
                let lower = text.firstMatch(of: />= (\d+)/).flatMap { Int($0.1) }
                found[name] = (lower ?? 0)...Int(upper.1)!
                // Only messages are counted in octets.
                #expect((match.1 == "octet_length") == (name == "messages_body_length"))
            }
            #expect(found == Self.lengths)
        }
    }

    @Test("every list of words that a CHECK knows has the cases that Core has")
    func wordsAgree() async throws {
        let words: [String: [String]] = [
            "users_role_known": User.Role.allCases.map(\.rawValue),
            "media_kind_known": Media.Kind.allCases.map(\.rawValue),
            "media_state_known": Media.State.allCases.map(\.rawValue),
            "job_postings_state_known": JobPosting.State.allCases.map(\.rawValue),
            "job_postings_salary_period_known": Salary.Period.allCases.map(\.rawValue),
            "applications_status_known": Application.Status.allCases.map(\.rawValue),
            "application_events_kind_known": Application.Status.allCases.map(\.rawValue) + ["cv_ready", "cv_rejected"],
            "messages_kind_known": Message.Kind.allCases.map(\.rawValue),
        ]
        let numbers = [
            "job_postings_kind_known": EmploymentKind.allCases.map(\.rawValue),
            "job_postings_remote_known": Remoteness.allCases.map(\.rawValue),
        ]
        try await withTestDatabase { _, database in
            var foundWords: [String: Set<String>] = [:]
            var foundNumbers: [String: ClosedRange<Int16>] = [:]
            for (name, text) in try await checks(database) where name.hasSuffix("_known") {
                let list = text.matches(of: /'(\w+)'::text/).map { String($0.1) }
                if !list.isEmpty { foundWords[name] = Set(list) }
                if let match = text.firstMatch(of: />= (\d+)\).*<= (\d+)/) {
                    foundNumbers[name] = Int16(match.1)!...Int16(match.2)!
                }
            }
            foundWords["users_time_zone_known"] = nil
            #expect(foundWords == words.mapValues { Set($0) })
            #expect(foundNumbers == numbers.mapValues { $0.min()!...$0.max()! })
        }
    }

    /// Those of the tables, and of the domains that their columns are of.
    private func checks(_ database: TestDatabase) async throws -> [(name: String, text: String)] {
        let tables = "ANY ('{\(Self.tables.joined(separator: ","))}')"
        return try await database.run(
            """
            SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint
            WHERE contype = 'c' AND (conrelid::regclass::text = \(tables) OR contypid IN (
              SELECT atttypid FROM pg_attribute WHERE attrelid::regclass::text = \(tables)))
            """
        ).map { (name: $0[0]!, text: $0[1]!) }
    }
}
