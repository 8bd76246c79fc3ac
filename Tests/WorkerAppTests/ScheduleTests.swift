import Core
import CorePostgres
import Foundation
import Postgres
import ServiceKit
import TestSupport
import Testing

@testable import WorkerApp

@Suite struct ScheduleTests {
    @Test("back-off doubles up to its end, and is spread over the upper half")
    func backOff() {
        let backOff = BackOff(firstSeconds: 5, secondsMax: 100)
        #expect((1...6).map { backOff.seconds(after: $0, random: 0.999999).rounded() } == [5, 10, 20, 40, 80, 100])
        #expect((1...6).map { backOff.seconds(after: $0, random: 0) } == [2.5, 5, 10, 20, 40, 50])
    }

    @Test("a schedule is due at whole multiples of its period, whatever the local clocks do")
    func due() throws {
        let schedule = WorkSchedule(name: "s", kind: .prune, everySeconds: 60)
        // Europe/Berlin goes back from 03:00 to 02:00 on 25 October 2026 at 01:00 UTC, and forward on 28 March 2027.
        for start in [1_792_882_800.0, 1_806_195_600.0] {
            var fired: [Date] = []
            for second in stride(from: -7200.0, to: 7200, by: 1) {
                let due = schedule.due(at: Date(timeIntervalSince1970: start + second))
                if fired.last != due { fired.append(due) }
            }
            #expect(fired.count == 240)
            #expect(zip(fired, fired.dropFirst()).allSatisfy { $1.timeIntervalSince($0) == 60 })
        }
    }

    @Test("five workers fire a schedule once for each time, and not at all when nothing is wanted")
    func fiveWorkers() async throws {
        try await withTestDatabase(configure: { $0.writeMax = 4 }) { db, _ in
            let clock = ManualClock(Date(timeIntervalSince1970: 1_792_882_740))
            let ran = Notes()
            let schedules = [
                WorkSchedule(name: "minute", kind: .prune, everySeconds: 60),
                WorkSchedule(name: "never", kind: .deleteFiles, everySeconds: 60, isWanted: { _ in false }),
            ]
            let workers = (0..<5).map { _ in
                worker(db, [Handler(.prune) { _ in ran.add("fired") }], schedules: schedules, clock: clock)
            }
            for worker in workers { await worker.start() }
            for minute in 1...5 {
                try await eventually {
                    // All of them look at least once a second; the minute does not pass meanwhile.
                    clock.advance(seconds: 0.02)
                    for worker in workers { worker.wake() }
                    return try await items(db) == 0 && ran.all.count >= minute
                }
                clock.advance(seconds: 60)
            }
            try await eventually {
                clock.advance(seconds: 0.02)
                for worker in workers { worker.wake() }
                return try await items(db) == 0 && ran.all.count >= 6
            }
            #expect(ran.all.count == 6)
            #expect(try await number(db, "SELECT count(*) FROM work_schedules") == 1)
            for worker in workers {
                async let stopped: Void = worker.stop(graceSeconds: 0)
                await stopped
            }
        }
    }
}
