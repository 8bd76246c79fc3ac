import Core
import CorePostgres
import Foundation
import Postgres
import TestSupport
import Testing

/// People and hashes for tests that need some.
struct World {
    let db: Database
    let users: PostgresUsers
    let sessions: PostgresSessions
    let companies: PostgresCompanies
    let postings: PostgresPostings
    let applications: PostgresApplications
    let media: PostgresMedia

    init(_ db: Database) {
        self.db = db
        users = PostgresUsers(db: db)
        sessions = PostgresSessions(db: db)
        companies = PostgresCompanies(db: db)
        postings = PostgresPostings(db: db)
        applications = PostgresApplications(db: db)
        media = PostgresMedia(db: db)
    }

    func user(_ name: String, hash: String = "hash") async throws -> User {
        try await users.create(
            User.Draft(username: name, email: "\(name)@example.org", password: "secret"), passwordHash: hash)
    }

    func update(_ user: User.ID, _ change: User.Change, picture: Media.Draft? = nil) async throws -> User {
        try await users.update(user, change, picture: picture, mailing: mailing()).user
    }

    /// A mail asked for at a time, with a token that is nobody's.
    func mailing(_ token: UInt8 = 0, at now: Date = .now) -> AccountMailing {
        AccountMailing(token: AccountToken.Stored(seed: digest(token, 1), hash: digest(token, 2)), now: now)
    }

    func family(_ user: User.ID, token: UInt8 = 0) async throws -> Core.Session {
        try await sessions.start(.family, user: user, refreshHash: digest(token), expiresAt: future)
    }

    func company(_ name: String, of user: User.ID) async throws -> Company {
        try await companies.save(Company.Draft(name: name), logo: nil, representative: user)
    }

    func posting(
        _ title: String, by author: User.ID, state: JobPosting.State = .published, until end: Date? = nil
    ) async throws -> JobPosting {
        try await postings.create(
            JobPosting.Draft(
                title: title, safeDescription: "<p>Work.</p>", terms: JobPosting.Terms(), state: state,
                validThrough: end),
            author: author)
    }

    /// Applies with a CV that is the applicant's and the posting's own.
    func apply(_ applicant: User, to posting: JobPosting) async throws -> Application {
        try await applications.create(
            posting: posting.id, applicant: applicant.id, cv: file(.cv, "cv_\(applicant.id)_\(posting.id)"), now: .now)
    }

    func find(_ id: JobPosting.ID, viewer: User.ID?) async throws -> JobPosting {
        guard case .posting(let posting) = try await entry(.posting, id.value, viewer) else { throw AppError.notFound }
        return posting
    }

    func find(_ id: Company.ID) async throws -> Company {
        guard case .company(let company) = try await entry(.company, id.value, nil) else { throw AppError.notFound }
        return company
    }

    func find(_ id: Application.ID, viewer: User.ID) async throws -> Application {
        guard case .application(let application) = try await entry(.application, id.value, viewer) else {
            throw AppError.notFound
        }
        return application
    }

    private func entry(_ kind: EntryKind, _ id: Int64, _ viewer: User.ID?) async throws -> Entry.Value {
        try await PostgresEntries(db: db).entry(id, EntryQuery(kind), viewer: viewer, now: .now).value
    }

    /// The work items there are, oldest first: kind and payload.
    func items() async throws -> [String] {
        try await strings("SELECT kind || ' ' || payload::text FROM work_items ORDER BY id")
    }

    /// One number: the first column of the first row.
    func count(_ sql: SQL) async throws -> Int {
        try await db.short.first(sql) { try $0.get(0, as: Int.self) } ?? 0
    }

    /// Returns when some statement of this database waits for another's lock.
    func waitForLockWaiter(atLeast waiters: Int = 1) async throws {
        try await eventually {
            try await count(
                """
                SELECT count(*) FROM pg_stat_activity
                WHERE datname = current_database() AND wait_event_type = 'Lock'
                """) >= waiters
        }
    }

    func strings(_ sql: SQL) async throws -> [String] {
        try await db.short.rows(sql) { try $0.get(0, as: String.self) }
    }
}

let noSuchID: Int64 = 999_999_999
let future = Date(timeIntervalSince1970: Date.now.timeIntervalSince1970.rounded() + 86_400)

func logo(_ hash: String) -> Media.Draft { file(.logo, hash) }

func file(_ kind: Media.Kind, _ hash: String) -> Media.Draft {
    Media.Draft(
        kind: kind, name: "\(hash).bin", declaredType: "application/octet-stream", hash: hash, bytes: 3,
        sha256: digest(1), storageKey: "up/\(hash)")
}

/// What stands in for a SHA-256.
func digest(_ byte: UInt8, _ other: UInt8 = 0) -> [UInt8] { [other] + Array(repeating: byte, count: 31) }

/// The `AppError` of work that must be refused; the test fails when it is not.
@discardableResult
func refused<T>(
    _ code: AppError.Code, sourceLocation: SourceLocation = #_sourceLocation, _ work: () async throws -> T
) async -> AppError? {
    let error = await #expect(throws: AppError.self, sourceLocation: sourceLocation) { _ = try await work() }
    #expect(error?.code == code, sourceLocation: sourceLocation)
    return error
}

/// Runs the same work many times at once and gives all outcomes.
func atOnce<T: Sendable>(
    _ times: Int, _ work: @escaping @Sendable (Int) async throws -> T
) async -> [Result<T, any Error>] {
    await withTaskGroup(of: Result<T, any Error>.self) { group in
        for number in 0..<times {
            group.addTask {
                do { return .success(try await work(number)) } catch { return .failure(error) }
            }
        }
        var outcomes: [Result<T, any Error>] = []
        for await outcome in group { outcomes.append(outcome) }
        return outcomes
    }
}

extension Array {
    /// The values of those that went well.
    func successes<T>() -> [T] where Element == Result<T, any Error> { compactMap { try? $0.get() } }

    /// The codes of those that were refused; a test's issue for each error that is no `AppError`.
    func refusals<T>() -> [AppError.Code] where Element == Result<T, any Error> {
        compactMap { outcome in
            guard case .failure(let error) = outcome else { return nil }
            guard let error = error as? AppError else {
                Issue.record("no AppError: \(error)")
                return nil
            }
            return error.code
        }
    }
}
