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
                findings.append(judge(missing.count, missing.examples))
            } else {
                findings.append(Self.sentence("objects", .off, "the store is not asked for its objects"))
            }
            return findings
        }
        Finding.tell(findings, on: context.terminal, asJSON: arguments.has("--json"))
        return findings.contains { $0.standing == .bad } ? Operator.Status.failure : Operator.Status.success
    }

    static func judge(_ complaints: [HealthComplaint]) -> [Finding] {
        HealthComplaint.Kind.allCases.map { kind in
            let words = words(kind)
            guard let complaint = complaints.first(where: { $0.kind == kind }) else {
                return sentence(kind.rawValue, .good, words.well)
            }
            let detail = "\(complaint.count) \(noun(complaint.count, words.one, words.many))"
            let examples = complaint.examples.map(String.init)
            return sentence(
                kind.rawValue, .bad, listed(detail, examples, of: Int(complaint.count)), remedy: words.remedy)
        }
    }

    private static func judge(_ missing: Int, _ examples: [String]) -> Finding {
        guard missing > 0 else { return sentence("objects", .good, "every object that a row names is in the store") }
        let detail =
            "\(missing) \(noun(missing, "object that rows name is", "objects that rows name are")) not in the store"
        return sentence(
            "objects", .bad, listed(detail, examples, of: missing),
            remedy: "bring them back from a backup; workers mark their files as lost meanwhile")
    }

    /// The names of the findings are for programs.
    private static func sentence(
        _ name: String, _ standing: Finding.Standing, _ detail: String, remedy: String = ""
    ) -> Finding {
        var finding = Finding(name, standing, detail, remedy: remedy)
        finding.isSentence = true
        return finding
    }

    private static func listed(_ detail: String, _ examples: [String], of count: Int) -> String {
        "\(detail): \(examples.joined(separator: ", "))" + (examples.count < count ? ", …" : "")
    }

    private struct Words {
        let well: String
        /// After the number, of one and of several.
        let one: String
        let many: String
        let remedy: String
    }

    private static func words(_ kind: HealthComplaint.Kind) -> Words {
        switch kind {
        case .deadWork:
            Words(
                well: "no work has failed for good", one: "work item has failed for good",
                many: "work items have failed for good",
                remedy: "martlet queue show ID says why; then martlet queue retry ID, or let them be pruned")
        case .lateWork:
            Words(
                well: "no work is late", one: "work item has been ready for over ten minutes",
                many: "work items have been ready for over ten minutes",
                remedy: "are workers running, and enough of them? martlet queue shows what waits")
        case .lostLeases:
            Words(
                well: "no work is held by a worker that is gone", one: "work item is held by a worker that is gone",
                many: "work items are held by workers that are gone",
                remedy: "start a worker: it takes them up again within seconds")
        case .roomNumbers:
            Words(
                well: "every room counts its messages right",
                one: "room counts its messages wrong: its last number is not that of its last message",
                many: "rooms count their messages wrong: their last numbers are not those of their last messages",
                remedy: "restore, or ask for help: no service does this")
        case .stuckUploads:
            Words(
                well: "no upload has waited for over an hour", one: "upload has waited for over an hour",
                many: "uploads have waited for over an hour",
                remedy: "are workers running, and does martlet check find the scanner? "
                    + "martlet queue --kind process_upload shows what waits")
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
