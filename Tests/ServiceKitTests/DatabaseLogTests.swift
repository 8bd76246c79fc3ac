import Foundation
import Testing

@testable import Postgres
@testable import ServiceKit

@Suite("The driver's events in the log")
struct DatabaseLogTests {
    /// What was told of events, each in short.
    private final class Told {
        let clock = ManualClock()
        let events: DatabaseLog
        private let pipe = Pipe()
        private let sink: LogSink

        init() {
            sink = LogSink(descriptor: pipe.fileHandleForWriting.fileDescriptor)
            events = DatabaseLog(Log(service: "test", sink: sink), clock: clock)
        }

        func note(_ kind: PostgresEvent.Kind, _ lane: LaneKind = .short, times: Int = 1) {
            for _ in 0..<times { events.note(PostgresEvent(kind, lane, reason: "refused")) }
        }

        /// Ends the log: `level what-or-message lane left_out` of each line.
        func lines() throws -> [String] {
            sink.flush()
            try pipe.fileHandleForWriting.close()
            let lines = try pipe.fileHandleForReading.readToEnd()?.split(separator: UInt8(ascii: "\n")) ?? []
            return try lines.map { line in
                let fields = try #require(JSONSerialization.jsonObject(with: line) as? [String: Any])
                if let what = fields["what"] as? String, what != "connected", what != "listening" {
                    #expect(fields["reason"] as? String == "refused")
                }
                return [fields["level"], fields["what"] ?? fields["message"], fields["lane"], fields["left_out"]]
                    .compactMap { $0.map { "\($0)" } }.joined(separator: " ")
            }
        }
    }

    @Test("of a server that is away the first failure is told, then one in ten seconds with a count, and the end")
    func away() throws {
        let told = Told()
        told.note(.connected)
        told.note(.connectionLost)
        told.note(.connectFailed, times: 20)
        told.clock.advance(seconds: DatabaseLog.quietSeconds - 0.1)
        told.note(.connectFailed)
        told.clock.advance(seconds: 0.1)
        told.note(.connectFailed, times: 4)
        told.note(.connected, times: 3)
        #expect(
            try told.lines() == [
                "warning connection_lost short", "warning connect_failed short",
                "warning connect_failed short 20", "info the database answers again short 3",
            ])
    }

    @Test("each lane is told of by itself, and a pooler that was met at once")
    func lanes() throws {
        let told = Told()
        told.note(.connectFailed, .write, times: 2)
        told.note(.connectFailed, .listen, times: 2)
        told.note(.poolerMet, .listen, times: 2)
        told.note(.listening, .listen)
        told.note(.connected, .long)
        told.note(.connected, .write)
        #expect(
            try told.lines() == [
                "warning connect_failed write", "warning connect_failed listen",
                "error \(DatabaseSettings.poolerMet) listen 1", "info the database answers again listen 1",
                "info the database answers again write 1",
            ])
    }

    @Test("a server that comes and goes all the time has two lines in ten seconds, also after the clock was set back")
    func flapping() throws {
        let told = Told()
        for seconds in [1, 1, DatabaseLog.quietSeconds - 2, -3_600] {
            told.note(.connectionLost)
            told.note(.connected)
            told.clock.advance(seconds: seconds)
        }
        told.note(.connectionLost)
        #expect(
            try told.lines() == [
                "warning connection_lost short", "info the database answers again short",
                "warning connection_lost short 2", "info the database answers again short",
                "warning connection_lost short",
            ])
    }

    @Test("of libpq's words each server's stay, in one line, and its guesses go")
    func reasons() {
        let one =
            "connection to server at \"127.0.0.1\", port 1 failed: Connection refused\n\tIs the server running on"
            + " that host and accepting TCP/IP connections?\n"
        #expect(DatabaseLog.short(one) == "connection to server at \"127.0.0.1\", port 1 failed: Connection refused")
        #expect(DatabaseLog.short("a failed: x\n\tperhaps\nb failed: y") == "a failed: x; b failed: y")
        #expect(DatabaseLog.short("the server is silent") == "the server is silent" && DatabaseLog.short("") == "")
    }
}
