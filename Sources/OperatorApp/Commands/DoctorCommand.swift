import Core
import Foundation
import ServiceKit

/// Looks at the data itself, where `check` looks at what is around it.
enum DoctorCommand: Command {
    static let syntax = CommandSyntax(
        "doctor", "Looks for what is wrong in the data: stuck work, rooms, files without objects.",
        options: [.init("--no-files", nil, "do not ask the object store for every file")],
        notes: """
            Changes nothing. Exits with 1 when it finds something. Reads whole tables, and asks the store for every
            object that a row names (MARTLET_STORE).
            """)

    static func run(_ arguments: Arguments, _ context: Operator) async throws -> Int32 {
        var settings = Environment(context.environment)
        let looksAtFiles = !arguments.has("--no-files") && settings.value("MARTLET_STORE") != nil
        try settings.check()
        let findings = try await context.withBackend { backend in
            var findings = judge(try await backend.health.complaints())
            if looksAtFiles {
                let missing = try await missingObjects(backend.backup, context)
                let keys = missing.examples.joined(separator: ", ")
                findings.append(
                    Finding(
                        "objects", missing.count == 0 ? .good : .bad,
                        missing.count == 0 ? "" : "\(missing.count) that rows name are not in the store: \(keys)",
                        remedy: "bring them back from a backup; workers mark their files as lost meanwhile"))
            } else {
                findings.append(Finding("objects", .off, "not asked for"))
            }
            return findings
        }
        Finding.tell(findings, on: context.terminal, asJSON: arguments.has("--json"))
        return findings.contains { $0.standing == .bad } ? Operator.Status.failure : Operator.Status.success
    }

    static func judge(_ complaints: [HealthComplaint]) -> [Finding] {
        HealthComplaint.Kind.allCases.map { kind in
            guard let complaint = complaints.first(where: { $0.kind == kind }) else {
                return Finding(kind.rawValue, .good, "")
            }
            let ids = complaint.examples.map(String.init).joined(separator: ", ")
            let (detail, remedy) = words(kind)
            return Finding(kind.rawValue, .bad, "\(complaint.count) \(detail): \(ids)", remedy: remedy)
        }
    }

    private static func words(_ kind: HealthComplaint.Kind) -> (detail: String, remedy: String) {
        switch kind {
        case .deadWork:
            ("items failed for good", "martlet queue show ID says why; then martlet queue retry or let them be pruned")
        case .lateWork:
            ("items have been ready for over ten minutes", "are workers running, and enough of them? martlet queue")
        case .lostLeases:
            ("items belong to workers that are gone", "start a worker: it takes them up again within seconds")
        case .roomNumbers:
            (
                "rooms whose last number is not that of their last message",
                "restore, or ask for help: no service does this"
            )
        case .stuckUploads:
            ("uploads have waited for over an hour", "martlet queue --kind process_upload")
        }
    }

    private static func missingObjects(
        _ database: any DatabaseBackup, _ context: Operator
    ) async throws -> (count: Int, examples: [String]) {
        let progress = ProgressLine(context.terminal)
        defer { progress.clear() }
        return try await context.withStore { store, _ in
            try await database.snapshot { snapshot in
                var (last, count, seen, examples) = ("", 0, 0, [String]())
                while true {
                    let page = try await snapshot.objectKeys(after: last, limit: ObjectCopy.pageMax)
                    // A store is asked for one folder at a time, in the order of the keys.
                    for part in page.filter({ !$0.isLost }).chunked(by: { folder($0.key) == folder($1.key) }) {
                        let missing = try await store.missing(of: part.map(\.key))
                        count += missing.count
                        examples += missing.prefix(max(0, Self.examplesMax - examples.count))
                    }
                    seen += page.count
                    progress.show("objects: \(seen) looked for")
                    guard page.count == ObjectCopy.pageMax, let end = page.last else { return (count, examples) }
                    last = end.key
                }
            }
        }
    }

    private static let examplesMax = 5

    private static func folder(_ key: String) -> Substring { key[..<(key.lastIndex(of: "/") ?? key.startIndex)] }
}

extension Array {
    /// Runs of neighbours that belong together.
    func chunked(by belongs: (Element, Element) -> Bool) -> [ArraySlice<Element>] {
        var (runs, start) = ([ArraySlice<Element>](), startIndex)
        for index in indices.dropFirst() where !belongs(self[index - 1], self[index]) {
            runs.append(self[start..<index])
            start = index
        }
        if !isEmpty { runs.append(self[start...]) }
        return runs
    }
}
