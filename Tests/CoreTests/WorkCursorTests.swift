import Testing

@testable import Core

@Suite struct WorkCursorTests {
    func claim(_ count: Int, last: WorkPosition = WorkPosition()) -> WorkClaim {
        let items = (0..<count).map {
            WorkItem(id: WorkItem.ID(Int64($0)), fence: 1, kind: "prune", payload: "{}", attempt: 1)
        }
        return WorkClaim(items: items, last: last)
    }

    @Test("it begins at the beginning, and reads on behind a full claim")
    func readsOn() {
        var cursor = WorkCursor(at: 0)
        #expect(cursor.needsBound(at: 0))
        #expect(cursor.begin(bound: 50, at: 0) == WorkPosition())
        cursor.end(claim(10, last: WorkPosition(tx: 7, id: 3)), limit: 10, at: 0)
        #expect(!cursor.needsBound(at: 0.9))
        #expect(cursor.begin(bound: nil, at: 0.9) == WorkPosition(tx: 7, id: 3))
        #expect(cursor.reached == WorkPosition(tx: 7, id: 3))
    }

    @Test("after a second of backlog it looks behind again, no further than it has read")
    func looksBack() {
        var cursor = WorkCursor(at: 0)
        _ = cursor.begin(bound: 50, at: 0)
        cursor.end(claim(10, last: WorkPosition(tx: 7, id: 3)), limit: 10, at: 0)
        #expect(cursor.needsBound(at: 1))
        #expect(cursor.begin(bound: 60, at: 1) == WorkPosition(tx: 7, id: 0))
    }

    @Test("after a short claim it starts from the bound that was read before the last look, not from the new one")
    func shortClaim() {
        var cursor = WorkCursor(at: 0)
        _ = cursor.begin(bound: 50, at: 0)
        cursor.end(claim(3, last: WorkPosition(tx: 49, id: 3)), limit: 10, at: 0)
        #expect(cursor.reached == .end)
        #expect(cursor.needsBound(at: 0))
        #expect(cursor.begin(bound: 60, at: 0.1) == WorkPosition(tx: 50, id: 0))
        cursor.end(claim(0), limit: 10, at: 0.1)
        #expect(cursor.begin(bound: 70, at: 0.2) == WorkPosition(tx: 60, id: 0))
    }

    @Test("made anew while a claim is under way, it begins at the beginning whatever that claim got")
    func madeAnew() {
        for found in [
            claim(0), claim(3, last: WorkPosition(tx: 40, id: 3)), claim(10, last: WorkPosition(tx: 45, id: 9)),
        ] {
            var cursor = WorkCursor(at: 0)
            _ = cursor.begin(bound: 50, at: 0)
            cursor.end(claim(0), limit: 10, at: 0)
            _ = cursor.begin(bound: 60, at: 0.1)
            // A pause has ended, and the claim may have passed by what was paused.
            cursor = WorkCursor(at: 0.2)
            cursor.end(found, limit: 10, at: 0.3)
            #expect(cursor.needsBound(at: 0.3))
            #expect(cursor.begin(bound: 70, at: 0.3) == WorkPosition())
        }
    }

    @Test("now and then it reads everything, and the more seldom the longer that takes")
    func fullScan() {
        var cursor = WorkCursor(at: 0)
        _ = cursor.begin(bound: 50, at: 0)
        cursor.end(claim(0), limit: 10, at: 0)
        #expect(cursor.begin(bound: 60, at: 29) == WorkPosition(tx: 50, id: 0))
        cursor.end(claim(0), limit: 10, at: 29)
        #expect(cursor.begin(bound: 60, at: 30) == WorkPosition())
        cursor.end(claim(0), limit: 10, at: 32)
        #expect(cursor.begin(bound: 60, at: 131) == WorkPosition(tx: 60, id: 0))
        cursor.end(claim(0), limit: 10, at: 131)
        #expect(cursor.begin(bound: 60, at: 132) == WorkPosition())
    }

    @Test("no scan begins before the floor, and reading on does not heed it")
    func floor() {
        let floor = WorkPosition(tx: 55, id: 4)
        var cursor = WorkCursor(at: 0)
        #expect(cursor.begin(bound: 50, floor: floor, at: 0) == floor)
        cursor.end(claim(10, last: WorkPosition(tx: 57, id: 3)), limit: 10, at: 0)
        #expect(cursor.begin(bound: nil, floor: floor, at: 0.1) == WorkPosition(tx: 57, id: 3))
        cursor.end(claim(0), limit: 10, at: 0.1)
        #expect(cursor.begin(bound: 60, floor: floor, at: 0.2) == floor)
        cursor.end(claim(0), limit: 10, at: 0.2)
        #expect(cursor.begin(bound: 60, floor: floor, at: 0.3) == WorkPosition(tx: 60, id: 0))
        cursor.end(claim(0), limit: 10, at: 0.3)
        #expect(cursor.begin(bound: 70, floor: floor, at: 30) == floor)
    }
}
