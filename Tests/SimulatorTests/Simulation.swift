import Core
import Foundation

/// One run of the whole: instances of the real chat, a model of the database, a network and clients between which
/// everything goes wrong that the seed has in store, and what must be true at every step and in the end.
final class Simulation {
    /// After the last fault all must be well within this time: a few polls, retries and reconnects.
    private static let healMillisecondsMax: UInt64 = 30_000
    /// Events of one run; more is an endless loop.
    private static let eventsMax = 100_000

    let world: World
    let plan: Plan
    let database: SimDatabase
    private(set) var instances: [SimInstance] = []
    private(set) var clients: [SimClient] = []
    private var graves: [SimInstance] = []
    private var started = 0
    private var sends = 0
    private var sent = 0
    /// Nothing changes any more, and everybody has been asked what they make of it.
    private var isCounting = false

    init(seed: UInt64, keepsLines: Bool = false) {
        world = World(seed: seed, keepsLines: keepsLines)
        plan = Plan(world)
        database = SimDatabase(world, milliseconds: plan.databaseMilliseconds)
    }

    /// - Returns: what went wrong, if anything did.
    func run() -> Violation? {
        prepare()
        let end = UInt64(plan.milliseconds)
        while go(until: end) {}
        heal()
        untilQuiet()
        // What is told too much comes now, and what was in doubt is committed.
        let last = world.now + 500
        while go(until: last) {}
        untilQuiet()
        isCounting = true
        for client in clients {
            client.isCounting = true
            if client.state == .ready { client.count() }
        }
        untilQuiet()
        bury()
        return world.violation
    }

    private func untilQuiet() {
        let patience = world.now + Self.healMillisecondsMax
        while unrest() != nil, go(until: patience) {}
        if let unrest = unrest() { world.fail("in the end \(unrest)") }
    }

    private func go(until end: UInt64) -> Bool {
        guard world.step(until: end) else { return false }
        if world.count > Self.eventsMax { world.fail("more than \(Self.eventsMax) events") }
        settle()
        return true
    }

    private func settle() {
        for instance in instances { instance.settle() }
        for client in clients { client.settle() }
    }

    private func bury() {
        world.forget()
        for instance in instances + graves { instance.bury() }
        world.forget()
        instances = []
        graves = []
        clients = []
        database.close()
    }

    // MARK: The beginning

    private func prepare() {
        let users = (1...plan.users).map { User.ID(Int64($0)) }
        for number in 1...plan.rooms {
            // The last user is a stranger in the first room, if there are enough for a conversation.
            let members = number == 1 && plan.users > 2 ? Array(users.dropLast()) : users
            database.seed(Room.ID(Int64(number)), members: members, messages: world.below(5))
        }
        database.notify = { [unowned self] in wake($0) }
        for _ in 0..<plan.instances { startInstance() }
        for user in users {
            for device in 0...world.below(2) {
                let client = SimClient(world, database, plan, user: user, name: "\(user)\(["a", "b"][device])") {
                    [unowned self] in instances
                }
                clients.append(client)
                at(80) { client.connect() }
            }
        }
        scheduleActs()
        scheduleFaults()
    }

    private func startInstance() {
        started += 1
        let instance = SimInstance("chat-\(started)", world, database, plan)
        instance.link.listIsLate = { [unowned self] in at(60) { [unowned self] in send() } }
        instances.append(instance)
    }

    private func at(_ milliseconds: Int, _ body: @escaping () -> Void) {
        world.after(UInt64(world.below(milliseconds)), body)
    }

    private func at(_ body: @escaping () -> Void) { at(plan.milliseconds, body) }

    private func scheduleActs() {
        for _ in 1...plan.sends { at { [unowned self] in send() } }
        for _ in 0..<world.below(3) { at { [unowned self] in world.pick(clients)?.mark() } }
        for _ in 0..<world.below(2) { at { [unowned self] in world.pick(clients)?.ask() } }
    }

    private func send() {
        guard let client = world.pick(clients), let room = world.pick(database.rooms.keys.sorted()) else { return }
        sends += 1
        client.send(room, "m\(sends)", content(client.user, room))
    }

    /// Mostly a text, a long one now and then for those who read slowly, or a change of an earlier one.
    private func content(_ user: User.ID, _ room: Room.ID) -> Message.Draft.Content {
        let own = database.rooms[room]?.messages.filter { $0.senderID == user } ?? []
        if let target = world.pick(own)?.seq, world.chance(15) {
            return world.chance(50) ? .edit(target, text(5)) : .delete(target)
        }
        return .text(world.chance(5) ? SimClient.poison : world.chance(10) ? text(2_000) : text(5), media: nil)
    }

