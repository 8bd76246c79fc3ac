import Core
import Foundation
import Postgres
import TestSupport
import Testing

@testable import CorePostgres

@Suite("Errors of PostgreSQL as the domain's")
struct ErrorMappingTests {
    private func code(_ error: any Error) -> AppError.Code? { (ErrorMapping.map(error) as? AppError)?.code }

    @Test("a database that is away, busy or in another's hands is unavailable, with a time to come back")
    func unavailable() {
        for error in [PostgresUnavailable.notReachable, .busy, .connectionLost, .closed, .outcomeUnknown] {
            let mapped = ErrorMapping.map(error) as? AppError
            #expect(mapped?.code == .unavailable && mapped?.retryAfterSeconds == 1)
        }
        let unknown = ErrorMapping.map(PostgresUnavailable.outcomeUnknown) as? AppError
        #expect(unknown == AppError.outcomeUnknown && unknown != .unavailable)
        for state in ["57014", "57P01", "57P03", "53300", "53100", "08006", "40001", "40P01", "55P03", "25006"] {
            #expect(code(PostgresError(sqlState: state)) == .unavailable, "\(state)")
        }
        for state in ["42601", "42703", "23502", "22P02", "XX000"] {
            #expect(code(PostgresError(sqlState: state)) == nil, "\(state) is a bug, and is told as one")
        }
    }

    @Test("text that PostgreSQL cannot hold is the client's mistake")
    func invalid() {
        #expect(code(PostgresEncodingError.nul) == .invalid)
        #expect(code(PostgresEncodingError.tooLarge) == .tooLarge)
        #expect(code(PostgresEncodingError.dateOutOfRange) == .invalid)
        #expect(code(PostgresError(sqlState: "22021")) == .invalid)
        #expect(code(CancellationError()) == nil)
        #expect(ErrorMapping.map(AppError.notFound) as? AppError == .notFound)
    }

    /// What no client's wish can meet once it has passed Core: a bug when it happens, told as one.
    private static let bugs: Set<String> = [
        "users_pkey", "users_role_known", "sessions_pkey", "sessions_kind_known", "session_refresh_tokens_pkey",
        "session_refresh_tokens_hash_length", "session_refresh_tokens_session_id_fkey", "audit_log_pkey", "media_pkey",
        "media_kind_known", "media_state_known", "media_resume_size", "media_name_length", "media_declared_type_length",
        "media_bytes_positive", "media_variants_pkey", "media_variants_name_known", "media_variants_hash_key",
        "media_variants_storage_key_key", "media_variants_media_id_fkey", "companies_pkey", "companies_email_length",
        "companies_phone_length", "companies_address_length", "companies_category_length", "companies_website_length",
        "companies_source_external_id_key", "company_members_pkey", "company_members_role_known", "job_postings_pkey",
        "job_postings_employment_type_length", "job_postings_kind_known", "job_postings_environment_length",
        "job_postings_remote_known", "job_postings_place_length", "job_postings_lat_range", "job_postings_lng_range",
        "job_postings_salary_min_positive", "job_postings_salary_max_order", "job_postings_salary_currency_iso",
        "job_postings_salary_period_known", "job_postings_apply_url_length", "job_postings_state_known",
        "job_postings_source_external_id_key", "job_postings_published_has_date", "job_postings_place_pair",
        "job_postings_salary_whole", "applications_pkey", "applications_status_known", "applications_cv_media_id_fkey",
        "application_events_pkey", "application_events_kind_known",
    ]

    @Test("every constraint of the schema has been decided about: an answer for the client, or a bug")
    func decided() async throws {
        try await withTestDatabase { _, database in
            let names = Set(
                try await database.run(
                    """
                    SELECT conname FROM pg_constraint WHERE conrelid::regclass::text = ANY (
                      '{users,sessions,session_refresh_tokens,audit_log,media,media_variants,companies,company_members,
                        job_postings,applications,application_events}')
                    UNION
                    SELECT i.relname FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
                    JOIN pg_class t ON t.oid = x.indrelid
                    WHERE x.indisunique AND t.relname = ANY (
                      '{users,sessions,session_refresh_tokens,audit_log,media,media_variants,companies,company_members,
                        job_postings,applications,application_events}')
                    """
                ).map { $0[0]! })
            let answered = names.filter { code(PostgresError(sqlState: "23514", constraint: $0)) != nil }
            #expect(names.subtracting(answered) == Self.bugs)
            #expect(answered.count > 25)
        }
    }

    @Test("no mapped constraint is one that the schema has not")
    func known() async throws {
        let source = try String(
            contentsOf: URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
                .deletingLastPathComponent().appending(path: "Sources/CorePostgres/ErrorMapping.swift"),
            encoding: .utf8)
        let named = source.matches(of: /"(\w+_(?:key|length|lower|known|fkey|count))"/).map { String($0.1) }
        #expect(named.count > 30)
        try await withTestDatabase { _, database in
            let there = Set(
                try await database.run(
                    "SELECT conname FROM pg_constraint UNION SELECT relname FROM pg_class WHERE relkind = 'i'"
                ).map { $0[0]! })
            #expect(Set(named).subtracting(there) == [])
        }
    }

    @Test("with the database away, repositories say unavailable, and write nothing by halves")
    func away() async throws {
        try await withTestDatabase { db, database in
            let world = World(db)
            let jane = try await world.user("jane")
            let gone = try PostgresConfiguration(url: "postgres://postgres@127.0.0.1:1/none")
            var impatient = gone
            impatient.acquireMilliseconds = 50
            let away = Database(impatient, loops: database.loops)
            let nowhere = World(away)
            await refused(.unavailable) { try await nowhere.users.find(jane.id) }
            await refused(.unavailable) { try await nowhere.sessions.revocations(since: 0) }
            await refused(.unavailable) { try await nowhere.company("Acme", of: jane.id) }
            await refused(.unavailable) { try await nowhere.media.finish(Media.ID(1), ready()) }
            await away.close()
        }
    }
}
