import Core
import Postgres

/// Runs a repository's work and gives its errors as the domain's. What is neither is a bug, and passes as it is.
func mapped<T>(_ work: () async throws -> T) async throws -> T {
    do { return try await work() } catch { throw ErrorMapping.map(error) }
}

enum ErrorMapping {
    static func map(_ error: any Error) -> any Error {
        switch error {
        case let error as PostgresError: map(error) ?? error
        case PostgresUnavailable.outcomeUnknown: AppError.outcomeUnknown
        case is PostgresUnavailable: AppError.unavailable
        case PostgresEncodingError.nul: AppError(.invalid, "Text may not have NUL characters.")
        case PostgresEncodingError.tooLarge: AppError(.tooLarge, "That is too large.")
        case PostgresEncodingError.dateOutOfRange: AppError(.invalid, "The date is out of range.")
        default: error
        }
    }

    private static func map(_ error: PostgresError) -> AppError? {
        if let constraint = error.constraint, let mapped = map(constraint: constraint) { return mapped }
        if error.isUnavailable || error.isTimeout || error.isSerialization || error.isLockTimeout || error.isReadOnly {
            return .unavailable
        }
        return map(sqlState: error.sqlState)
    }

    private static func map(sqlState: String) -> AppError? {
        switch sqlState {
        // character_not_in_repertoire, untranslatable_character
        case "22021", "22P05": AppError(.invalid, "Text must be valid UTF-8.")
        // datetime_field_overflow
        case "22008": AppError(.invalid, "The date is out of range.")
        default: nil
        }
    }

    /// Every constraint a client's wish can meet. Core's rules stand before most of them; what passes both by is a bug
    /// and no `AppError`.
    private static func map(constraint: String) -> AppError? {
        switch constraint {
        case "users_email_key", "users_username_key":
            AppError(.conflict, "Email or Username are already taken")
        case "users_username_length": .invalid("username", "username must have 3 to 50 characters.")
        case "users_email_length", "users_email_lower": .invalid("email", "email must be a valid email")
        case "users_first_name_length": .invalid("first_name", "first_name is limited to 255 characters.")
        case "users_last_name_length": .invalid("last_name", "last_name is limited to 255 characters.")
        case "users_phone_number_length": .invalid("phone_number", "phone_number is limited to 255 characters.")
        case "users_time_zone_length", "users_time_zone_known":
            .invalid("time_zone", "time_zone must be an IANA name such as Europe/Berlin")
        case "sessions_user_id_fkey": .unauthenticated
        // Who is known to be there a moment before may be gone by the time a row refers to it.
        case "media_owner_id_fkey", "users_profile_media_id_fkey", "companies_logo_media_id_fkey",
            "company_members_company_id_fkey", "company_members_user_id_fkey", "job_postings_company_id_fkey",
            "job_postings_created_by_fkey", "applications_posting_id_fkey", "applications_applicant_id_fkey",
            "application_events_application_id_fkey", "application_events_actor_id_fkey",
            "room_members_room_id_fkey", "room_members_user_id_fkey", "job_alerts_user_id_fkey":
            .notFound
        case "media_alternative_text_length":
            .invalid("alternativeText", "alternativeText is limited to 1000 characters.")
        case "media_caption_length": .invalid("caption", "caption is limited to 1000 characters.")
        case "media_hash_key", "media_storage_key_key":
            AppError(.conflict, "This file is stored already.")
        case "company_members_user_id_key":
            AppError(.conflict, "You are a member of a company already.", location: "/api/companies/me")
        case "companies_name_length": .invalid("name", "name must have 1 to 255 characters.")
        case "companies_bio_length": .invalid("bio", "bio is limited to 10000 characters.")
        case "job_postings_title_length": .invalid("name", "name must have 1 to 255 characters.")
        case "job_postings_description_length":
            .invalid("description", "description is limited to 100000 characters.")
        case "job_postings_skills_count": .invalid("skills", "skills are limited to 50.")
        case "applications_posting_id_applicant_id_key":
            AppError(.conflict, "You have applied to this posting already.")
        case "messages_body_length": .invalid("body", "body is limited to 65536 bytes of UTF-8.")
        default: nil
        }
    }
}
