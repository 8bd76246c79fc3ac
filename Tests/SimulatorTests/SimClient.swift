import Core
import Crypto
import EventLoop
import Foundation
import ServiceKit

@testable import ChatApp

/// A client of `martlet.v1` as docs/chat-protocol.md tells to write one: it keeps the last seq of each room, comes back
/// with it, and sends again what was not answered. Everything it is told is held against the table at once.
final class SimClient {
    /// A message of its user, from its first sending to an answer that stays.
    final class Send {
        let room: Room.ID
        let id: String
        let content: Message.Draft.Content
        var firstAt: UInt64?
        /// The connection on which an answer is awaited.
        var connection = 0

        init(room: Room.ID, id: String, content: Message.Draft.Content) {
            self.room = room
            self.id = id
            self.content = content
        }

        var isPoison: Bool { content == .text(SimClient.poison, media: nil) }

        /// As a frame, without its braces.
        var text: String {
            let about = #""room":\#(room),"id":"\#(id)""#
            return switch content {
            case .text(let body, _): #""type":"send",\#(about),"body":"\#(body)""#
            case .edit(let target, let body): #""type":"edit",\#(about),"target":\#(target),"body":"\#(body)""#
            case .delete(let target): #""type":"delete",\#(about),"target":\#(target)"#
            }
        }
    }

    /// A message that the service takes for one that the database refuses.
    static let poison = "poison"

    enum State {
        case away, greeting, ready
    }

    let world: World
    let database: SimDatabase
    let plan: Plan
    let user: User.ID
    let name: String
    let session: Core.Session.ID
    /// Where it may connect.
    let instances: () -> [SimInstance]

    var state = State.away
    /// The last seq it has of each of its rooms.
    var last: [Room.ID: Int64] = [:]
    var unanswered: [Send] = []
    /// The session has ended, and nothing of the service is for it any more.
    var isSignedOut = false
    var closedWith: UInt16?
    var received = 0
    /// Read marks that it was told, by room and user, and since when it is told those of a room.
    var marks: [Room.ID: [User.ID: Int64]] = [:]
    var knownSince: [Room.ID: UInt64] = [:]
    /// It wants to know who is online in its rooms: which it has asked about, which were answered, who is.
    let isWatcher: Bool
    var asking: Set<Room.ID> = []
    var watched: Set<Room.ID> = []
    var online: Set<User.ID> = []
    /// Counts of unread texts, for which it asks once the end has come.
    var isCounting = false
    var counts: [Room.ID: Int]?
    /// It has left and does not come back.
    private(set) var isAway = false
    /// The loop that it is connected to; nil: any.
    var loop: Int?
    var connection = 0
    private var wire: DrivenWire?
    private weak var instance: SimInstance?
    private var frames = SimFrames()
    var awaited: [Send] = []
    private var isSlow = false
    private var isReading = false
    private var attempts = 0
    /// What is on its way to the server, in order.
    private var outgoing: [[UInt8]] = []

    init(
        _ world: World, _ database: SimDatabase, _ plan: Plan, user: User.ID, name: String,
        instances: @escaping () -> [SimInstance]
    ) {
        self.world = world
        self.database = database
        self.plan = plan
        self.user = user
        self.name = name
        session = Core.Session.ID(user.value)
        isWatcher = world.chance(plan.watchers)
        self.instances = instances
    }

    func fail(_ sentence: String) { world.fail("\(name) (user \(user)): \(sentence)") }

    // MARK: Coming and going