    private func text(_ count: Int) -> String {
        sent += 1
        return "t\(sent)" + String(repeating: "x", count: world.below(count))
    }

    /// A wake-up to all who listen: late, lost, twice, in any order.
    private func wake(_ payload: String) {
        guard plan.notifies else { return }
        for instance in instances {
            guard !world.fault(plan.lostWakes) else { continue }
            for _ in 0...(world.fault(plan.doubledWakes) ? 1 : 0) {
                world.after(world.delay(upTo: plan.wakeMilliseconds)) { [weak instance] in instance?.wake(payload) }
            }
        }
    }

    // MARK: What goes wrong

    private func scheduleFaults() {
        func times(_ count: Int, _ body: @escaping () -> Void) { for _ in 0..<count { at(body) } }
        times(plan.cuts) { [unowned self] in world.pick(clients)?.cut() }
        times(plan.leavers) { [unowned self] in world.pick(clients)?.leave() }
        times(plan.slowReaders) { [unowned self] in world.pick(clients)?.slow(UInt64(100 + world.below(800))) }
        times(plan.listenerKills) { [unowned self] in
            world.pick(instances)?.loseListener(UInt64(20 + world.below(400)))
        }
        times(plan.kills) { [unowned self] in if let instance = world.pick(instances) { kill(instance) } }
        times(plan.drains) { [unowned self] in if let instance = world.pick(instances) { drain(instance) } }
        times(plan.pauses) { [unowned self] in world.pick(instances)?.pause(UInt64(50 + world.below(800))) }
        times(plan.jumps) { [unowned self] in
            guard let instance = world.pick(instances) else { return }
            let seconds = world.pick([2, 12, 30, 70, 2_000]) ?? 2
            // Whoever was away for so long finds rows gone that everybody else has read.
            let others = instances.filter { $0 !== instance }.map(\.link.bound).min() ?? .max
            if seconds == 2_000, instances.allSatisfy({ $0.link.bound != .max }) { database.prune(before: others) }
            instance.jump(UInt64(seconds) * 1_000)
        }
        times(plan.memberChanges) { [unowned self] in
            guard let client = world.pick(clients), let room = world.pick(database.rooms.keys.sorted()) else { return }
            database.setMember(client.user, of: room, database.rooms[room]?.members[client.user] == nil)
        }
        times(plan.newRooms) { [unowned self] in
            let members = Array(Set(clients.map(\.user))).sorted().filter { _ in world.chance(70) }
            database.makeRoom(Room.ID(Int64(plan.rooms + 1)), members: members, firstMessage: world.chance(70))
        }
        times(plan.sessionEnds) { [unowned self] in
            guard let client = world.pick(clients) else { return }
            database.endSession(client.session)
            guard plan.notifies, !world.fault(plan.lostWakes) else { return }
            for instance in instances {
                world.after(world.delay(upTo: plan.wakeMilliseconds)) { [weak instance] in instance?.sessionsEnded() }
            }
        }
        times(plan.outages) { [unowned self] in
            let until = world.now + UInt64(20 + world.below(400))
            for instance in instances where plan.instances == 1 || world.chance(70) { instance.link.isOutUntil = until }
        }
    }

    private func kill(_ instance: SimInstance) {
        guard instance.isAlive else { return }
        instance.kill()
        replace(instance)
    }

    private func drain(_ instance: SimInstance) {
        instance.drain { [unowned self] in world.after(0) { self.replace(instance) } }
    }

    private func replace(_ instance: SimInstance) {
        instances.removeAll { $0 === instance }
        graves.append(instance)
        for client in clients where client.isConnected(to: instance) { client.lostServer() }
        world.after(UInt64(world.below(200))) { [unowned self] in startInstance() }
    }

    private func heal() {
        world.note("heal")
        world.isFaulty = false
    }

    // MARK: The end

    /// What is not yet as it must be in the end; nil when all is well.
    private func unrest() -> String? {
        guard world.violation == nil else { return nil }
        for client in clients {
            if let unrest = client.unrest() { return unrest }
        }
        let connected = Set(clients.filter { $0.state == .ready }.map(\.user))
        for client in clients {
            if let unrest = client.unrestOfPresence(connected) { return unrest }
            if isCounting, let unrest = client.unrestOfCounts() { return unrest }
        }
        return nil
    }
}
