import Testing

@Suite("The repository keeps its house rules")
struct RepositoryTests {
    private let repository = Repository.current

    private func expectNone(_ findings: [Finding]) {
        for finding in findings { Issue.record("\(finding)") }
    }

    private func files(under folder: String) -> [SwiftText] {
        repository.swiftFiles.filter { $0.path.hasPrefix(folder + "/") }
    }

    @Test("the checkout is found, with sources and a manifest to compare")
    func found() {
        #expect(files(under: "Sources").count > 10)
        #expect(repository.manifest.dependencies["GatewayApp"]?.contains("Core") == true)
        #expect(repository.codeFiles.contains { $0.path == "ops/scripts/postgres" && $0.lines.count > 10 })
    }

    @Test("every folder of Sources and Tests is a target, and every target a folder")
    func targets() {
        let folders = repository.folders(in: "Sources").union(repository.folders(in: "Tests"))
        // Clients are written in Python.
        #expect(folders.subtracting(["Clients"]) == Set(repository.manifest.dependencies.keys))
    }

    @Test("every import is a dependency that Package.swift lists, and the doors are shut")
    func doors() {
        for file in repository.swiftFiles {
            let target = file.path.split(separator: "/")[1]
            expectNone(DoorRules.check(file, target: String(target), manifest: repository.manifest))
        }
    }

    @Test("lines, functions, files and mains keep to their sizes")
    func sizes() {
        for file in repository.codeFiles {
            // A migration is one step however long it is; parts of it would be steps that nobody may stop between.
            let linesMax = file.path.hasPrefix("migrations/") ? Int.max : SizeRules.fileLinesMax
            expectNone(SizeRules.check(path: file.path, lines: file.lines, linesMax: linesMax))
        }
        for file in repository.swiftFiles { expectNone(SizeRules.checkFunctions(file)) }
        for file in files(under: "Sources") where file.codeLines.contains(where: { $0.contains("@main") }) {
            expectNone(SizeRules.check(path: file.path, lines: file.lines, linesMax: SizeRules.mainLinesMax))
        }
    }

    @Test("nothing is unchecked outside the event loop")
    func uncheckedSendable() {
        for file in repository.swiftFiles { expectNone(WordRules.uncheckedSendable(file)) }
    }

    @Test("no source ends the process on a value that was not foreseen")
    func crashes() {
        for file in files(under: "Sources") { expectNone(WordRules.crashes(file)) }
    }

    @Test("no type is just a job")
    func words() {
        for file in repository.swiftFiles { expectNone(WordRules.typesNamedJob(file)) }
    }

    @Test("no test waits on a clock")
    func sleeps() {
        for file in files(under: "Tests") { expectNone(WordRules.sleeps(file)) }
    }

    @Test("SQL is written in CorePostgres and the driver only")
    func sql() {
        for file in files(under: "Sources") { expectNone(WordRules.sql(file)) }
    }

    @Test("no unfinished work is left in comments")
    func unfinished() {
        for file in repository.codeFiles { expectNone(WordRules.unfinished(path: file.path, lines: file.lines)) }
    }

    @Test("migrations are dbmate's: named by time, with an up and a down")
    func migrations() {
        for migration in repository.migrations {
            expectNone(MigrationRules.check(name: migration.name, text: migration.text))
            expectNone(ExpandRules.check(name: migration.name, text: migration.text))
        }
        expectNone(MigrationRules.checkVersions(names: repository.migrations.map(\.name)))
    }
}