    func connect() {
        guard state == .away, !isSignedOut, !isAway else { return }
        let address = SocketAddress(host: "192.0.2.\(user)", port: 1)
        guard let instance = world.pick(instances().filter { $0.state == .serving || $0.state == .draining }),
            let wire = instance.connect(address, loop: loop, capacity: plan.wireBytes)
        else { return comeBack() }
        connection += 1
        state = .greeting
        closedWith = nil
        self.wire = wire
        self.instance = instance
        frames = SimFrames()
        awaited = []
        (asking, watched, online, counts) = ([], [], [], nil)
        world.note("connect", user.value, Int64(connection), "\(name) to \(instance.name) with \(last)")
        let resume = last.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\($0.value)" }.joined(separator: ",")
        say(#"{"type":"hello","token":"\#(SimTokens.token(user))","resume":{\#(resume)}}"#)
    }

    private func comeBack() {
        attempts += 1
        let wait = UInt64(20 + world.below(60 * min(attempts, 4)))
        world.after(wait) { [weak self] in self?.connect() }
    }

    private func gone(_ how: StaticString) {
        world.note(how, user.value, Int64(closedWith ?? 0), name)
        wire = nil
        state = .away
        outgoing = []
        comeBack()
    }

    /// The network breaks: in the middle of a frame to the server, and of whatever comes from it.
    func cut() {
        guard let wire else { return }
        if world.chance(50) {
            let frame = SimFrames.masked(Array(#"{"type":"read","room":1,"seq":1}"#.utf8))
            wire.send(frame.prefix(world.below(frame.count)))
        }
        if wire.readable > 0, world.chance(50) { read(wire.read(max: world.below(wire.readable))) }
        if self.wire != nil { if world.chance(50) { wire.cut() } else { wire.end() } }
        if self.wire != nil { gone("cut") }
    }

    /// For good: they are offline from here on, as far as this client goes.
    func leave() {
        isAway = true
        guard let wire else { return }
        world.note("leave", user.value, 0, name)
        if world.chance(50) { wire.cut() } else { wire.end() }
        gone("left")
    }

    func isConnected(to instance: SimInstance) -> Bool { wire != nil && self.instance === instance }

    /// The server is gone: what it had given to the network may still come.
    func lostServer() {
        guard let wire else { return }
        if world.chance(70) { read(wire.read(max: world.below(wire.readable + 1))) }
        if self.wire != nil { gone("lost") }
    }

    /// Does not read for a while.
    func slow(_ milliseconds: UInt64) {
        world.note("slow", user.value, Int64(milliseconds), name)
        isSlow = true
        world.after(milliseconds) { [weak self] in self?.isSlow = false }
    }

    // MARK: Sending

    func say(_ text: String) {
        outgoing.append(SimFrames.masked(Array(text.utf8)))
        let number = connection
        world.after(world.delay(upTo: plan.networkMilliseconds)) { [weak self] in
            // Packets keep their order: whichever comes brings the oldest.
            guard let self, number == connection, let wire, !outgoing.isEmpty else { return }
            wire.send(outgoing.removeFirst())
        }
    }

    func send(_ room: Room.ID, _ id: String, _ content: Message.Draft.Content) {
        let send = Send(room: room, id: id, content: content)
        unanswered.append(send)
        if state == .ready { offer(send) }
    }

    func offer(_ send: Send) {
        if send.firstAt == nil { send.firstAt = world.now }
        send.connection = connection
        awaited.append(send)
        world.note("send", user.value, send.room.value, "\(name) \(send.id)")
        say("{\(send.text)}")
    }

    func mark() {
        guard state == .ready, let room = world.pick(last.keys.sorted()) else { return }
        let seq = (last[room] ?? 0) + Int64(world.below(3)) - 1
        if seq > 0 { say(#"{"type":"read","room":\#(room),"seq":\#(seq)}"#) }
    }

    func ask() {
        guard state == .ready, let room = world.pick(last.keys.sorted()) else { return }
        say(#"{"type":"history","room":\#(room),"before":\#((last[room] ?? 0) + 1),"limit":\#(1 + world.below(5))}"#)
    }

    // MARK: Reading

    /// After anything that may have brought bytes.
    func settle() {
        guard let wire, !isReading, !isSlow, wire.readable > 0 || wire.isShutDown || wire.isReset else { return }
        isReading = true
        let number = connection
        world.after(world.delay(upTo: plan.networkMilliseconds)) { [weak self] in
            guard let self else { return }
            isReading = false
            guard number == connection, let wire = self.wire, !isSlow else { return }
            if wire.readable > 0 { return read(wire.read(max: 1 + world.below(2 * wire.readable))) }
            if wire.isShutDown || wire.isReset { gone("end") }
        }
    }

    private func read(_ bytes: [UInt8]) {
        frames.feed(bytes)
        while let frame = frames.next() {
            guard wire != nil else { return }
            switch frame {
            case .text(let text): hear(text)
            case .ping: wire?.send(SimFrames.masked([], opcode: 0xA))
            case .close(let code): close(code)
            case .other(let opcode): fail("a frame of opcode \(opcode)")
            }
        }
    }

    private func close(_ code: UInt16) {
        closedWith = code
        wire?.send(SimFrames.masked([UInt8(code >> 8), UInt8(code & 0xFF)], opcode: 0x8))
        wire?.end()
        if code == 4401 {
            guard database.sessionsEnded.contains(session) else { return fail("closed with 4401 while signed in") }
            isSignedOut = true
        }
        if ![1012, 1013, 4401, 4408].contains(code) { fail("closed with \(code)") }
        gone("closed")
    }

    private func hear(_ text: [UInt8]) {
        let frame: SimFrame
        do {
            frame = try SimFrame(text)
        } catch {
            return fail("cannot read \(String(decoding: text, as: UTF8.self))")
        }
        received += 1
        world.note("hear", user.value, frame.seq ?? 0, "\(name) \(String(decoding: text, as: UTF8.self).prefix(200))")
        guard state == .ready || frame.type == "ready" || frame.type == "error" else {
            return fail("\(frame.type) before ready")
        }
        switch frame.type {
        case "ready": ready(frame)
        case "message": message(frame)
        case "room": enter(frame)
        case "left": left(frame)
        case "reset": reset(frame)
        case "ack": acknowledged(frame)
        case "error": refused(frame)
        case "read": marked(frame)
        case "history": history(frame)
        case "joined": joined(frame)
        case "presence": presence(frame)
        case "unread": counted(frame)
        case "typing": typed(frame)
        default: fail("a frame of type \(frame.type)")
        }
    }

    private func ready(_ frame: SimFrame) {
        guard state == .greeting, frame.user == user.value else { return fail("ready for another, or again") }
        state = .ready
        attempts = 0
        let had = last
        last = [:]
        for room in frame.rooms {
            guard hasBeenMember(room.id) else { return fail("ready has room \(room.id) of others") }
            // Where it resumes, what is missed comes next.
            last[room.id] = had[room.id] ?? room.lastSeq
            knownSince[room.id] = world.now
            watch(room.id)
        }
        for send in unanswered { offer(send) }
        if isCounting { count() }
    }

    func hasBeenMember(_ room: Room.ID) -> Bool { database.rooms[room]?.former[user] != nil }

    private func message(_ frame: SimFrame) {
        guard let id = frame.room, let seq = frame.seq else { return fail("a message without room or seq") }
        let room = Room.ID(id)
        guard hasBeenMember(room) else { return fail("a message of room \(room), which is not theirs") }
        guard let known = last[room] else { return fail("a message of room \(room), which they have left") }
        guard seq == known + 1 else { return fail("room \(room): message \(seq) after \(known)") }
        if let problem = difference(frame, room, seq) { return fail("room \(room): message \(seq) \(problem)") }
        last[room] = seq
    }

    /// What a message that was told has other than the table; nil for nothing.
    func difference(_ frame: SimFrame, _ room: Room.ID, _ seq: Int64) -> String? {
        guard let row = database.rooms[room], seq >= 1, seq <= row.messages.count else { return "is not committed" }
        let message = row.messages[Int(seq) - 1]
        // Deleted since, or before it was read.
        let body = frame.body == message.body || frame.body == row.bodies[Int(seq) - 1]
        let isSame =
            body && frame.target == message.targetSeq && frame.sender == message.senderID.value
            && frame.id == message.clientID
            && frame.kind == message.kind.rawValue
        return isSame ? nil : "is not what the table has"
    }

    private func enter(_ frame: SimFrame) {
        guard let room = frame.rooms.first?.id else { return fail("a room without an id") }
        guard hasBeenMember(room) else { return fail("was given room \(room) of others") }
        guard last[room] == nil else { return fail("room \(room) came twice") }
        last[room] = 0
        knownSince[room] = world.now
        watch(room)
    }

    private func left(_ frame: SimFrame) {
        let room = Room.ID(frame.room ?? 0)
        guard last.removeValue(forKey: room) != nil else { return fail("left room \(room), where they were not") }
        asking.remove(room)
        watched.remove(room)
    }

    private func reset(_ frame: SimFrame) {
        let room = Room.ID(frame.room ?? 0)
        guard let known = last[room], let seq = frame.lastSeq else { return fail("a reset of room \(room)") }
        guard seq - known > plan.limits.resumeMessagesMax else {
            return fail("room \(room) was reset from \(known) to \(seq): not too much to resume")
        }
        guard seq <= database.rooms[room]?.lastSeq ?? 0 else { return fail("room \(room) was reset beyond its end") }
        last[room] = seq
    }
}
