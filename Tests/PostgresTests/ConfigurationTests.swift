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
        let targets = try plan.resolved()
        #expect(targets.first == Target(host: "127.0.0.2", address: "127.0.0.2", port: "1"))
        #expect(targets.contains(Target(host: "localhost", address: "127.0.0.1", port: "2")))
        let parameters = plan.parameters(targets, for: .write)
        func value(_ keyword: String) -> String { parameters.first { $0.keyword == keyword }?.value ?? "" }
        #expect(value("host").hasPrefix("127.0.0.2,localhost") && value("port").hasPrefix("1,2"))
        #expect(value("hostaddr").split(separator: ",").count == targets.count)
    }

    @Test("a server whose name is gone is left out while another one is known")
    func resolvesTheOthers() throws {
        let plan = ConnectionPlan(try PostgresConfiguration(url: "postgres://no-such-host.invalid:1,127.0.0.2:2/d"))
        #expect(try plan.resolved() == [Target(host: "127.0.0.2", address: "127.0.0.2", port: "2")])
        let nobody = ConnectionPlan(try PostgresConfiguration(url: "postgres://no-such-host.invalid,other.invalid/d"))
        #expect(throws: PostgresConfigurationError.self) { try nobody.resolved() }
    }

    @Test("the next attempt begins with the next server, however many lanes failed, and forgets none")
    func turns() throws {
        let url = "postgres://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3/d"
        let resolver = Resolver(ConnectionPlan(try PostgresConfiguration(url: url)))
        func ports() throws -> [String] { try #require(resolver.ready(for: .write)).targets.map(\.port) }
        let one = try #require(resolver.ready(for: .write))
        let other = try #require(resolver.ready(for: .short))
        #expect(try ports() == ["1", "2", "3"])
        one.failed()
        other.failed()
        #expect(try ports() == ["2", "3", "1"])
        try #require(resolver.ready(for: .write)).failed()
        #expect(try ports() == ["3", "1", "2"])
        let lone = Resolver(ConnectionPlan(try PostgresConfiguration(url: "postgres://127.0.0.1:1/d")))
        try #require(lone.ready(for: .write)).failed()
        #expect(try #require(lone.ready(for: .write)).parameters.contains { $0.keyword == "port" && $0.value == "1" })
    }

    @Test("read-write is asked for where we write; lanes that are read-only by our own wish ask for a primary")
    func attributes() throws {
        let url = "postgres://127.0.0.1:1,127.0.0.1:2/d?target_session_attrs=read-write"
        func asked(_ lane: LaneKind, pooled: Bool = false) throws -> String? {
            let plan = ConnectionPlan(try PostgresConfiguration(url: url, isPooled: pooled))
            return plan.parameters(try plan.resolved(), for: lane).first { $0.keyword == "target_session_attrs" }?.value
        }
        #expect(try asked(.write) == "read-write" && asked(.leased) == "read-write" && asked(.listen) == "read-write")
        #expect(try asked(.short) == "primary" && asked(.long) == "primary")
        #expect(try asked(.short, pooled: true) == "read-write")
    }

    @Test(
        "servers that could not serve, and lists that do not fit, are refused at once",
        arguments: [
            ("postgres://a,b/d?target_session_attrs=read-write", true),
            ("postgres://a,b/d?target_session_attrs=primary", true), ("postgres://a/d?target_session_attrs=any", true),
            ("postgres://a,b/d?target_session_attrs=any", false),
            ("postgres://a/d?target_session_attrs=standby", false),
            ("postgres://a,b/d?target_session_attrs=prefer-standby", false),
            ("postgres://a/d?target_session_attrs=nonsense", false),
            ("postgres://a:1,b:2/d", true), ("host=a,b port=1", true), ("host=a,b,c port=1,2", false),
            ("host=a,b hostaddr=127.0.0.1", false),
        ])
    func servers(url: String, isFine: Bool) {
        #expect(((try? PostgresConfiguration(url: url)) != nil) == isFine)
    }

    @Test("lanes ask for their own sessions, and what the URL says comes last")
    func sessions() throws {
        var configuration = try PostgresConfiguration(url: "postgres://127.0.0.1/d?options=-c%20jit%3Doff")
        configuration.lockMilliseconds = 77
        let plan = ConnectionPlan(configuration)
        func options(_ lane: LaneKind) -> String {
            plan.parameters(try! plan.resolved(), for: lane)
                .first { $0.keyword == "options" }!.value
        }
        #expect(options(.short).contains("statement_timeout=100 ") && options(.short).contains("read_only=on"))
        #expect(options(.short).hasSuffix("-c jit=off") && options(.write).contains("lock_timeout=77"))
        #expect(!options(.write).contains("read_only"))
        configuration.isPooled = true
        let pooled = ConnectionPlan(configuration).parameters([], for: .short)
        // Only what the URL itself says.
        #expect(pooled.first { $0.keyword == "options" }?.value == "-c jit=off")
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
