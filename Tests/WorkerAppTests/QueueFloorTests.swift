import Core
import Testing

@testable import WorkerApp

@Suite("The floor of the queue")
struct QueueFloorTests {
    func rescue(_ tx: UInt64, era: String = "a") -> WorkRescue {
        WorkRescue(ready: 0, buried: 0, floor: WorkPosition(tx: tx), era: era)
    }

    @Test("a look begins where the last one found nothing before, and after ten minutes at the beginning")
    func rises() {
        var floor = QueueFloor()
        #expect(floor.from(at: 0) == WorkPosition())
        floor.note(rescue(7), at: 0)
        #expect(floor.from(at: 599) == WorkPosition(tx: 7))
        floor.note(rescue(9), at: 599)
        #expect(floor.position == WorkPosition(tx: 9))
        #expect(floor.from(at: 600) == WorkPosition())
        floor.note(rescue(8), at: 600)
        #expect(floor.position == WorkPosition(tx: 8))
        #expect(floor.from(at: 1199) == WorkPosition(tx: 8))
    }

    @Test("after a failover nothing is known, and the next look begins at the beginning, also when positions went on")
    func otherServer() {
        for tx: UInt64 in [5, 7, 9] {
            var floor = QueueFloor()
            _ = floor.from(at: 0)
            floor.note(rescue(7), at: 0)
            _ = floor.from(at: 5)
            floor.note(rescue(tx, era: "b"), at: 5)
            #expect(floor.position == WorkPosition())
            #expect(floor.from(at: 10) == WorkPosition())
            floor.note(rescue(tx, era: "b"), at: 10)
            #expect(floor.from(at: 15) == WorkPosition(tx: tx))
        }
    }
}
