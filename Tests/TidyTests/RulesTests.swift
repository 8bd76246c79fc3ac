import Testing

/// Each rule is shown something bad, or it could pass by finding nothing at all.
@Suite("The house rules find what they are for")
struct RulesTests {
    private func swift(_ text: String, path: String = "Sources/Example/Example.swift") -> SwiftText {
        SwiftText(path: path, text: text)
    }

    private let manifest = PackageManifest(
        text: """
            // module("Old", ["Core"])
            module("GatewayApp", ["Core", "CorePostgres"]),
            module("Core", []), module("CoreHTTP", ["Core"], settings: [.x]),
            program(
                "martlet-gateway",
                ["Core", "GatewayApp"]),
            library("Cpq", pkgConfig: "libpq"),
            .target(
                name: "TestSupport", dependencies: ["Core", "Cpq"], path: "Tests/TestSupport"),
            .target(name: "Cllhttp", path: "Sources/Cllhttp"),
            """)

    @Test("the manifest's helper calls are read, its comments are not")
    func manifestIsRead() {
        #expect(manifest.dependencies["martlet-gateway"] == ["Core", "GatewayApp"])
        #expect(manifest.dependencies["TestSupport"] == ["Core", "Cpq"])
        #expect(manifest.dependencies["CoreHTTP"] == ["Core"])
        #expect(manifest.dependencies["Cpq"] == [] && manifest.dependencies["Cllhttp"] == [])
        #expect(manifest.dependencies["Old"] == nil)
    }

    @Test(
        "an import is refused when it is not listed, or passes a door",
        arguments: [
            ("GatewayApp", "import CoreHTTP"), ("GatewayApp", "@testable import CoreHTTP"),
            ("GatewayApp", "public import struct CoreHTTP.Thing"), ("GatewayApp", "import CorePostgres"),
            ("GatewayApp", "import Cpq"), ("GatewayApp", "import ChatApp"), ("Core", "import Synchronization"),
            ("CoreHTTP", "import Glibc"), ("Cpq", "import Foundation"), ("Nowhere", "import Core"),
        ])
    func importsRefused(target: String, line: String) {
        #expect(DoorRules.check(swift(line), target: target, manifest: manifest).count == 1)
    }

    @Test(
        "an import is taken when it is listed or the toolchain's",
        arguments: [
            ("GatewayApp", "import Core\nimport Foundation"), ("TestSupport", "import Cpq\nimport Glibc"),
            ("CoreHTTP", "// import CorePostgres\nlet text = \"import Cpq\""), ("Core", "import Foundation"),
        ])
    func importsTaken(target: String, text: String) {
        #expect(DoorRules.check(swift(text), target: target, manifest: manifest).isEmpty)
    }

    @Test("121 columns, 401 lines and 71 lines of function are too many; one less is not")
    func sizes() {
        func columns(_ count: Int) -> [Finding] {
            SizeRules.check(path: "a", lines: [Substring(repeating: "x", count: count)])
        }
        func lines(_ count: Int) -> [Finding] {
            SizeRules.check(path: "a", lines: Array(repeating: "x", count: count) + [""])
        }
        func function(_ count: Int, _ head: String) -> [Finding] {
            let body = String(repeating: "    work { \"}\" }\n", count: count - 2)
            return SizeRules.checkFunctions(swift("struct A {\n\(head) {\n\(body)}\n}\n"))
        }
        #expect(columns(121).count == 1 && columns(120).isEmpty)
        #expect(lines(401).count == 1 && lines(400).isEmpty)
        let heads = [
            "func a(b: () -> Void = { }) -> [Int]", "init(a: Int)", "init?(a: Int)", "deinit",
            "subscript(a: Int) -> Int",
        ]
        for head in heads {
            #expect(function(71, head).count == 1, "\(head)")
            #expect(function(70, head).isEmpty, "\(head)")
        }
    }

    @Test("a protocol's requirement does not borrow the body of what follows")
    func requirement() {
        let body = String(repeating: "    a()\n", count: 100)
        let text = "protocol P {\n    func a() async throws -> Int\n}\nlet c = A.init(b) {\n\(body)}\n"
        #expect(SizeRules.checkFunctions(swift(text)).isEmpty)
    }

    @Test(
        "what ends the process is found",
        arguments: [
            "let a = try! b()", "let a = b as! Int", "fatalError(\"no\")", "a!.b()", "let c = a[0]!", "f()!",
            "var a: Int!", "print(\"\\(a!)\")",
        ])
    func crashesFound(line: String) {
        #expect(!WordRules.crashes(swift(line)).isEmpty)
    }

    @Test(
        "what only looks like it is not",
        arguments: [
            "if !a { }", "a != b", "guard a!=b", "// try! this", "let a = \"Hello, world! as! one\"", "#if !os(macOS)",
            "/* a! /* b! */ c! */", "let a = #\"x\"!\"#", "return !isEmpty && !done",
            "let a = \"\"\"\n  no! \"no!\"\n  \"\"\"",
        ])
    func crashesNotFound(line: String) {
        #expect(WordRules.crashes(swift(line)).isEmpty)
    }

    @Test("@unchecked Sendable is found outside the event loop, and let be inside")
    func unchecked() {
        let text = "final class A: @unchecked Sendable {}"
        #expect(WordRules.uncheckedSendable(swift(text)).count == 1)
        #expect(WordRules.uncheckedSendable(swift(text, path: "Sources/EventLoop/A.swift")).isEmpty)
    }

