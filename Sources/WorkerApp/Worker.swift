import Core
import EventLoop
import Foundation
import ServiceKit
import Synchronization
import Tracing

/// Claims work, runs it within bounds, keeps its leases and writes its completions together. Lives on one loop.
///
/// NOTIFY only wakes it (`wake`); without one it finds work by polling.
public actor Worker {
    /// An idle lane looks again after this, then after twice as long, up to the second.
    public static let pollSecondsMin = 0.25
    public static let pollSecondsMax = 1.0
    /// Three renewals may fail before a lease ends.
    public static let renewSeconds = Double(WorkItem.leaseSeconds) / 4
    public static let promoteSeconds = 1.0
    /// Between looks for lost leases: at least this, and fifty times what the last look took.
    static let rescueSecondsMin = 5.0
    static let rescueShareMax = 50.0
    /// That the queue has nothing before its floor holds for what this code writes. What else was put there, by hand
    /// or from a dump, is found by a look from the beginning after this time.
    static let floorSecondsMax = 600.0
    /// After an error of the queue itself.
    static let errorPauseSeconds = 1.0
    /// Completions in one statement.
    static let completionsMax = 500
    /// Of the grace, kept for handing back and writing what is done.
    static let handBackSeconds = 2.0
    /// Without an answer of the queue for so long the worker is not ready.
    public static let silenceSecondsMax = 10.0

    public struct Settings: Sendable {
        public var name: String
        public var lanes: [WorkLane]
        public var schedules: [WorkSchedule]
        public var backOff = BackOff()
        public var waitingBackOff = BackOff.ofWaiting
        /// In `0..<1`.
        public var random: @Sendable () -> Double = { Double.random(in: 0..<1) }

        public init(name: String, lanes: [WorkLane], schedules: [WorkSchedule] = []) {
            self.name = name
            self.lanes = lanes
            self.schedules = schedules
        }
    }

    /// An item under one lease: the same item may be back here under another one before its first run has ended.
    struct LeaseKey: Hashable {
        let id: WorkItem.ID
        let fence: Int64

        init(_ item: WorkItem) {
            id = item.id
            fence = item.fence
        }
    }

    /// What is known of an item that is leased to this worker.
    struct Held {
        let item: WorkItem
        let lane: Int
        let task: Task<Void, Never>
        /// Its lease was lost or the item cancelled: nothing is written for it any more.
        var isLost = false
        /// Done, and waiting for its completion to be written.
        var isDone = false
    }

    struct LaneState {
        let lane: WorkLane
        var running = 0
        var cursor: WorkCursor
        var isWoken = false
        var waiter: CheckedContinuation<Void, Never>?
        var idleRounds = 0
    }

    nonisolated let loop: EventLoop
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    let queue: any WorkQueue
    let handlers: [String: any WorkHandler]
    let settings: Settings
    let clock: any ServiceClock
    let log: Log
    let metrics: WorkMetrics
    let tracer: Tracer?
    var lanes: [LaneState]
    var held: [LeaseKey: Held] = [:]
    var isStopping = false
    var isFlushing = false
    var firedSchedules: [String: Date] = [:]
    var pauseState: WorkPauseState?
    var floor = QueueFloor()
    var nextRescue = rescueSecondsMin
    private var loops: [Task<Void, Never>] = []
    private var whenIdle: [CheckedContinuation<Void, Never>] = []
    private let began = ContinuousClock.now
    private nonisolated let lastAnswer = Mutex<ContinuousClock.Instant?>(nil)

    public init(
        queue: any WorkQueue, handlers: [any WorkHandler], settings: Settings, loop: EventLoop,
        clock: any ServiceClock, log: Log, metrics: Metrics, tracer: Tracer? = nil
    ) {
        self.queue = queue
        self.handlers = Dictionary(handlers.map { ($0.kind.rawValue, $0) }, uniquingKeysWith: { first, _ in first })
        self.settings = settings
        self.loop = loop
        self.clock = clock
        self.log = log
        self.metrics = WorkMetrics(metrics)
        self.tracer = tracer
        lanes = settings.lanes.map { LaneState(lane: $0, cursor: WorkCursor(at: 0)) }
    }

    /// Begins to claim.
    public func start() {
        guard loops.isEmpty, !isStopping else { return }
        loops = lanes.indices.map { index in Task { await self.runLane(index) } }
        loops.append(Task { await self.renewLeases() })
        loops.append(Task { await self.keepUp() })
    }

    /// There may be work. From any thread; many calls cost little more than one.
    public nonisolated func wake() {
        loop.execute { [self] in assumeIsolated { $0.wakeLanes() } }
    }

    /// Nil when the queue answers.
    public nonisolated var problem: String? {
        guard let last = lastAnswer.withLock({ $0 }) else { return "the queue has not answered yet" }
        let silent = (ContinuousClock.now - last) / .seconds(1)
        return silent > Self.silenceSecondsMax ? "the queue has not answered for \(Int(silent)) s" : nil
    }

    /// Claims no more, lets what runs finish for most of the grace, then cancels and hands back the rest.
    public func stop(graceSeconds: Double) async {
        isStopping = true
        wakeLanes()
        for task in loops.dropFirst(lanes.count) { task.cancel() }
        for task in loops.prefix(lanes.count) { await task.value }
        await waitUntilIdle(seconds: max(0, graceSeconds - Self.handBackSeconds))
        let rest = held.values.filter { !$0.isDone && !$0.isLost }
        for item in rest {
            held[LeaseKey(item.item)]?.isLost = true
            item.task.cancel()
        }
        for (fence, items) in Dictionary(grouping: rest, by: \.item.fence) {
            do {
                try await queue.release(items.map(\.item.id), fence: fence)
            } catch {
                log.warning("could not hand work back", ["error": .string("\(error)")])
            }
        }
        if !rest.isEmpty { log.info("handed work back", ["items": .int(Int64(rest.count))]) }
        await flush()
        await waitUntilIdle(seconds: Self.handBackSeconds / 2)
    }

    // MARK: Waiting

    func wakeLanes() {
        for index in lanes.indices { wake(lane: index) }
    }

    func wake(lane index: Int) {
        guard let waiter = lanes[index].waiter else {
            lanes[index].isWoken = true
            return
        }
        lanes[index].waiter = nil
        waiter.resume()
    }

    /// Waits for a wake-up, at most `seconds`; without seconds until one comes.
    private func pause(lane index: Int, seconds: Double?) async {
        if lanes[index].isWoken {
            lanes[index].isWoken = false
            return
        }
        let timer = seconds.map { seconds in
            Task {
                do { try await clock.sleep(seconds: seconds) } catch { return }
                self.wake(lane: index)
            }
        }
        await withCheckedContinuation { lanes[index].waiter = $0 }
        timer?.cancel()
        lanes[index].isWoken = false
    }

    private func waitUntilIdle(seconds: Double) async {
        guard !held.isEmpty else { return }
        let timer = Task {
            do { try await clock.sleep(seconds: seconds) } catch { return }
            self.resumeWhenIdle()
        }
        await withCheckedContinuation { whenIdle.append($0) }
        timer.cancel()
    }

    private func resumeWhenIdle() {
        for continuation in whenIdle { continuation.resume() }
        whenIdle = []
    }

    // MARK: Claiming

    private func runLane(_ index: Int) async {
        let lane = lanes[index].lane
        while !isStopping {
            let room = lane.runningMax - lanes[index].running
            // Half of the room at least, so that claims stay batches under load.
            guard room >= max(1, lane.runningMax / 2) else {
                await pause(lane: index, seconds: nil)
                continue
            }
            do {
                let limit = min(room, lane.batchMax)
                let count = try await claim(index, limit: limit)
                lanes[index].idleRounds = count == 0 ? lanes[index].idleRounds + 1 : 0
                if count == limit { continue }
                await pause(lane: index, seconds: pollSeconds(rounds: lanes[index].idleRounds))
            } catch {
                log.warning("could not claim work", ["lane": .string(lane.name), "error": .string("\(error)")])
                await pause(lane: index, seconds: Self.errorPauseSeconds * (0.5 + settings.random()))
            }
        }
    }

    private func pollSeconds(rounds: Int) -> Double {
        let whole = min(Self.pollSecondsMax, Self.pollSecondsMin * pow(2, Double(min(rounds, 8) - 1)))
        return max(Self.pollSecondsMin, whole) * (0.75 + settings.random() / 2)
    }

    private func claim(_ index: Int, limit: Int) async throws -> Int {
        let lane = lanes[index].lane
        let bound = lanes[index].cursor.needsBound(at: seconds) ? try await queue.bound() : nil
        let after = lanes[index].cursor.begin(bound: bound, floor: floor.position, at: seconds)
        let claim = try await queue.claim(worker: settings.name, kinds: lane.kinds, limit: limit, after: after)
        noteAnswer()
        lanes[index].cursor.end(claim, limit: limit, at: seconds)
        for item in claim.items {
            lanes[index].running += 1
            held[LeaseKey(item)] = Held(item: item, lane: index, task: Task { await self.execute(item) })
        }
        return claim.items.count
    }

    var seconds: Double { (ContinuousClock.now - began) / .seconds(1) }

    nonisolated func noteAnswer() { lastAnswer.withLock { $0 = .now } }

    /// The item is no longer this worker's concern.
    func letGo(_ item: WorkItem) {
        guard let gone = held.removeValue(forKey: LeaseKey(item)) else { return }
        lanes[gone.lane].running -= 1
        let lane = lanes[gone.lane]
        if lane.lane.runningMax - lane.running >= max(1, lane.lane.runningMax / 2) { wake(lane: gone.lane) }
        if held.isEmpty { resumeWhenIdle() }
    }
}
