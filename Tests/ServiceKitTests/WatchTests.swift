import Foundation
import Synchronization
import TestSupport
import Testing

@testable import ServiceKit

@Suite("What a process can do without, watched")
struct WatchTests {
    /// Something that is as it is told to be.
    private final class Outside: Sendable {
        let finding = Mutex(Watch.Finding.works)
        let probed = Signal<Void>()
        let health = Health()
        let metrics = Metrics()
        let clock = ManualClock()
        private let pipe = Pipe()
        private let sink: LogSink

        init() { sink = LogSink(descriptor: pipe.fileHandleForWriting.fileDescriptor) }

        func watch() -> Watch {
            let log = Log(service: "test", level: .info, format: .json, sink: sink)
            let watch = Watch(broken: "it is broken", mended: "it is mended", clock: clock, log: log) { [self] in
                defer { probed.send(()) }
                return finding.withLock { $0 }
            }
            watch.show("it", in: health, metrics, gauge: "it_up", "1 while it works.")
            return watch
        }

        func turns(_ finding: Watch.Finding) { self.finding.withLock { $0 = finding } }

        /// Ends the log, and says what its lines were.
        func told() throws -> [String] {
            sink.flush()
            try pipe.fileHandleForWriting.close()
            let text = String(decoding: try pipe.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
            return text.split(separator: "\n").map(String.init)
        }
    }

    @Test("trouble is told once, and looked after every few seconds until it is over; then nothing is probed")
    func recovers() async throws {
        let outside = Outside()
        let watch = outside.watch()
        outside.turns(.fails("gone"))
        #expect(outside.health.remarks().isEmpty && outside.metrics.text().contains("it_up 1"))
        watch.start()
        try await outside.probed.wait(count: 1)
        for looks in 2...3 {
            try await eventually { outside.clock.sleepers == 1 }
            outside.clock.advance(seconds: Watch.probeSeconds - 0.1)
            #expect(outside.clock.sleepers == 1 && outside.probed.values.count == looks - 1)
            outside.clock.advance(seconds: 0.1)
            try await outside.probed.wait(count: looks)
        }
        #expect(outside.health.remarks().map(\.problem) == ["gone"] && outside.health.problems().isEmpty)
        #expect(outside.metrics.text().contains("it_up 0"))

        outside.turns(.works)
        try await eventually { outside.clock.sleepers == 1 }
        outside.clock.advance(seconds: Watch.probeSeconds)
        try await eventually { watch.problem == nil && outside.clock.sleepers == 1 }
        outside.clock.advance(seconds: Watch.probeSeconds)
        try await eventually { outside.clock.sleepers == 1 }
        #expect(outside.probed.values.count == 4)
        #expect(outside.health.remarks().isEmpty && outside.metrics.text().contains("it_up 1"))
        watch.stop()
        try await eventually { outside.clock.sleepers == 0 }
        let told = try outside.told()
        try #require(told.count == 2, "\(told)")
        #expect(told[0].contains("it is broken") && told[0].contains("\"error\":\"gone\""))
        #expect(told[1].contains("it is mended") && told[1].contains("\"info\""))
    }

    @Test("what its users find counts as well, and what says nothing changes nothing")
    func users() async throws {
        let outside = Outside()
        let watch = outside.watch()
        watch.note(.unknown)
        watch.note(.works)
        #expect(watch.problem == nil)
        watch.note(.fails("full"))
        watch.note(.fails("fuller"))
        watch.note(.unknown)
        #expect(watch.problem == "fuller")
        await watch.look()
        #expect(watch.problem == nil)
        let told = try outside.told()
        #expect(told.count == 2 && told[0].contains("full\""), "\(told)")
    }

    @Test("who knows of more that can be wrong says so in its place")
    func more() {
        let outside = Outside()
        let watch = outside.watch()
        watch.show("more", in: outside.health, outside.metrics, gauge: "more_up", "1 while all is well.") { "much" }
        #expect(outside.health.remarks().map(\.name) == ["more"])
        #expect(outside.metrics.text().contains("more_up 0") && outside.metrics.text().contains("it_up 1"))
    }

    @Test("one that nobody owns any more is not looked after")
    func forgotten() async throws {
        let outside = Outside()
        var watch: Watch? = outside.watch()
        watch?.start()
        try await eventually { outside.clock.sleepers == 1 }
        watch = nil
        try await eventually { outside.clock.sleepers == 0 }
        #expect(outside.health.remarks().isEmpty)
    }
}
