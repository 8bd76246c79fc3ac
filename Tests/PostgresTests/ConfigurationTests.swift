import EventLoop
import Foundation
import Testing

@testable import Postgres

@Suite("Connection strings")
struct ConfigurationTests {
    @Test("a URL and libpq's own form say the same; the password is in no description")
    func parses() throws {
        for text in [
            "postgres://martlet:s3cr%20et@db.example.com:5433/jobs?sslmode=require",
            "host=db.example.com port=5433 user=martlet password='s3cr et' dbname=jobs sslmode=require",
        ] {
            let configuration = try PostgresConfiguration(url: text)
            #expect(configuration.description == "postgres martlet@db.example.com:5433/jobs")
            #expect(configuration.parameters["password"] == "s3cr et")
            #expect(configuration.parameters["sslmode"] == "require")
            var dumped = "\(configuration) \(String(reflecting: configuration)) \([configuration])"
            dump(configuration, to: &dumped)
            #expect(!dumped.contains("s3cr"))
        }
    }

    @Test(
        "what is no connection string is refused, without repeating it",
        arguments: [
            "", "nonsense", "postgres://u:s3cret@h/%zz", "postgres://u:s3cret@h/d?no_such_option=1",
            "http://u:s3cret@h/d",
            "postgres://u:s3cret@[::1/d", "host=h password='s3cret", "postgres://u:s3cret@h/d\0",
        ])
    func refuses(text: String) {
        let error = #expect(throws: PostgresConfigurationError.self) { try PostgresConfiguration(url: text) }
        #expect(error?.description.contains("s3cret") == false)
        #expect(error?.description.count ?? 0 > 40)
    }

    @Test("another database keeps everything else")
    func withDatabase() throws {
        var configuration = try PostgresConfiguration(url: "postgres://u@h/a")
        configuration.writeMax = 9
        let other = try configuration.with(database: "b")
        #expect(other.database == "b" && other.host == "h" && other.writeMax == 9)
        #expect(throws: PostgresConfigurationError.self) { try configuration.with(database: "") }
    }

    @Test(
        "names need looking up; numbers and sockets do not",
        arguments: [
            ("postgres://h/d", true), ("postgres://127.0.0.1/d", false), ("postgres://[::1]/d", false),
            ("postgres:///d?host=/run/postgresql", false), ("host=h hostaddr=10.0.0.1", false),
            ("postgres://127.0.0.1,h/d", true), ("postgres:///d", false),
        ])
    func resolving(url: String, needed: Bool) throws {
        #expect(ConnectionPlan(try PostgresConfiguration(url: url)).needsResolving == needed)
    }

    @Test("each host is replaced by all of its addresses, with its own port")
    func resolves() throws {
        let plan = ConnectionPlan(try PostgresConfiguration(url: "postgres://127.0.0.2:1,localhost:2/d"))
        let parameters = try plan.resolved()
        let addresses = parameters["hostaddr"]!.split(separator: ",")
        #expect(addresses.first == "127.0.0.2" && addresses.contains("127.0.0.1"))
        #expect(parameters["host"]!.hasPrefix("127.0.0.2,localhost"))
        #expect(parameters["port"]!.split(separator: ",").count == addresses.count)
        #expect(parameters["port"]!.hasPrefix("1,2"))
    }

    @Test("lanes ask for their own sessions, and what the URL says comes last")
    func sessions() throws {
        var configuration = try PostgresConfiguration(url: "postgres://127.0.0.1/d?options=-c%20jit%3Doff")
        configuration.lockMilliseconds = 77
        let plan = ConnectionPlan(configuration)
        func options(_ lane: LaneKind) -> String {
            plan.parameters([:].merging(try! plan.resolved()) { $1 }, for: lane)
                .first { $0.keyword == "options" }!.value
        }
        #expect(options(.short).contains("statement_timeout=100 ") && options(.short).contains("read_only=on"))
        #expect(options(.short).hasSuffix("-c jit=off") && options(.write).contains("lock_timeout=77"))
        #expect(!options(.write).contains("read_only"))
        configuration.isPooled = true
        #expect(!ConnectionPlan(configuration).parameters([:], for: .short).contains { $0.keyword == "options" })
    }

    @Test("past a pooler there is another way, or none")
    func direct() throws {
        let plain = try PostgresConfiguration(url: "postgres://127.0.0.1:1/d")
        #expect(plain.direct?.description == plain.description)
        let pooled = try PostgresConfiguration(url: "postgres://127.0.0.1:1/d", isPooled: true)
        #expect(pooled.direct == nil)
        var both = try PostgresConfiguration(
            url: "postgres://127.0.0.1:1/d", directURL: "postgres://127.0.0.1:2/d", isPooled: true)
        both.lockMilliseconds = 77
        let direct = try #require(try both.with(database: "e").direct)
        #expect(direct.description == "postgres @127.0.0.1:2/e" && !direct.isPooled && direct.lockMilliseconds == 77)
        #expect(direct.direct?.description == direct.description)
        #expect(throws: PostgresConfigurationError.self) {
            try PostgresConfiguration(url: "postgres://127.0.0.1:1/d", directURL: "nonsense=", isPooled: true)
        }
    }

    @Test(
        "a pooler is known by what it does to start-up options",
        arguments: [
            ("FATAL:  unsupported startup parameter: options", true), (PoolerSign.dropped, true),
            ("connection refused", false), ("FATAL:  password authentication failed", false),
        ])
    func sign(reason: String, isPooler: Bool) { #expect(PoolerSign.isIn(reason) == isPooler) }
}
