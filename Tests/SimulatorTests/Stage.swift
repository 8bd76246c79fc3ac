import Core

/// A schedule that is written by hand: one instance of two loops, of which the first is home to the feed, nobody else
/// at the database, and nothing that goes wrong by itself.
final class Stage {
    let world = World(seed: 1, keepsLines: true)
    let plan: Plan
    let database: SimDatabase
    let instance: SimInstance
    private(set) var clients: [SimClient] = []
    var link: SimLink { instance.link }

    /// - Parameter rooms: the members of each, from room 1 on.
    init(rooms: [[Int64]], messages: Int = 3, _ change: (inout Plan) -> Void = { _ in }) {
        var plan = Plan()
        change(&plan)
        self.plan = plan
        database = SimDatabase(world, milliseconds: plan.databaseMilliseconds)
        instance = SimInstance("chat-1", world, database, plan)
        for (index, members) in rooms.enumerated() {
            database.seed(Room.ID(Int64(index + 1)), members: members.map { User.ID($0) }, messages: messages)
        }
        database.notify = { [world, instance] payload in
            guard plan.notifies else { return }
            world.after(world.delay(upTo: plan.wakeMilliseconds)) { instance.wake(payload) }
        }
    }

    func client(_ user: Int64, loop: Int = 1) -> SimClient {
        let client = SimClient(world, database, plan, user: User.ID(user), name: "\(user)") { [instance] in [instance] }
        client.loop = loop
        clients.append(client)
        return client
    }

    /// Another service, or another instance, writes a message.
    func commit(_ sender: Int64, room: Int64 = 1) throws {
        let draft = try Message.Draft(
            roomID: Room.ID(room), senderID: User.ID(sender), clientID: "\(world.count)",
            content: .text("hello", media: nil))
        _ = database.send([draft], notify: nil) { _ in }
    }

    /// Everything that happens in this time.
    func run(_ milliseconds: UInt64) {
        let end = world.now + milliseconds
        // Time goes on where nothing happens.
        world.after(milliseconds) {}
        settle()
        while world.step(until: end) { settle() }
    }

    private func settle() {
        instance.settle()
        for client in clients { client.settle() }
    }

    /// What is not as it should be, if anything is not.
    func end() -> String? {
        let unrest = world.violation?.description ?? clients.lazy.compactMap { $0.unrest() }.first
        world.forget()
        instance.bury()
        world.forget()
        clients = []
        database.close()
        return unrest
    }
}
