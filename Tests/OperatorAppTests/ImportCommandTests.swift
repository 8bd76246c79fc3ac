import Core
import CorePostgres
import Foundation
import Postgres
import TestSupport
import Testing

@testable import OperatorApp

@Suite("martlet import")
struct ImportCommandTests {
    @Test("every format imports from a file, is found by search, and is unchanged the second time")
    func everyFormat() async throws {
        let files: [(String, String, String)] = [
            ("usajobs.json", "[\(Fixture.usajobs)]", "statistician"),
            ("github.jsonc", "// 20200623\n// https://jobs.example\n\n[\(Fixture.githubJobs)]", "c++"),
            ("greenhouse.json", "{\"jobs\": [\(Fixture.greenhouse)], \"meta\": {\"total\": 1}}", "nurse"),
            ("lever.json", "[\(Fixture.lever)]", "baker"),
            ("mixed.json", "[\(Fixture.mixedLever), \(Fixture.mixedGreenhouse)]", "keyholder"),
        ]
        try await withTestDatabase { db in
            try await withFolder { folder in
                for (name, text, query) in files {
                    let path = try folder.file(name, text)
                    let first = await martlet("import", path, "--renew-days", "30", "--json", on: db)
                    let count = name == "mixed.json" ? 2 : 1
                    #expect(
                        first.status == 0 && first.said.json?["new"]?.number == count,
                        "\(name) \(first.said.complaints)")
                    let second = await martlet("import", path, "--renew-days", "30", "--json", on: db)
                    #expect(second.said.json?["unchanged"]?.number == count && second.said.json?["new"]?.number == 0)
                    let page = try await PostgresSearch(db: db).search(
                        PostingSearch(q: query), after: nil, limit: 10, now: .now)
                    #expect(page.postings.count == 1, "\(query)")
                }
                let companies = try folder.file("companies.jsonl", Fixture.company.replacing("\n", with: "") + "\n")
                #expect(await martlet("import", companies, "--json", on: db).said.json?["new"]?.number == 1)
                #expect(await martlet("import", companies, "--json", on: db).said.json?["unchanged"]?.number == 1)
                let all = await martlet("import", folder.path, "--renew-days", "30", "--json", on: db)
                #expect(all.status == 0 && all.said.json?["unchanged"]?.number == 7)
            }
        }
    }

    @Test("bad records are refused with line and reason, and all others are stored")
    func badRecords() async throws {
        func row(_ number: Int, _ title: String) -> String {
            Fixture.usajobs.replacing("700000100", with: "70000\(number)").replacing(
                "\"Statistician <Senior> & Lead\"", with: title
            ).replacing("\n", with: "")
        }
        let large = String(repeating: "x", count: 10_000_000)
        let rows = [
            row(1, "\"Good one\""), row(2, "17"), row(3, "\"nul \\u0000 here\""), "42", row(4, "\"\(large)\""),
            row(5, "\"bad \\x escape\""), row(6, "\"Good two\""), row(1, "\"Same key\""), row(7, "\"UTF \u{1}\""),
            "{\"control_number\": }",
        ]
        try await withTestDatabase { db in
            try await withFolder { folder in
                let text =
                    "[" + (rows + [row(8, "\"broken @@\""), row(9, "\"Good three\"")]).joined(separator: ",\n") + "]"
                var bytes = Array(text.utf8)
                let at = try #require(bytes.indices.first { bytes[$0...].starts(with: "@@".utf8) })
                bytes[at] = 0xFF
                let path = folder.appending(path: "bad.json")
                try Data(bytes).write(to: path)
                let run = await martlet("import", path.path, "--renew-days", "30", "--json", on: db)
                let file = try #require(run.said.json?["files"]?.items.first)
                #expect(run.status == 0 && file["new"]?.number == 3 && file["repeated"]?.number == 1)
                let refusals = file["refusals"]?.items ?? []
                #expect(refusals.compactMap { $0["line"]?.number } == [2, 3, 4, 5, 6, 9, 10, 11])
                let reasons = refusals.compactMap { $0["reason"]?.string }
                let wanted = [
                    "position_title is a number", "control characters", "not an object", "bytes", "not JSON",
                    "not JSON", "not JSON", "UTF-8",
                ]
                #expect(
                    zip(reasons, wanted).allSatisfy { $0.contains($1) } && reasons.count == wanted.count, "\(reasons)")
                let words = await martlet("import", path.path, "--renew-days", "30", on: db)
                #expect(words.said.output.contains("3 unchanged, 1 repeated, 8 refused"))
                #expect(words.said.complaints.contains("bad.json:2: record 2 refused: position_title is a number"))
            }
        }
    }

    @Test("a truncated file is an error, but what it has is stored")
    func truncated() async throws {
        try await withTestDatabase { db in
            try await withFolder { folder in
                let text = "[\(Fixture.usajobs),\(Fixture.usajobs.replacing("700000100", with: "700000200"))"
                let path = try folder.file("cut.json", String(text.dropLast(40)))
                let run = await martlet("import", path, "--json", on: db)
                #expect(run.status == 1 && run.said.json?["new"]?.number == 1 && run.said.json?["refused"]?.number == 1)
            }
        }
    }

    @Test("closed postings are counted and said to be hidden; a dry run stores nothing")
    func expiredAndDry() async throws {
        try await withTestDatabase { db in
            try await withFolder { folder in
                let path = try folder.file("a.json", "[\(Fixture.usajobs)]")
                let dry = await martlet("import", path, "--dry-run", on: db)
                #expect(dry.status == 0 && dry.said.output.contains("Nothing stored (dry run): 1 record in"))
                let count: SQL = "SELECT count(*) FROM job_postings"
                #expect(try await db.short.first(count) { try $0.get(0, as: Int.self) } == 0)
                let run = await martlet("import", path, on: db)
                #expect(run.said.output.contains("1 has closed and is not found by search (--renew-days 30"))
                let search = PostgresSearch(db: db)
                let hidden = try await search.search(PostingSearch(q: "statistician"), after: nil, limit: 5, now: .now)
                #expect(hidden.postings.isEmpty)
                #expect(
                    await martlet("import", path, "--renew-days", "1", "--json", on: db).said.json?["updated"]?.number
                        == 1)
                let shown = try await search.search(PostingSearch(q: "statistician"), after: nil, limit: 5, now: .now)
                #expect(shown.postings.count == 1)
            }
        }
    }

    @Test("files that are not there, unknown formats and wrong options say what is wrong")
    func refusals() async throws {
        try await withFolder { folder in
            let unknown = try folder.file("unknown.json", "[{\"questions\":[]}]")
            #expect(await martlet(["import", "/nonexistent.json", "--dry-run"]).status == 1)
            let run = await martlet(["import", unknown, "--dry-run"])
            #expect(run.status == 1 && run.said.complaints.contains("--format"))
            #expect(await martlet(["import", folder.path, "--dry-run"]).said.output.contains("skipped"))
            #expect(await martlet(["import", unknown, "--format", "nonsense"]).status == 64)
            #expect(await martlet(["import", unknown, "--renew-days", "0"]).status == 64)
            #expect(await martlet(["import"]).status == 64)
            let empty = folder.appending(path: "empty")
            try FileManager.default.createDirectory(at: empty, withIntermediateDirectories: true)
            #expect(await martlet(["import", empty.path, "--dry-run"]).status == 1)
        }
    }

    @Test("where somebody looks there is one line of progress, cleared at the end; elsewhere none")
    func progress() async throws {
        try await withFolder { folder in
            let path = try folder.file("a.json", "[\(Fixture.usajobs)]")
            let watched = await martlet(["import", path, "--dry-run"], isWatched: true)
            #expect(watched.said.complaints.contains("\r1 record,") && watched.said.complaints.hasSuffix("\r\u{1B}[K"))
            #expect(await martlet(["import", path, "--dry-run"]).said.complaints == "")
        }
    }

    @Test("a batch that the database refuses is taken apart until only the record at fault is refused")
    func bisect() async throws {
        struct Picky: ImportRepository {
            func store(_ postings: [ImportedPosting]) async throws -> ImportCounts {
                if postings.contains(where: { $0.externalID == "700000137" }) {
                    throw AppError(.invalid, "not this one")
                }
                return ImportCounts(new: postings.count)
            }
            func store(_ companies: [ImportedCompany]) async throws -> ImportCounts { ImportCounts() }
            func finish() async throws {}
        }
        try await withFolder { folder in
            let rows = (100..<200).map { Fixture.usajobs.replacing("700000100", with: "700000\($0)") }
            let path = try folder.file("a.json", "[" + rows.joined(separator: ",") + "]")
            var importer = Importer(context: Fixture.context, forcedFormat: nil, repository: Picky()) { _ in }
            let report = try await importer.run(path: path)
            #expect(report.counts.new == 99 && report.refusals.map(\.index) == [38])
            #expect(report.refusals.first?.reason == "not this one")
        }
    }

    @Test("when the database goes away the import stops with an error, and says that it can be begun again")
    func outage() async throws {
        struct Away: ImportRepository {
            func store(_ postings: [ImportedPosting]) async throws -> ImportCounts { throw AppError.unavailable }
            func store(_ companies: [ImportedCompany]) async throws -> ImportCounts { throw AppError.unavailable }
            func finish() async throws {}
        }
        try await withFolder { folder in
            let path = try folder.file("a.json", "[\(Fixture.usajobs)]")
            var importer = Importer(context: Fixture.context, forcedFormat: nil, repository: Away()) { _ in }
            await #expect(throws: AppError.unavailable) { _ = try await importer.run(path: path) }
        }
    }
}

