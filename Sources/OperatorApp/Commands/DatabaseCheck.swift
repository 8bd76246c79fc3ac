import Core
import Foundation

/// What is said of a database by its facts.
enum DatabaseCheck {
    /// PostgreSQL 14 tells of `in_hot_standby` by itself and has all that migrations use; 15 is what is tested.
    static let versionMin = 150_000
    /// Connections that a service of four loops opens at most: short reads one a loop, searches 2, writes 4,
    /// transactions 4, LISTEN 1.
    static let connectionsPerService = 15
    /// A gateway, a chat and a worker.
    static let servicesMin = 3

    static func judge(_ facts: DatabaseFacts, server: String) -> [Finding] {
        let version = "\(facts.version / 10_000).\(facts.version % 10_000)"
        var findings: [Finding] = []
        func add(_ standing: Finding.Standing, _ detail: String, _ remedy: String) {
            findings.append(Finding("database", standing, detail, remedy: remedy))
        }
        if facts.version < versionMin {
            add(.bad, "\(server) is PostgreSQL \(version)", "Martlet needs PostgreSQL \(versionMin / 10_000) or newer")
        }
        if facts.isStandby {
            add(
                .bad, "\(server) is a standby, which takes no writes",
                "name the primary, or both with target_session_attrs=read-write")
        }
        if facts.encoding != "UTF8" {
            add(.bad, "its encoding is \(facts.encoding)", "make the database with ENCODING 'UTF8' TEMPLATE template0")
        }
        for setting in facts.unsafeSettings {
            let remedy = "ALTER SYSTEM SET \(setting) = on, then SELECT pg_reload_conf()"
            add(.bad, "\(setting) is off: what was acknowledged may be lost", remedy)
        }
        if !facts.mayCreate {
            add(
                .warning, "this role may not make tables",
                "fine for services; martlet migrate needs the database's owner")
        }
        let services = facts.connectionsMax / connectionsPerService
        if services < servicesMin {
            add(
                .warning, "\(facts.connectionsMax) connections are enough for \(services) \(noun(services, "service"))",
                "raise max_connections to \(connectionsPerService * servicesMin) or more, or put pgbouncer before it")
        }
        guard findings.isEmpty else { return findings }
        return [
            Finding(
                "database", .good,
                "PostgreSQL \(version) at \(server), \(facts.connectionsUsed) of \(facts.connectionsMax) connections "
                    + "in use, enough for \(services) services")
        ]
    }

    static func schema(_ states: [MigrationState]) -> Finding {
        let names = { (standing: MigrationState.Standing) in
            states.filter { $0.standing == standing }.map { $0.name.isEmpty ? $0.version : $0.name }
        }
        let (changed, unknown, pending) = (names(.changed), names(.unknown), names(.pending))
        if !changed.isEmpty {
            return Finding(
                "schema", .bad, "changed since: " + changed.joined(separator: ", "),
                remedy: "bring the files back as they were applied; a change is a migration of its own")
        }
        if !pending.isEmpty {
            return Finding(
                "schema", .bad, "pending (martlet migrate): " + pending.joined(separator: ", "),
                remedy: "the schema is older than this program: run martlet migrate")
        }
        if !unknown.isEmpty {
            return Finding(
                "schema", .warning, "unknown here: " + unknown.joined(separator: ", "),
                remedy: "the schema is newer than this program: bring the program up to date too")
        }
        return Finding("schema", .good, "\(states.count) \(noun(states.count, "migration")) applied")
    }
}
