import Clamd
import Core
import CoreHTTP
import Crypto
import Foundation
import ServiceKit

/// Looks at everything the services need, and says all that is wrong at once, each with its remedy.
enum CheckCommand: Command {
    static let syntax = CommandSyntax(
        "check", "Checks configuration, database, schema, object store, mail server and virus scanner.",
        options: [MigrateCommand.migrationsOption],
        notes: """
            Exits with 0 when all is well (a warning is no failure), 78 for mistakes of configuration, 69 when what is
            needed is away or takes nothing, 1 when something else is not as it must be, such as an old schema; of
            several the first of these. martlet doctor looks at the data itself.
            """)

    static func run(_ arguments: Arguments, _ context: Operator) async throws -> Int32 {
        let mistakes = Self.mistakes(context.environment)
        var findings = [
            Finding(
                "configuration", mistakes.isEmpty ? .good : .bad, mistakes.joined(separator: "; "),
                cause: .configuration, remedy: "README's table of settings has all of them")
        ]
        findings += await database(arguments, context)
        findings.append(await StoreCheck.look(context.environment))
        findings.append(await MailCheck.look(context.environment))
        findings.append(await ScannerCheck.look(context.environment))
        Finding.tell(findings, on: context.terminal, asJSON: arguments.has("--json"))
        return Finding.status(findings)
    }

    /// What is wrong with the settings that several services share, and with those of what is looked at here, as far as
    /// they are set where this runs. What is one service's alone, such as the chat's limits, that one tells when it
    /// starts; what is missing too, for not all of them need all.
    static func mistakes(_ environment: [String: String]) -> [String] {
        var settings = Environment(environment)
        _ = ServiceSettings(&settings)
        _ = TraceSettings(&settings, service: "martlet", instance: "check")
        _ = DatabaseSettings(&settings)
        // Each service has its own where it listens; the form is the same.
        _ = settings.address("MARTLET_HTTP_ADDRESS", default: "127.0.0.1:8081")
        _ = TrustedNetworks.read(&settings)
        for name in ["MARTLET_DATABASE_URL", "MARTLET_DATABASE_DIRECT_URL"] {
            guard let scheme = settings.value(name)?.firstRange(of: "://") else { continue }
            let word = settings.value(name)?[..<scheme.lowerBound] ?? ""
            // What else may be wrong is found when it is used; it is not shown, for its password.
            if !["postgres", "postgresql"].contains(word) {
                settings.mistake("\(name) must be like postgres://user:password@host:port/database")
            }
        }
        let publicURL = settings.webURL("MARTLET_PUBLIC_URL", default: "http://127.0.0.1:8080")
        _ = settings.postingURL(publicURL: publicURL)
        for name in ["MARTLET_RESET_URL", "MARTLET_CONFIRMED_URL"] where settings.value(name) != nil {
            _ = settings.webURL(name)
        }
        _ = settings.mailServer()
        _ = settings.mailSender()
        for name in ["MARTLET_SECRET", "MARTLET_SECRET_FORMER"] where settings.value(name) != nil {
            _ = settings.secret(name, bytesMin: SigningKeys.keyBytesMin)
        }
        settings.verify("MARTLET_CLAMD") { _ = try ClamdAddress($0) }
        // A file that is not there is no matter of taste, whichever service reads it.
        settings.tryFiles(ofNamesWith: "MARTLET_")
        do { try settings.check() } catch { return error.mistakes }
        return []
    }

    private static func database(_ arguments: Arguments, _ context: Operator) async -> [Finding] {
        do {
            return try await context.withBackend { backend in
                let facts: DatabaseFacts
                do {
                    try await backend.ping()
                    facts = try await backend.health.facts()
                } catch {
                    let detail = backend.obstacle ?? backend.refusal ?? Operator.explain(error)
                    let cause: Finding.Cause = backend.obstacle == nil ? .away : .configuration
                    return [Finding("database", .bad, detail, cause: cause, remedy: reachRemedy(backend))]
                }
                var findings = DatabaseCheck.judge(facts, server: backend.databaseAddress)
                do {
                    let directory = try MigrateCommand.directory(arguments, context)
                    findings.append(DatabaseCheck.schema(try await backend.migrator(directory: directory).status()))
                } catch {
                    findings.append(
                        Finding(
                            "schema", .bad, Operator.explain(error), cause: Finding.Cause(error),
                            remedy: "name the folder of this version's migrations by --migrations or "
                                + "MARTLET_MIGRATIONS; martlet migrate brings an empty database up"))
                }
                return findings
            }
        } catch {
            let mistakes = (error as? ConfigurationError)?.mistakes.joined(separator: "; ")
            return [
                Finding(
                    "database", .bad, mistakes ?? Operator.explain(error), cause: Finding.Cause(error),
                    remedy: "correct MARTLET_DATABASE_URL and what belongs to it")
            ]
        }
    }

    private static func reachRemedy(_ backend: any OperatorBackend) -> String {
        "is PostgreSQL up at \(backend.databaseAddress), and are user, password and pg_hba.conf right?"
    }
}

/// One thing that was looked at.
struct Finding {
    enum Standing: String {
        case good = "ok"
        case warning
        case bad = "failed"
        /// Not configured, and nothing that one cannot do without.
        case off
    }

    /// What a failure means for the exit status; the gravest of all counts.
    enum Cause: Comparable {
        case wrong, away, configuration

        init(_ error: any Error) {
            switch error {
            case is ConfigurationError: self = .configuration
            case let error as AppError where error.code == .unavailable: self = .away
            default: self = .wrong
            }
        }

        var status: Int32 {
            switch self {
            case .wrong: Operator.Status.failure
            case .away: Operator.Status.unavailable
            case .configuration: Operator.Status.configuration
            }
        }
    }

    let name: String
    let standing: Standing
    let detail: String
    let cause: Cause
    /// What to do about it; empty when all is well.
    let remedy: String
    /// The detail says all; the name is for programs.
    var isSentence = false

    init(_ name: String, _ standing: Standing, _ detail: String, cause: Cause = .wrong, remedy: String = "") {
        self.name = name
        self.standing = standing
        self.detail = detail
        self.cause = cause
        self.remedy = standing == .good || standing == .off ? "" : remedy
    }

    /// Of what there is to look at only where a setting names it: off, or what is wrong with the setting.
    static func unset(_ name: String, _ settings: Environment, _ detail: String) -> Finding {
        do { try settings.check() } catch {
            let mistakes = error.mistakes.joined(separator: "; ")
            return Finding(name, .bad, mistakes, cause: .configuration, remedy: "correct that setting")
        }
        return Finding(name, .off, detail)
    }

    static func status(_ findings: [Finding]) -> Int32 {
        findings.filter { $0.standing == .bad }.map(\.cause).max()?.status ?? Operator.Status.success
    }

    static func tell(_ findings: [Finding], on terminal: Terminal, asJSON: Bool) {
        if asJSON {
            let rows = findings.map { finding in
                OrderedJSON.objectOf([
                    "name": .string(finding.name), "state": .string(finding.standing.rawValue),
                    "detail": .string(finding.detail), "remedy": .string(finding.remedy),
                ])
            }
            return terminal.line(OrderedJSON.array(rows).text)
        }
        for finding in findings {
            let word = finding.standing.rawValue
            let parts = (finding.isSentence ? [] : [finding.name]) + (finding.detail.isEmpty ? [] : [finding.detail])
            terminal.line(word + String(repeating: " ", count: 8 - word.count) + parts.joined(separator: ": "))
            if !finding.remedy.isEmpty { terminal.line("        -> \(finding.remedy)") }
        }
    }
}
