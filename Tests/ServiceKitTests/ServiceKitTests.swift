import Foundation
import Synchronization
import Testing

@testable import ServiceKit

@Suite("Configuration")
struct EnvironmentTests {
    private enum Colour: String, CaseIterable { case red, blue }

    @Test("values, defaults and choices are read")
    func values() throws {
        var environment = Environment(["A": "x", "N": "7", "B": "off", "C": "blue", "U": "https://a.example/", "E": ""])
        #expect(environment.string("A") == "x")
        #expect(environment.string("E", default: "fallback") == "fallback")
        #expect(environment.int("N", default: 1, in: 1...9) == 7)
        #expect(environment.bool("B", default: true) == false)
        #expect(environment.choice("C", default: Colour.red) == .blue)
        #expect(environment.webURL("U") == "https://a.example")
        #expect(environment.address("X", default: "127.0.0.1:80").port == 80)
        try environment.check()
    }

    @Test("all mistakes are told at once, each with its name")
    func mistakes() {
        var environment = Environment([
            "N": "10", "B": "maybe", "C": "green", "U": "ftp://x", "S": "short", "H": "host:1",
        ])
        _ = environment.string("MISSING")
        _ = environment.int("N", default: 1, in: 1...9)
        _ = environment.bool("B", default: true)
        _ = environment.choice("C", default: Colour.red)
        _ = environment.webURL("U")
        _ = environment.secret("S", bytesMin: 32)
        _ = environment.address("H", default: ":1")
        let error = #expect(throws: ConfigurationError.self) { try environment.check() }
        #expect(error?.mistakes.count == 7)
        for name in ["MISSING", "N ", "B ", "C ", "U ", "S ", "H "] {
            #expect(error?.description.contains(name) == true)
        }
        #expect(error?.description.contains("short") == false)
    }

    @Test("what another module refuses is one mistake among the others, and what it takes or is not set is none")
    func verify() {
        struct Wrong: Error, CustomStringConvertible { let description = "no such thing" }
        var environment = Environment(["A": "bad", "B": "good"])
        for name in ["A", "B", "C"] { environment.verify(name) { if $0 != "good" { throw Wrong() } } }
        _ = environment.string("MISSING")
        let error = #expect(throws: ConfigurationError.self) { try environment.check() }
        #expect(error?.mistakes == ["A: no such thing", "MISSING is not set"])
    }

    @Test("NAME_FILE gives a value by a file, without its last line end; a missing file is a mistake")
    func files() throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("secret-\(UUID())").path
        try Data("0123456789abcdef0123456789abcdef\n".utf8).write(to: URL(fileURLWithPath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        let folder = FileManager.default.temporaryDirectory.path
        var environment = Environment(["S_FILE": path, "T_FILE": path + "-missing", "U_FILE": folder])
        let secret = environment.secret("S", bytesMin: 32)
        #expect(secret.value.count == 32)
        #expect("\(secret)" == "•••" && String(reflecting: secret) == "•••")
        for _ in 0..<2 { _ = environment.secret("T", bytesMin: 32) }
        #expect(environment.string("T", default: "else") == "else" && environment.value("U") == nil)
        let error = #expect(throws: ConfigurationError.self) { try environment.check() }
        #expect(
            error?.mistakes == [
                "T_FILE names \(path)-missing, which cannot be read: No such file or directory",
                "U_FILE names \(folder), which cannot be read: it is no file",
            ])
    }

    @Test("a value beside a file that is to hold it is a mistake that names both; an empty one beside it is none")
    func bothSet() throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("both-\(UUID())").path
        try Data("7\n".utf8).write(to: URL(fileURLWithPath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        var fine = Environment(["N": "", "N_FILE": path, "B": "on", "B_FILE": ""])
        #expect(fine.int("N", default: 1, in: 1...9) == 7 && fine.bool("B", default: false))
        try fine.check()
        var environment = Environment(["N": "8", "N_FILE": path, "B": "on", "B_FILE": path + "-missing"])
        _ = environment.int("N", default: 1, in: 1...9)
        _ = environment.bool("B", default: false)
        let error = #expect(throws: ConfigurationError.self) { try environment.check() }
        #expect(
            error?.mistakes == [
                "N and N_FILE are both set; take one of them away", "B and B_FILE are both set; take one of them away",
            ])
    }

