import Core
import EventLoop
import Foundation
import Glibc
import MediaStore
import ServiceKit

/// Looks at everything the services need, and says all that is wrong at once.
enum CheckCommand: Command {
    static let syntax = CommandSyntax(
        "check", "Checks configuration, database, schema, object store and mail server.",
        options: [MigrateCommand.migrationsOption],
        notes: "Exits with 0 when all is well, 78 for mistakes of configuration, 1 when something is not reachable.")

    enum Standing: String {
        case good = "ok"
        case bad = "failed"
        /// Not configured, and nothing that one cannot do without.
        case off
    }

    struct Finding {
        let name: String
        let standing: Standing
        let detail: String
    }

    static func run(_ arguments: Arguments, _ context: Operator) async throws -> Int32 {
        var findings: [Finding] = []
        let mistakes = Self.mistakes(context.environment)
        findings.append(
            Finding(
                name: "configuration", standing: mistakes.isEmpty ? .good : .bad,
                detail: mistakes.joined(separator: "; ")))
        findings += await database(arguments, context)
        findings.append(await store(context.environment))
        findings.append(await mail(context))
        tell(findings, on: context.terminal, asJSON: arguments.has("--json"))
        if !mistakes.isEmpty { return Operator.Status.configuration }
        return findings.contains { $0.standing == .bad } ? Operator.Status.failure : Operator.Status.success
    }

    /// What any service would refuse to start with.
    static func mistakes(_ environment: [String: String]) -> [String] {
        var settings = Environment(environment)
        _ = DatabaseSettings(&settings)
        _ = settings.webURL("MARTLET_PUBLIC_URL", default: "http://127.0.0.1:8080")
        for name in ["MARTLET_RESET_URL", "MARTLET_CONFIRMED_URL"] where settings.value(name) != nil {
            _ = settings.webURL(name)
        }
        if let text = settings.value("MARTLET_SMTP_URL"), mailServer(text) == nil {
            settings.mistake("MARTLET_SMTP_URL must be smtp://HOST:PORT or smtps://HOST:PORT")
        }
        do { try settings.check() } catch { return error.mistakes }
        return []
    }

    private static func database(_ arguments: Arguments, _ context: Operator) async -> [Finding] {
        do {
            return try await context.withBackend { backend in
                do {
                    try await backend.ping()
                } catch {
                    let detail = backend.obstacle ?? Operator.explain(error)
                    return [Finding(name: "database", standing: .bad, detail: detail)]
                }
                let reachable = Finding(name: "database", standing: .good, detail: "")
                do {
                    let directory = try MigrateCommand.directory(arguments, context)
                    let states = try await backend.migrator(directory: directory).status()
                    return [reachable, schema(states)]
                } catch {
                    return [reachable, Finding(name: "schema", standing: .bad, detail: Operator.explain(error))]
                }
            }
        } catch {
            return [Finding(name: "database", standing: .bad, detail: Operator.explain(error))]
        }
    }

    private static func schema(_ states: [MigrationState]) -> Finding {
        let pending = states.filter { $0.standing == .pending }.map(\.name)
        let changed = states.filter { $0.standing == .changed }.map(\.name)
        if !changed.isEmpty {
            return Finding(name: "schema", standing: .bad, detail: "changed since: " + changed.joined(separator: ", "))
        }
        guard pending.isEmpty else {
            return Finding(
                name: "schema", standing: .bad,
                detail: "pending (martlet migrate): " + pending.joined(separator: ", "))
        }
        return Finding(name: "schema", standing: .good, detail: "\(states.count) migrations applied")
    }

    private static func store(_ environment: [String: String]) async -> Finding {
        var settings = Environment(environment)
        guard let path = settings.value("MARTLET_STORE") else {
            return Finding(name: "store", standing: .off, detail: "MARTLET_STORE is not set")
        }
        if StoreSettings.isBucket(path) { return await bucket(&settings) }
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), isFolder.boolValue else {
            return Finding(name: "store", standing: .bad, detail: "\(path) is no folder")
        }
        guard access(path, W_OK | X_OK) == 0 else {
            return Finding(name: "store", standing: .bad, detail: "\(path) cannot be written to")
        }
        return Finding(name: "store", standing: .good, detail: path)
    }

    /// Writes and removes a small object.
    private static func bucket(_ settings: inout Environment) async -> Finding {
        let files = OffloadPool(name: "files", threads: 1, queueMax: 8)
        defer { files.stop() }
        do {
            let opened = StoreSettings.open(&settings, files: files, clock: SystemClock())
            try settings.check()
            try await opened?.store.probe()
            return Finding(name: "store", standing: .good, detail: "S3")
        } catch {
            let mistakes = (error as? ConfigurationError)?.mistakes.joined(separator: "; ")
            return Finding(name: "store", standing: .bad, detail: mistakes ?? "\(error)")
        }
    }

    private static func mailServer(_ text: String) -> (host: String, port: Int, isImplicitTLS: Bool)? {
        guard let parts = URLComponents(string: text), let host = parts.host, !host.isEmpty else { return nil }
        switch parts.scheme {
        case "smtp": return (host, parts.port ?? 25, false)
        case "smtps": return (host, parts.port ?? 465, true)
        default: return nil
        }
    }

    private static func mail(_ context: Operator) async -> Finding {
        var settings = Environment(context.environment)
        guard let text = settings.value("MARTLET_SMTP_URL"), let server = mailServer(text) else {
            return Finding(name: "mail", standing: .off, detail: "MARTLET_SMTP_URL is not set")
        }
        let address = "\(server.host):\(server.port)"
        do {
            // With TLS from the start the server says nothing before the handshake; that it accepts is enough.
            let greeting = try await context.greeting(server.host, server.port, !server.isImplicitTLS)
            guard server.isImplicitTLS || greeting.hasPrefix("220") else {
                return Finding(name: "mail", standing: .bad, detail: "\(address) does not greet as a mail server")
            }
            return Finding(name: "mail", standing: .good, detail: address)
        } catch {
            return Finding(name: "mail", standing: .bad, detail: "\(address): \(Operator.explain(error))")
        }
    }

    private static func tell(_ findings: [Finding], on terminal: Terminal, asJSON: Bool) {
        if asJSON {
            terminal.line(
                OrderedJSON.array(
                    findings.map {
                        .objectOf([
                            "name": .string($0.name), "state": .string($0.standing.rawValue),
                            "detail": .string($0.detail),
                        ])
                    }
                ).text)
            return
        }
        for finding in findings {
            let word = finding.standing.rawValue
            let line = word + String(repeating: " ", count: 8 - word.count) + finding.name
            terminal.line(finding.detail.isEmpty ? line : "\(line): \(finding.detail)")
        }
    }
}
