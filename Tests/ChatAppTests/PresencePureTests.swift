import Core
import Seeded
import Testing

@testable import ChatApp

@Suite("What presence decides")
struct PresencePureTests {
    private func user(_ id: Int64) -> User.ID { User.ID(id) }
    private let room = Room.ID(1)
    private let own = ChatProcess(name: "chat-1", run: 1)

    private func state(_ name: String, _ run: Int32, locked: Bool = false, lease: Double = 0) -> ChatProcessState {
        ChatProcessState(name: name, run: run, isLocked: locked, leaseSeconds: lease)
    }

    @Test("the rows follow who is connected, whatever becomes of the writes", arguments: 0..<50)
    func ledger(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var ledger = PresenceLedger()
        var connected: Set<User.ID> = []
        var rows: Set<User.ID> = []
        func perform(_ batch: PresenceLedger.Batch) {
            rows.formUnion(batch.online)
            rows.subtract(batch.offline)
        }
        for _ in 0..<400 {
            let one = user(Int64.random(in: 1...8, using: &random))
            if connected.insert(one).inserted {
                ledger.came(one)
            } else {
                connected.remove(one)
                ledger.left(one)
            }
            guard Int.random(in: 0..<3, using: &random) == 0 else { continue }
            let batch = ledger.take(max: Int.random(in: 1...4, using: &random))
            let isWritten = Bool.random(using: &random)
            if isWritten { perform(batch) }
            // Or a lease is written for it that is for those who have nobody there.
            if isWritten, ledger.isEmpty(after: batch) { #expect(rows.isEmpty) }
            // Others delete us while the answer is on its way.
            if Int.random(in: 0..<10, using: &random) == 0 {
                rows = []
                ledger.forget()
            }
            if isWritten, Bool.random(using: &random) { ledger.done(batch) } else { ledger.failed(batch) }
            if ledger.isEmpty() { #expect(rows.isEmpty) }
        }
        while ledger.hasDue {
            let batch = ledger.take(max: 3)
            #expect(!batch.isEmpty)
            perform(batch)
            ledger.done(batch)
        }
        #expect(rows == connected && ledger.connected == connected)
    }

    @Test("who comes and goes before it is written is not written")
    func ledgerCoalesces() {
        var ledger = PresenceLedger()
        ledger.came(user(1))
        ledger.left(user(1))
        #expect(!ledger.hasDue)
        ledger.came(user(1))
        let batch = ledger.take(max: 10)
        #expect(batch.online == [user(1)] && batch.offline.isEmpty)
        // While it is written: what it came to is not known.
        ledger.left(user(1))
        #expect(ledger.isDue(user(1)))
        ledger.done(batch)
        #expect(ledger.take(max: 10).offline == [user(1)])
    }

    @Test("who has left is there until that is written")
    func ledgerIsEmpty() {
        var ledger = PresenceLedger()
        ledger.came(user(1))
        #expect(!ledger.isEmpty())
        ledger.done(ledger.take(max: 10))
        ledger.left(user(1))
        #expect(!ledger.isEmpty())
        let batch = ledger.take(max: 10)
        #expect(!ledger.isEmpty() && ledger.isEmpty(after: batch))
        ledger.came(user(1))
        #expect(!ledger.isEmpty(after: batch))
        ledger.left(user(1))
        ledger.failed(batch)
        #expect(!ledger.isEmpty())
        ledger.done(ledger.take(max: 10))
        #expect(ledger.isEmpty() && ledger.isEmpty(after: ledger.take(max: 10)))
    }

    @Test("who became a member before a second one began to watch is told to the first one too")
    func newMemberOfSecondRead() {
        var watch = PresenceWatch()
        watch.watch(room, hub: 0)
        #expect(watch.read(room, [user(1)], version: watch.version(of: room)).isEmpty)
        #expect(watch.learn(user(1), isOnline: true, quietly: true) == nil)
        watch.watch(room, hub: 1)
        #expect(watch.read(room, [user(1), user(2)], version: watch.version(of: room)).isEmpty)
        #expect(watch.learn(user(1), isOnline: true, quietly: true) == nil)
        let event = watch.learn(user(2), isOnline: true, quietly: true)
        #expect(event?.isOnline == true && event?.hubs.contains(0) == true)
    }

    @Test("each change of a watched member is told once, to the hubs that watch")
    func watch() {
        var watch = PresenceWatch()
        watch.watch(room, hub: 0)
        #expect(watch.read(room, [user(1), user(2)], version: watch.version(of: room)).isEmpty)
        #expect(watch.learn(user(1), isOnline: true, quietly: true) == nil)
        #expect(watch.learn(user(2), isOnline: false, quietly: true) == nil)
        #expect(watch.online(in: room) == [user(1)])
        watch.watch(room, hub: 3)
        let event = watch.learn(user(2), isOnline: true)
        #expect(event?.rooms == [room] && event?.hubs.contains(0) == true && event?.hubs.contains(3) == true)
        #expect(watch.learn(user(2), isOnline: true) == nil)
        watch.unwatch(room, hub: 0)
        #expect(watch.learn(user(2), isOnline: false)?.hubs.contains(0) == false)
        #expect(watch.learn(user(9), isOnline: true) == nil)
        watch.unwatch(room, hub: 3)
        #expect(watch.isEmpty && !watch.watches(user(1)))
    }

    @Test("a member who is new to a watched room is offline until it is known better")
    func newMember() {
        var watch = PresenceWatch()
        watch.watch(room, hub: 0)
        let asked = watch.version(of: room)
        #expect(watch.changed(room, [user(1), user(2)]).new == [user(1), user(2)])
        // An older read comes late.
        #expect(watch.read(room, [user(1)], version: asked).isEmpty)
        #expect(watch.learn(user(1), isOnline: false) == nil)
        #expect(watch.learn(user(2), isOnline: true, quietly: true)?.isOnline == true)
        #expect(watch.changed(room, [user(2)]).new.isEmpty && !watch.watches(user(1)))
        #expect(watch.changed(Room.ID(9), [user(1)]).new.isEmpty)
    }

    @Test("who enters a watched room and is known to be online from another one is told to those who watch only this")
    func watchKnownElsewhere() {
        let other = Room.ID(2)
        var watch = PresenceWatch()
        watch.watch(other, hub: 0)
        watch.watch(room, hub: 1)
        #expect(watch.read(other, [user(1), user(3)], version: 0).isEmpty)
        #expect(watch.read(room, [user(1), user(2)], version: 0).isEmpty)
        for id in Int64(1)...3 { _ = watch.learn(user(id), isOnline: id != 2, quietly: true) }
        var hubs = HubSet()
        hubs.insert(1)
        let three = PresenceWatch.Event(user: user(3), isOnline: true, rooms: [room], hubs: hubs)
        let changed = watch.changed(room, [user(1), user(2), user(3)])
        #expect(changed.new == [user(3)] && changed.known == [three])
        #expect(watch.learn(user(3), isOnline: true) == nil)
        // Told once; and likewise when a second one who begins to watch has brought the member along.
        #expect(watch.changed(room, [user(1), user(2), user(3)]).known.isEmpty)
        #expect(watch.changed(room, [user(1), user(2)]).known.isEmpty)
        #expect(watch.read(room, [user(1), user(2), user(3)], version: watch.version(of: room)) == [three])
    }

    @Test("who is dead at two looks in a row is dead, and at one is not")
    func twoLooks() {
        var watch = ProcessWatch()
        let living = [state("chat-1", 1, locked: true), state("chat-2", 2, lease: 3)]
        let lifeless = [state("chat-1", 1, lease: -9), state("chat-2", 2, lease: -0.1)]
        #expect(watch.judge(living, own: own, now: 2_000).dead.isEmpty)
        #expect(watch.judge(lifeless, own: own, now: 4_000).dead.isEmpty)
        #expect(watch.judge(living, own: own, now: 6_000).dead.isEmpty)
        #expect(watch.judge(lifeless, own: own, now: 8_000).dead.isEmpty)
        // A look that a wake-up made at once.
        #expect(watch.judge(lifeless, own: own, now: 8_002).dead.isEmpty)
        // Never itself.
        #expect(watch.judge(lifeless, own: own, now: 10_000).dead.map(\.run) == [2])
        #expect(watch.judge(lifeless, own: own, now: 12_000).dead.isEmpty)
        // A pause of this process, or of the database, is between the looks.
        #expect(watch.judge(lifeless, own: own, now: 60_000).dead.isEmpty)
        watch.forget()
        #expect(watch.judge(lifeless, own: own, now: 62_000).dead.isEmpty)
    }

    @Test("a process finds its row, or that it is gone, or that another living one has its name")
    func ownRow() {
        var watch = ProcessWatch()
        let here = state("chat-1", 1)
        #expect(watch.judge([here], own: own, now: 0).own == .here(here))
        #expect(watch.judge([state("chat-2", 2, locked: true)], own: own, now: 0).own == .missing)
        #expect(watch.judge([state("chat-1", 3, locked: true)], own: own, now: 0).own == .replaced)
        #expect(watch.judge([state("chat-1", 3)], own: own, now: 0).own == .missing)
    }

    @Test("a hint names users while they are few")
    func hints() {
        let some = WakeHint.text(sender: "a.b-1", users: [user(7), user(9)])
        #expect(some == "a.b-1~7,9" && WakeHint(some) == .presence(sender: "a.b-1", [user(7), user(9)]))
        let many = WakeHint.text(sender: "a", users: (1...21).map { user($0) })
        #expect(many == "a~*" && WakeHint(many) == .presence(sender: "a", nil))
        let long = WakeHint.text(sender: "a", users: (0..<20).map { user(Int64.max - $0) })
        #expect(long == "a~*")
        for text in ["a~", "a~1,x", "a~-1"] { #expect(WakeHint(text) == .presence(sender: "a", nil)) }
    }
}