@Suite("Real data", .enabled(if: sharedData != nil))
struct SharedDataTests {
    @Test("every file of a known format imports whole, and again without a change; search finds them")
    func everything() async throws {
        let data = try #require(sharedData)
        // All but the large ones, which make bench imports: this build is not optimised.
        let names = [
            "ats-mixed/jobs.json", "companies", "github-jobs", "ats-fixtures", "usajobs/jobs_unknown.json",
            "usajobs/jobs_court_services_and_offender_supervision_agency_for_dc.json",
            "usajobs/jobs_national_foundation_on_the_arts_and_the_humanities.json",
        ]
        try await withTestDatabase(configure: patient) { db, _ in
            for again in [false, true] {
                for name in names {
                    let path = data.appending(path: name).path
                    let run = await martlet("import", path, "--renew-days", "30", "--json", on: db)
                    let json = try #require(run.said.json, "\(name) \(run.said.complaints)")
                    #expect(run.status == 0 && json["refused"]?.number == 0, "\(name) \(json.text.prefix(2000))")
                    #expect((json[again ? "unchanged" : "new"]?.number ?? 0) > 0)
                    #expect(json[again ? "new" : "unchanged"]?.number == 0 && json["updated"]?.number == 0, "\(name)")
                }
            }
            let search = PostgresSearch(db: db)
            for query in ["engineer", "python", "dentist", "attorney", "front desk", "c++"] {
                let page = try await search.search(PostingSearch(q: query), after: nil, limit: 5, now: .now)
                #expect(!page.postings.isEmpty, "\(query)")
            }
        }
    }

    @Test("titles that came as Latin-1 are mended, so that nothing of a real file is refused")
    func dryRun() async throws {
        let path = try #require(sharedData).appending(path: "usajobs/jobs_department_of_state.json").path
        let run = await martlet(["import", path, "--dry-run", "--json"])
        let json = try #require(run.said.json)
        #expect(run.status == 0 && json["refused"]?.number == 0 && json["new"]?.number == 2_045)
    }
}

/// For long batches of a build that is not optimised, on a machine that has other things to do.
private func patient(_ configuration: inout PostgresConfiguration) {
    configuration.leasedMax = 4
    configuration.leasedMilliseconds = 300_000
}