    @Test("files of settings that nobody has read yet are tried by the names' beginning")
    func triedFiles() {
        var environment = Environment(["A_X_FILE": "/nowhere/x", "A_Y": "1", "A_Y_FILE": "/nowhere/y", "B_FILE": "/b"])
        environment.tryFiles(ofNamesWith: "A_")
        let error = #expect(throws: ConfigurationError.self) { try environment.check() }
        #expect(error?.mistakes.map { $0.prefix(4) } == ["A_X_", "A_Y "])
    }

    @Test("an empty file is as none, and of what is required a mistake")
    func emptyFiles() throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("empty-\(UUID())").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        for content in ["", "\n"] {
            try Data(content.utf8).write(to: URL(fileURLWithPath: path))
            var environment = Environment(["S_FILE": path])
            #expect(environment.value("S") == nil && environment.string("S", default: "none") == "none")
            try environment.check()
            _ = environment.secret("S", bytesMin: 32)
            let error = #expect(throws: ConfigurationError.self) { try environment.check() }
            #expect(error?.mistakes == ["S is not set"])
        }
    }
}

@Suite("Metrics, health, clock and log")
struct InstrumentTests {
    @Test("metrics print in Prometheus' format, labels escaped")
    func metrics() {
        let metrics = Metrics()
        metrics.counter("a_total", "Things.", labels: ["kind": "x\"y"]).add(2)
        metrics.counter("a_total", "Things.", labels: ["kind": "x\"y"]).add()
        metrics.gauge("b", "Level.").set(-1)
        metrics.histogram("c_seconds", "Time.").record(0.0006)
        let text = metrics.text()
        #expect(text.contains("# TYPE a_total counter\na_total{kind=\"x\\\"y\"} 3\n"))
        #expect(text.contains("b -1\n"))
        #expect(text.contains("c_seconds_bucket{le=\"0.0005\"} 0\nc_seconds_bucket{le=\"0.001\"} 1\n"))
        #expect(text.contains("c_seconds_count 1\n"))
    }

    @Test("ready only when every check holds, not while starting, and never once stopping")
    func health() {
        let health = Health()
        health.setStarting(true)
        #expect(health.problems().map(\.problem) == ["starting"])
        health.setStarting(false)
        #expect(health.problems().isEmpty)
        health.require("database") { "not reachable" }
        #expect(health.problems().map(\.name) == ["database"])
        health.stop()
        #expect(health.problems().map(\.name) == ["process", "database"])
    }

    @Test("SIGTERM ends a service that is still starting, and is no failure; what cannot start is one")
    func endedWhileStarting() async {
        struct Unfit: Error {}
        let stops = Mutex(0)
        func run(_ start: @escaping @Sendable (ServiceContext) async throws -> Void) async -> Int32 {
            let settings = ["MARTLET_LOOPS": "1", "MARTLET_LOG_LEVEL": "error"]
            return await ServiceRunner.run("starting", "", environment: settings, arguments: []) { context, _ in
                Service(start: { try await start(context) }, stop: { _ in stops.withLock { $0 += 1 } })
            }
        }
        let ended = await run { context in
            kill(getpid(), SIGTERM)
            try await context.clock.sleep(seconds: 3_600)
        }
        #expect(ended == 0 && stops.withLock { $0 } == 1)
        let unfit = await run { _ in throw Unfit() }
        #expect(unfit == 1 && stops.withLock { $0 } == 1)
    }

    @Test("a manual clock wakes whoever's time has come, and a cancelled sleeper at once")
    func clock() async throws {
        let clock = ManualClock()
        let before = clock.now()
        try await clock.sleep(seconds: 0)
        let sleeper = Task { try await clock.sleep(seconds: 5) }
        sleeper.cancel()
        await #expect(throws: CancellationError.self) { try await sleeper.value }
        clock.advance(seconds: 3)
        #expect(clock.now() == before + 3)
    }

    @Test("a line of the log is one JSON object, with control characters escaped")
    func log() throws {
        let pipe = Pipe()
        let sink = LogSink(descriptor: pipe.fileHandleForWriting.fileDescriptor)
        let log = Log(service: "test", sink: sink, now: { Date(timeIntervalSince1970: 0) })
        log.debug("hidden")
        log.with(["a": 1]).info("said", ["text": "two\nlines \u{1}\"", "ok": true])
        sink.flush()
        try pipe.fileHandleForWriting.close()
        let data = try #require(try pipe.fileHandleForReading.readToEnd())
        let object = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
        #expect(object["message"] as? String == "said")
        #expect(object["text"] as? String == "two\nlines \u{1}\"")
        #expect(object["a"] as? Int == 1)
        #expect(object["time"] as? String == "1970-01-01T00:00:00.000Z")
    }
}
