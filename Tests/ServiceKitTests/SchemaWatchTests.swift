import Synchronization
import TestSupport
import Testing

@testable import ServiceKit

@Suite("The schema beside the program")
struct SchemaWatchTests {
    private struct Away: Error {}

    /// Says what it is told to say; nil: it is away.
    private final class Said: Sendable {
        let found = Mutex<(isApplied: Bool, newest: String?)?>(nil)

        func say(_ found: (isApplied: Bool, newest: String?)?) { self.found.withLock { $0 = found } }

        func read() throws -> (isApplied: Bool, newest: String?) {
            guard let found = found.withLock({ $0 }) else { throw Away() }
            return found
        }
    }

    private func watch(_ said: Said, _ health: Health, clock: ManualClock = ManualClock()) -> SchemaWatch {
        let watch = SchemaWatch(
            version: "20260105", look: { try said.read() }, clock: clock,
            log: Log(service: "test", level: .error, format: .json, sink: LogSink(discarding: true)))
        watch.begin(health)
        return watch
    }

    @Test("a schema that is not known, not there or older keeps a process from its work, with what to do")
    func older() async {
        let (said, health) = (Said(), Health())
        let watch = watch(said, health)
        #expect(health.problems().map(\.problem) == ["the schema has not been read yet"])
        await watch.lookOnce()
        #expect(health.problems().map(\.problem) == ["the schema has not been read yet"])
        said.say((isApplied: false, newest: nil))
        await watch.lookOnce()
        #expect(
            health.problems().map(\.problem)
                == ["the schema is older than this program (there is none): run martlet migrate"])
        said.say((isApplied: false, newest: "20260104"))
        await watch.lookOnce()
        #expect(
            health.problems().map(\.problem) == [
                "the schema is older than this program (20260104, it needs 20260105): run martlet migrate"
            ])
        #expect(health.remarks().isEmpty)
        said.say((isApplied: true, newest: "20260105"))
        await watch.lookOnce()
        #expect(health.problems().isEmpty && health.remarks().isEmpty)
    }

    @Test("a newer schema is told and keeps nobody from work, also while the database is away after that")
    func newer() async {
        let (said, health) = (Said(), Health())
        let watch = watch(said, health)
        said.say((isApplied: true, newest: "20260106"))
        await watch.lookOnce()
        said.say(nil)
        await watch.lookOnce()
        #expect(health.problems().isEmpty)
        let remarks = health.remarks()
        #expect(remarks.map(\.name) == ["schema"] && remarks[0].problem.contains("newer than this program (20260106"))
        // One that has a newer migration without ours came another way: what we need is not there.
        said.say((isApplied: false, newest: "20260106"))
        await watch.lookOnce()
        #expect(health.problems().map(\.name) == ["schema"])
    }

    @Test("it looks once the process starts, again each second until it may work, and then each minute")
    func paces() async throws {
        let (health, clock) = (Health(), ManualClock())
        let (looks, told) = AsyncStream<Void>.makeStream()
        let said = Said()
        said.say((isApplied: false, newest: nil))
        let watch = SchemaWatch(
            version: "20260105",
            look: {
                told.yield()
                return try said.read()
            }, clock: clock,
            log: Log(service: "test", level: .error, format: .json, sink: LogSink(discarding: true)))
        watch.begin(health)
        #expect(clock.sleepers == 0)
        health.setStarting(true)
        var next = looks.makeAsyncIterator()
        _ = await next.next()
        try await sleeping(clock)
        said.say((isApplied: true, newest: "20260105"))
        clock.advance(seconds: SchemaWatch.retrySeconds)
        _ = await next.next()
        try await sleeping(clock)
        #expect(watch.problem == nil)
        clock.advance(seconds: SchemaWatch.retrySeconds)
        #expect(clock.sleepers == 1)
        clock.advance(seconds: SchemaWatch.lookSeconds)
        _ = await next.next()
    }

    private func sleeping(_ clock: ManualClock) async throws {
        try await eventually { clock.sleepers > 0 }
    }
}
