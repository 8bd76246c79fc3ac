import Core
import Foundation
import Glibc

enum ImportCommand: Command {
    /// A folder with more files than this is not a folder of postings.
    static let filesMax = 10_000
    static let renewDaysMax = 3650

    static let syntax = CommandSyntax(
        "import", "Imports postings or companies from files.", operands: "FILE|DIR", count: 1...1,
        options: [
            .init(
                "--format", "NAME", "\(formats), or auto (default: auto, by content)",
                values: SourceFormat.allCases.map(\.rawValue) + ["auto"]),
            .init("--company", "NAME", "whose postings these are, where Greenhouse or Lever do not say"),
            .init("--renew-days", "N", "republish postings whose closing date has passed for N days from now"),
            .init("--dry-run", nil, "read and judge everything, store nothing"),
        ],
        notes: """
            Postings are known by their source and its own id: importing again updates what has changed and leaves the
            rest. Postings past their closing date are stored and not found by search; --renew-days is for archives
            and demonstrations. A record that cannot be taken is refused with its line and the reason, the others are
            stored. From a folder all .json, .jsonc, .jsonl and .ndjson files are taken whose format is known.
            """)

    private static var formats: String { SourceFormat.allCases.map(\.rawValue).joined(separator: ", ") }

    static func run(_ arguments: Arguments, _ context: Operator) async throws -> Int32 {
        let path = arguments.operands.first ?? ""
        let format = try format(arguments)
        let mapping = MappingContext(
            now: context.now(), renewDays: try arguments.integer("--renew-days", in: 1...renewDaysMax),
            company: arguments.value("--company").flatMap { $0.isEmpty ? nil : $0 })
        let (files, isFolder) = try files(path)
        let run = Run(
            files: files, isFolder: isFolder, format: format, mapping: mapping, terminal: context.terminal,
            asJSON: arguments.has("--json"))
        if arguments.has("--dry-run") { return try await run.perform(storing: nil) }
        return try await context.withBackend { backend in
            // A pooler is noticed now, not after all postings.
            try await backend.ping()
            return try await run.perform(storing: backend.imports)
        }
    }

    private static func format(_ arguments: Arguments) throws(UsageError) -> SourceFormat? {
        guard let name = arguments.value("--format"), name != "auto" else { return nil }
        guard let format = SourceFormat(rawValue: name) else {
            throw UsageError("there is no format \"\(name)\"; there are \(formats)")
        }
        return format
    }

    /// The file itself, or the files of a folder and the folders in it, by name.
    static func files(_ path: String) throws(ImportError) -> (paths: [String], isFolder: Bool) {
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else {
            throw ImportError("there is no \(path)")
        }
        guard isFolder.boolValue else { return ([path], false) }
        let names = FileManager.default.enumerator(atPath: path)?.compactMap { $0 as? String } ?? []
        let wanted = names.filter { name in
            [".json", ".jsonc", ".jsonl", ".ndjson"].contains { name.hasSuffix($0) }
        }
        guard !wanted.isEmpty else { throw ImportError("\(path) has no .json, .jsonc, .jsonl or .ndjson files") }
        guard wanted.count <= filesMax else { throw ImportError("\(path) has over \(filesMax) files") }
        return (wanted.sorted().map { path.hasSuffix("/") ? path + $0 : "\(path)/\($0)" }, true)
    }

    /// One import, from the first file to the last line of the report.
    struct Run {
        let files: [String]
        let isFolder: Bool
        let format: SourceFormat?
        let mapping: MappingContext
        let terminal: Terminal
        let asJSON: Bool

        func perform(storing repository: (any ImportRepository)?) async throws -> Int32 {
            let start = ContinuousClock.now
            let line = ProgressLine(terminal)
            var importer = Importer(context: mapping, forcedFormat: format, repository: repository) { records in
                line.show(
                    "\(ImportText.grouped(records)) \(noun(records, "record")), "
                        + "\(ImportText.rate(records, since: start)) a second")
            }
            var reports: [FileReport] = []
            do {
                for file in files {
                    let report = try await importer.run(path: file)
                    guard !report.isSkipped || isFolder else {
                        throw ImportError("\(file): the format is not known; --format names it")
                    }
                    reports.append(report)
                    line.clear()
                    if !asJSON { ImportText.tell(report, on: terminal) }
                }
                if reports.contains(where: { $0.counts.new + $0.counts.updated > 0 }) {
                    line.show("bringing the facts of search up to date")
                    try await repository?.finish()
                }
            } catch {
                line.clear()
                if !reports.isEmpty {
                    terminal.warn("what was stored before stays; the same command goes on from there")
                }
                throw error
            }
            line.clear()
            let total = ImportTotal(reports, isDry: repository == nil, seconds: ImportText.seconds(since: start))
            terminal.line(asJSON ? ImportText.json(reports, total).text : ImportText.words(total))
            return reports.contains(where: \.isBroken) ? Operator.Status.failure : Operator.Status.success
        }
    }
}
