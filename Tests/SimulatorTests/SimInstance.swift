import Core
import CoreHTTP
import Crypto
import EventLoop
import Foundation
import ServiceKit
import WebSocket

@testable import ChatApp

/// Numbers from the seed, where the chat asks for random ones.
struct SimRandom: RandomSource {
    nonisolated(unsafe) let world: World
    func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8(world.below(256)) } }
}

/// One chat process: the real one, but for the threads, the sockets and the database.
final class SimInstance {
    enum State {
        case starting, serving, draining, gone
    }

    static let keys = try! SigningKeys([[UInt8](repeating: 7, count: 32)])

    let world: World
    let name: String
    let link: SimLink
    let chat: ChatService
    private let guardian: SessionGuard
    private let clock = ManualClock(SimClock.startDate)
    /// What the clock shows, in milliseconds since the start.
    private var clockAt: UInt64 = 0
    private let loops: LoopGroup
    private(set) var state = State.starting
    /// Nothing of it runs until then.
    private(set) var pausedUntil: UInt64 = 0
    /// How far its monotonic clock is ahead of the world's.
    private var jumped: UInt64 = 0
    private var isListening = false {
        didSet {
            let run = chat.process.run
            if isListening {
                link.database.presence.locked.insert(run)
            } else {
                link.database.presence.locked.remove(run)
            }
        }
    }
    private var wires: [DrivenWire] = []
    /// Loops that do not turn, where a schedule is written by hand.
    var stopped: Set<Int> = []
    private var isTurning: [Bool]
    private var timerAt: [UInt64?]

    init(_ name: String, _ world: World, _ database: SimDatabase, _ plan: Plan) {
        self.world = world
        self.name = name
        link = SimLink(world, database, plan)
        loops = LoopGroup(driven: (0..<plan.loops).map { EventLoop(driven: "\(name)-\($0)", index: $0) })
        isTurning = loops.loops.map { _ in false }
        timerAt = loops.loops.map { _ in nil }
        guardian = SessionGuard(sessions: SimSessions(link: link), clock: clock, log: .silent)
        chat = ChatService(
            instance: name, loops: loops, rooms: SimRooms(link: link), presence: SimPresence(link: link),
            keys: Self.keys, guardian: guardian,
            notify: plan.notifies, limits: plan.limits, random: SimRandom(world: world), clock: clock, log: .silent,
            metrics: Metrics())
        begin(plan.notifies)
    }

    var isAlive: Bool { state != .gone }

    private func begin(_ listens: Bool) {
        isListening = listens
        world.note("start", 0, 0, name)
        refresh()
        run { [chat, self] in
            // Startup.whenDatabaseIsThere does the same.
            while self.state == .starting {
                guard (try? await chat.start()) != nil else { continue }
                self.state = .serving
                self.world.note("serving", 0, 0, self.name)
            }
        }
    }

    /// Runs on the instance's first loop.
    private func run(_ body: @escaping () async -> Void) {
        nonisolated(unsafe) let body = body
        _ = Task(executorPreference: loops.loops[0]) { await body() }
    }

    /// As the guard does by itself, every second and when it is woken.
    private func refresh() {
        guard isAlive else { return }
        refreshNow()
        world.after(1_000) { [weak self] in self?.refresh() }
    }

    private func refreshNow() { run { [guardian] in try? await guardian.refresh() } }

    // MARK: Turns

    /// After anything that may have given a loop something to do.
    func settle() {
        guard isAlive else { return }
        for (index, loop) in loops.loops.enumerated() where !stopped.contains(index) {
            if loop.isDue, !isTurning[index] {
                isTurning[index] = true
                turn(index, after: UInt64(world.below(3) / 2))
            }
            guard let due = loop.nextTimerMilliseconds else { continue }
            let time = max(world.now, pausedUntil, due > jumped ? due - jumped : 0)
            guard timerAt[index].map({ time < $0 }) ?? true else { continue }
            timerAt[index] = time
            world.after(time - world.now) { [weak self] in
                guard let self, timerAt[index] == time else { return }
                timerAt[index] = nil
                turn(index, after: 0)
            }
        }
    }

    private func turn(_ index: Int, after delay: UInt64) {
        guard delay == 0, world.now >= pausedUntil else {
            return world.after(max(delay, pausedUntil > world.now ? pausedUntil - world.now : 0)) { [weak self] in
                self?.turn(index, after: 0)
            }
        }
        isTurning[index] = false
        guard isAlive, !stopped.contains(index) else { return }
        let time = world.now + jumped
        clock.advance(seconds: Double(time - clockAt) / 1_000)
        clockAt = time
        loops.loops[index].turn(at: time)
    }

    // MARK: What reaches it

    func connect(_ peer: SocketAddress, loop chosen: Int?, capacity: Int) -> DrivenWire? {
        guard state == .serving || state == .draining else { return nil }
        let index = chosen ?? world.below(loops.loops.count)
        let loop = loops.loops[index]
        let (stream, wire) = DrivenWire.connect(to: loop, from: peer, capacity: capacity)
        nonisolated(unsafe) let taken = stream
        wires.append(wire)
        let sockets = chat.sockets[index]
        loop.execute { sockets.assumeIsolated { $0.adopt(taken, leftover: [], compression: nil) } }
        return wire
    }

    func wake(_ payload: String) {
        guard isAlive, isListening else { return }
        chat.wake(payload)
    }

    func sessionsEnded() {
        guard isAlive, isListening else { return }
        refreshNow()
    }

    /// The listening connection breaks, and comes back.
    func loseListener(_ milliseconds: UInt64) {
        guard isListening else { return }
        world.note("listener lost", Int64(milliseconds), 0, name)
        isListening = false
        world.after(milliseconds) { [weak self] in
            guard let self, isAlive else { return }
            isListening = true
            world.note("listening", 0, 0, name)
            // PostgresBus does so.
            chat.wake("")
            refreshNow()
        }
    }

    func pause(_ milliseconds: UInt64) {
        world.note("pause", Int64(milliseconds), 0, name)
        pausedUntil = world.now + milliseconds
    }

    /// Both clocks go on at once: the machine was asleep, say.
    func jump(_ milliseconds: UInt64) {
        world.note("jump", Int64(milliseconds), 0, name)
        jumped += milliseconds
        timerAt = timerAt.map { _ in nil }
    }

    // MARK: Its end

    func kill() {
        world.note("kill", 0, 0, name)
        state = .gone
        isListening = false
        link.kill()
    }

    func drain(_ ended: @escaping () -> Void) {
        guard state == .serving else { return }
        world.note("drain", 0, 0, name)
        state = .draining
        run { [chat, self] in
            await chat.drain()
            guard self.state == .draining else { return }
            self.state = .gone
            ended()
        }
    }

    /// Lets go of everything, so that ten thousand simulations fit into one process.
    func bury() {
        state = .gone
        link.bury()
        for wire in wires { wire.cut() }
        run { [chat, guardian] in
            await chat.drain()
            await guardian.stop()
        }
        for _ in 0..<8 {
            for loop in loops.loops { loop.turn(at: loop.nowMilliseconds) }
        }
    }
}
