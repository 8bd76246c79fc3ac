import Core
import Foundation
import Postgres

/// Saved searches, their matches and the ledger of what was told. The statements stand in the migration of alerts,
/// beside those of search, which they must agree with.
public struct PostgresAlerts: AlertRepository {
    let db: Database
    let notify: Bool
    let mailDomain: String

    /// - Parameter mailDomain: the right side of every Message-ID.
    public init(db: Database, notify: Bool = true, mailDomain: String = "martlet.invalid") {
        self.db = db
        self.notify = notify
        self.mailDomain = mailDomain
    }

    // MARK: Of one person

    public func create(_ draft: JobAlert.Draft, owner: User.ID) async throws -> JobAlert {
        do {
            return try await mapped { try await insert(draft, owner: owner) }
        } catch let error as PostgresError where error.sqlState == "MS001" {
            throw AppError.invalid("q", "q needs a word that must be there, and not only words such as \"the\".")
        } catch let error as PostgresError where error.sqlState == "MA001" {
            throw AppError.invalid("q", "An alert needs a word, a place, a company or how remote the work is.")
        }
    }

    private func insert(_ draft: JobAlert.Draft, owner: User.ID) async throws -> JobAlert {
        let search = draft.search
        return try await db.transaction { transaction in
            // One after the other for one person, so that the limit holds.
            let isThere = try await transaction.first(
                "SELECT true FROM users WHERE id = \(owner) AND NOT blocked FOR NO KEY UPDATE"
            ) { try $0.get(0, as: Bool.self) }
            guard isThere == true else { throw AppError.unauthenticated }
            let count = try await transaction.first(
                "SELECT count(*) FROM job_alerts WHERE user_id = \(owner) AND state = 'active'"
            ) { try $0.get(0, as: Int.self) }
            guard (count ?? 0) < JobAlert.perUserMax else {
                throw AppError(.tooMany, "A person can have \(JobAlert.perUserMax) alerts. Delete one first.")
            }
            // The same search ended by its mail's link comes back, and keeps its ledger.
            let id = try await transaction.first(
                """
                INSERT INTO job_alerts (user_id, group_id, name, q, place_name, cadence, next_digest_at)
                SELECT u.id,
                       alert_group(\(search.q), \(search.placeName), \(search.kind?.rawValue as Int16?)::smallint,
                         \(search.remote?.rawValue as Int16?)::smallint, \(search.salaryAtLeast as Int32?)::int,
                         \(search.companyID?.value as Int64?)::bigint,
                         \(search.place?.center.latitude as Float?)::real,
                         \(search.place?.center.longitude as Float?)::real,
                         \(search.place?.radiusKm as Float?)::real),
                       \(draft.name), \(search.q), \(search.placeName), \(draft.cadence.rawValue),
                       next_digest_at(\(draft.cadence.rawValue), u.time_zone, now())
                FROM users u WHERE u.id = \(owner)
                ON CONFLICT ON CONSTRAINT job_alerts_user_id_group_id_key DO UPDATE
                SET name = excluded.name, q = excluded.q, place_name = excluded.place_name, state = 'active',
                    cadence = excluded.cadence, next_digest_at = excluded.next_digest_at, created_at = now()
                WHERE job_alerts.state = 'unsubscribed'
                RETURNING id
                """
            ) { try $0.get(0, as: JobAlert.ID.self) }
            guard let id else { throw AppError(.conflict, "You have an alert for this search already.") }
            guard let alert = try await Self.find(id, owner: owner, on: transaction) else { throw AppError.notFound }
            return alert
        }
    }

    public func find(_ id: JobAlert.ID, owner: User.ID) async throws -> JobAlert {
        try await mapped {
            guard let alert = try await Self.find(id, owner: owner, on: db.short) else { throw AppError.notFound }
            return alert
        }
    }

    private static func find(
        _ id: JobAlert.ID, owner: User.ID, on executor: some SQLExecutor
    ) async throws -> JobAlert? {
        try await executor.first(
            """
            SELECT a.id, a.user_id, a.name, a.cadence, a.state, a.created_at, a.q, a.place_name, g.kind, g.remote,
                   g.min_salary, g.company_id, g.lat, g.lng, g.radius_km
            FROM job_alerts a JOIN alert_groups g ON g.id = a.group_id
            WHERE a.id = \(id) AND a.user_id = \(owner)
            """, as: Self.alert)
    }

    public func list(owner: User.ID) async throws -> [JobAlert] {
        try await mapped {
            try await db.short.rows(
                """
                SELECT a.id, a.user_id, a.name, a.cadence, a.state, a.created_at, a.q, a.place_name, g.kind, g.remote,
                       g.min_salary, g.company_id, g.lat, g.lng, g.radius_km
                FROM job_alerts a JOIN alert_groups g ON g.id = a.group_id
                WHERE a.user_id = \(owner) ORDER BY a.id DESC LIMIT \(JobAlert.perUserMax * 2)
                """, as: Self.alert)
        }
    }

    public func delete(_ id: JobAlert.ID, owner: User.ID) async throws {
        try await mapped {
            let deleted = try await db.write.execute(
                "DELETE FROM job_alerts WHERE id = \(id) AND user_id = \(owner)")
            guard deleted == 1 else { throw AppError.notFound }
        }
    }

    // MARK: By a mail's link

    public func unsubscribe(_ id: JobAlert.ID) async throws {
        // One that is deleted is as ended as can be.
        try await mapped {
            _ = try await db.write.execute(
                "UPDATE job_alerts SET state = 'unsubscribed' WHERE id = \(id) AND state = 'active'")
        }
    }

    public func describe(_ id: JobAlert.ID) async throws -> (name: String, email: String) {
        try await mapped {
            let found = try await db.short.first(
                "SELECT a.name, u.email FROM job_alerts a JOIN users u ON u.id = a.user_id WHERE a.id = \(id)"
            ) { (name: try $0.get(0, as: String.self), email: try $0.get(1, as: String.self)) }
            guard let found else { throw AppError.notFound }
            return found
        }
    }

    // MARK: Rows

    private static func alert(_ row: Row) throws -> JobAlert {
        let cadence = JobAlert.Cadence(rawValue: try row.get(3)) ?? .daily
        let state = JobAlert.State(rawValue: try row.get(4)) ?? .unsubscribed
        return JobAlert(
            id: try row.get(0), ownerID: try row.get(1), name: try row.get(2), search: try search(row, from: 6),
            cadence: cadence, state: state, createdAt: try row.get(5))
    }

    /// From q, place_name, kind, remote, min_salary, company_id, lat, lng, radius_km.
    static func search(_ row: Row, from column: Int) throws -> PostingSearch {
        let (lat, lng) = (try row.get(column + 6, as: Float?.self), try row.get(column + 7, as: Float?.self))
        let radius = try row.get(column + 8, as: Float?.self)
        var place: PostingSearch.Place?
        if let lat, let lng, let radius {
            place = try PostingSearch.Place(center: Coordinate(latitude: lat, longitude: lng), radiusKm: radius)
        }
        return try PostingSearch(
            q: row.get(column), kind: row.get(column + 2, as: Int16?.self).flatMap { EmploymentKind(rawValue: $0) },
            remote: row.get(column + 3, as: Int16?.self).flatMap { Remoteness(rawValue: $0) },
            salaryAtLeast: row.get(column + 4), companyID: row.get(column + 5), placeName: row.get(column + 1),
            place: place)
    }
}