    @Test("a type named Job is found, one with more to its name is not")
    func jobs() {
        #expect(WordRules.typesNamedJob(swift("public struct Job {")).count == 1)
        #expect(WordRules.typesNamedJob(swift("typealias Jobs = Int")).count == 1)
        #expect(WordRules.typesNamedJob(swift("struct JobPosting {}\nlet job: ExecutorJob")).isEmpty)
    }

    @Test("sleeping is found, words about it are not")
    func sleeps() {
        let lines = [
            "try await Task.sleep(for: .seconds(1))", "Thread.sleep(forTimeInterval: 1)", "usleep(3)", " sleep(1)",
        ]
        for line in lines {
            #expect(WordRules.sleeps(swift(line)).count == 1, "\(line)")
        }
        #expect(WordRules.sleeps(swift("clock.sleep(1) // Task.sleep\nlet sleeper = \"sleep(1)\"")).isEmpty)
    }

    @Test(
        "SQL in a literal is found, prose is not",
        arguments: [
            ("SELECT id\nFROM users ", 1), ("INSERT INTO users (id)", 1), ("UPDATE users SET name = 1", 1),
            ("DELETE FROM users ", 1), ("Update the users from there", 0), ("SELECT one of these", 0),
        ])
    func sql(literal: String, count: Int) {
        let text = "let a = \"\"\"\n\(literal)\n\"\"\""
        #expect(WordRules.sql(swift(text)).count == count)
        #expect(WordRules.sql(swift(text, path: "Sources/CorePostgres/A.swift")).isEmpty)
    }

    @Test("unfinished work is found in any text")
    func unfinished() {
        #expect(WordRules.unfinished(path: "a", lines: ["# TO" + "DO: later", "fine"]).count == 1)
        #expect(WordRules.unfinished(path: "a", lines: ["// FIX" + "ME"]).count == 1)
    }

    @Test("a migration without a proper name, an up, a down or a statement is found")
    func migrations() {
        let good = "-- migrate:up\nCREATE TABLE a ();\n-- migrate:down\nDROP TABLE a;\n"
        let name = "20261201090000_create_users.sql"
        #expect(MigrationRules.check(name: name, text: good).isEmpty)
        #expect(MigrationRules.check(name: "2026_create_users.sql", text: good).count == 1)
        #expect(MigrationRules.check(name: "20261201090000_Users.sql", text: good).count == 1)
        #expect(MigrationRules.check(name: name, text: "CREATE TABLE a ();").count == 1)
        #expect(MigrationRules.check(name: name, text: "-- migrate:down\nx\n-- migrate:up\ny").count == 1)
        #expect(MigrationRules.check(name: name, text: "-- migrate:up\nx;\n-- migrate:down\n-- none\n").count == 1)
        let names = [name, "20261201090000_more.sql", "20261202090000_b.sql"]
        #expect(MigrationRules.checkVersions(names: names).count == 1)
    }

    @Test(
        "what the last release could not live with is found in a new migration, and what it could is not",
        arguments: [
            ("DROP TABLE a;", 1), ("ALTER TABLE a DROP COLUMN b;", 1), ("ALTER TABLE a RENAME COLUMN b TO c;", 1),
            ("ALTER TABLE a RENAME TO b;", 1), ("ALTER TABLE a RENAME CONSTRAINT b TO c;", 0),
            ("ALTER INDEX a RENAME TO b;", 0), ("ALTER TABLE a ALTER COLUMN b SET NOT NULL;", 1),
            ("ALTER TABLE a ADD COLUMN b int;", 0), ("ALTER TABLE a ADD COLUMN b int NOT NULL;", 1),
            ("ALTER TABLE a ADD COLUMN b int NOT NULL DEFAULT 1;", 0), ("ALTER TABLE a ALTER COLUMN b TYPE int;", 1),
            ("ALTER TABLE a ADD CONSTRAINT b CHECK (c > 1);", 1),
            ("ALTER TABLE a ADD CONSTRAINT b CHECK (c > 1) NOT VALID;", 0),
            ("ALTER TABLE a ADD CONSTRAINT b UNIQUE (c);", 1),
            ("ALTER TABLE a ADD CONSTRAINT b UNIQUE USING INDEX c;", 0), ("CREATE INDEX a ON b (c);", 1),
            ("CREATE INDEX CONCURRENTLY a ON b (c);", 0),
            ("CREATE TABLE b (c int);\nCREATE UNIQUE INDEX a ON b (c);", 0),
            ("UPDATE a SET b = 1;", 1), ("DELETE FROM a\n  WHERE b;", 1), ("LOCK TABLE a;", 1),
            ("CREATE FUNCTION f() RETURNS void LANGUAGE sql AS $$\n  UPDATE a SET b = 1;\n$$;\nDROP TABLE c;", 1),
            ("-- safe: nobody reads it since 0.1.\nDROP TABLE a;", 0),
            ("-- safe: nobody reads it since 0.1.\nDROP TABLE a;\nDROP TABLE b;", 1),
        ])
    func expand(up: String, findings: Int) {
        let text = "-- migrate:up\n\(up)\n-- migrate:down\nDROP TABLE z;\n"
        #expect(ExpandRules.check(name: "20270101000000_a.sql", text: text).count == findings)
        #expect(ExpandRules.check(name: "20261201091900_a.sql", text: text).isEmpty)
    }
}
