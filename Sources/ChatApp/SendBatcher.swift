import Core
import EventLoop
import Foundation
import ServiceKit
import Tracing

/// Writes what the process's sockets send: sends that arrive while a batch is being written form the next. One batch at
/// a time, so that what a client sent first is numbered first.
actor SendBatcher {
    struct Send: Sendable {
        var draft: Message.Draft
        /// The place of the front whose socket sends.
        let hub: Int
        let socket: Int
        /// By what the client knows the answer, where it is not the draft's own id.
        var ack: Int64?
        /// From the client's frame to its answer; nil where it is not recorded.
        var span: Span?
    }

    /// What became of a send.
    struct Answer: Sendable {
        let send: Send
        let result: Result
    }

    enum Result: Sendable {
        case done(Message.Outcome)
        case failed(ServerFrame.ErrorCode, String)
    }

    private struct MarkKey: Hashable {
        let room: Room.ID
        let user: User.ID
    }

    private struct Mark {
        var seq: Int64
        var sockets: [(hub: Int, socket: Int)]
    }

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Users and rooms whose marks wait for the next write; more are refused.
    private static let marksWaitingMax = 10_000

    private let rooms: any RoomRepository
    private let feed: RoomFeed
    private let limits: ChatLimits
    private let sender: String?
    private let log: Log
    private let measures: BatchMetrics

    private var hubs: [ChatHub] = []
    private var fronts: [any ChatFront] = []
    private var queue: [Send] = []
    private var head = 0
    private var isWriting = false
    /// So many are waited for before the next batch begins, for as long as the timer runs.
    private var expected = 0
    private var gatherTimer: LoopTimer?
    private var isStopped = false
    private var marks: [MarkKey: Mark] = [:]
    private var marksTimer: LoopTimer?
    private var isMarking = false
    private var idle: [CheckedContinuation<Void, Never>] = []

    /// - Parameter sender: the name under which other instances are woken; nil: they are not, they poll.
    init(
        on loop: EventLoop, rooms: any RoomRepository, feed: RoomFeed, sender: String?, limits: ChatLimits, log: Log,
        metrics: Metrics
    ) {
        self.loop = loop
        self.rooms = rooms
        self.feed = feed
        self.limits = limits
        self.sender = sender
        self.log = log
        measures = BatchMetrics(metrics)
    }

    /// The fronts in the order of their places: the hubs, who also mark, and others.
    func attach(_ hubs: [ChatHub], others: [any ChatFront]) {
        self.hubs = hubs
        fronts = hubs + others
    }

    // MARK: Sends

    nonisolated func submit(_ sends: [Send]) {
        loop.execute { self.assumeIsolated { $0.take(sends) } }
    }

    private func take(_ sends: [Send]) {
        let room = limits.sendsWaitingMax - (queue.count - head)
        queue += sends.prefix(max(0, room))
        measures.waiting.set(queue.count - head)
        if sends.count > room {
            answer(sends.dropFirst(max(0, room)).map { ($0, .failed(.unavailable, "The service is overloaded.")) })
        }
        startIfDue()
    }

    /// Those who have just been answered often send again at once. What comes until then goes with them: a commit for
    /// eight costs little more than one for four, and two commits cannot be under way.
    private func startIfDue() {
        let waiting = queue.count - head
        guard !isWriting, waiting > 0, waiting >= min(expected, limits.gatherSendsMax) || !idle.isEmpty else { return }
        expected = 0
        gatherTimer?.cancel()
        isWriting = true
        _ = Task(executorPreference: loop) { await self.write() }
    }

    private func write() async {
        let batch = nextBatch()
        let began = EventLoop.nanoseconds
        let results: [Result]
        if let first = batch.lazy.compactMap(\.span).first {
            // The batch has one statement and many senders: it is told once, with the first of them.
            results = await TraceContext.$current.withValue(first.context) {
                await commit(batch[...], mayRetry: true)
            }
        } else {
            results = await commit(batch[...], mayRetry: true)
        }
        measures.sizes.record(Double(batch.count))
        measures.seconds.record(Double(EventLoop.nanoseconds &- began) / 1_000_000_000)
        report(batch, results)
        isWriting = false
        gather(after: batch.count)
        startIfDue()
        guard !isWriting, head == queue.count else { return }
        for continuation in idle { continuation.resume() }
        idle = []
    }

    private func gather(after answered: Int) {
        expected = queue.count - head + answered
        // Who sends alone never waits.
        guard expected > 1, !isStopped else { return }
        let timer = gatherTimer ?? LoopTimer(on: loop) { [unowned self] in assumeIsolated { $0.gathered() } }
        gatherTimer = timer
        timer.start(milliseconds: limits.gatherMilliseconds)
    }

    private func gathered() {
        expected = 0
        startIfDue()
    }

    private func nextBatch() -> [Send] {
        var batch: [Send] = []
        var bytes = 0
        while head < queue.count, batch.count < limits.batchSendsMax {
            bytes += queue[head].draft.body.utf8.count
            guard batch.isEmpty || bytes <= limits.batchBytesMax else { break }
            batch.append(queue[head])
            head += 1
        }
        if head == queue.count {
            queue.removeAll(keepingCapacity: head <= limits.batchSendsMax)
            head = 0
        } else if head > limits.sendsWaitingMax {
            queue.removeFirst(head)
            head = 0
        }
        measures.waiting.set(queue.count - head)
        return batch
    }

    /// Commits what can be: a batch that the database refuses is halved until the send at fault is alone.
    private func commit(_ batch: ArraySlice<Send>, mayRetry: Bool) async -> [Result] {
        let drafts = batch.map(\.draft)
        let hint = sender.map { WakeHint.text(sender: $0, messages: Array(Set(drafts.map(\.roomID)))) }
        do {
            measures.batches.add()
            return try await rooms.send(drafts, notify: hint).map { .done($0) }
        } catch let error as AppError where error.code == .unavailable {
            // Whether it was committed may not be known; by the client's ids a second time does no harm, and tells.
            if mayRetry { return await commit(batch, mayRetry: false) }
            return batch.map { _ in .failed(.unavailable, error.message) }
        } catch {
            guard batch.count > 1 else {
                // It may have been the moment's fault: one who was made a member just then.
                if mayRetry { return await commit(batch, mayRetry: false) }
                log.warning("a send was refused by the database", ["error": .string(String(describing: error))])
                let known = error as? AppError
                return [.failed(.invalid, known?.message ?? "The message cannot be stored.")]
            }
            let middle = batch.startIndex + batch.count / 2
            let first = await commit(batch[..<middle], mayRetry: true)
            return first + (await commit(batch[middle...], mayRetry: true))
        }
    }

    private func report(_ batch: [Send], _ results: [Result]) {
        answer(Array(zip(batch, results)))
        var committed: [(room: Room.ID, messages: [Message])] = []
        var index: [Room.ID: Int] = [:]
        var count = 0
        for (send, result) in zip(batch, results) {
            guard case .done(.sent(let seq, let at)) = result else { continue }
            let draft = send.draft
            let message = Message(
                roomID: draft.roomID, seq: seq, senderID: draft.senderID, clientID: draft.clientID,
                kind: draft.kind, targetSeq: draft.targetSeq, body: draft.body, mediaID: draft.mediaID, createdAt: at,
                traceparent: draft.traceparent)
            count += 1
            if let known = index[draft.roomID] {
                committed[known].messages.append(message)
            } else {
                index[draft.roomID] = committed.count
                committed.append((draft.roomID, [message]))
            }
        }
        measures.sent.add(count)
        let published = committed
        feed.assumeIsolated { $0.published(published) }
    }

    private func answer(_ results: [(Send, Result)]) {
        var answers: [Int: [Answer]] = [:]
        for (send, result) in results {
            if case .failed = result { measures.refused.add() }
            send.span?.end(result)
            answers[send.hub, default: []].append(Answer(send: send, result: result))
        }
        for (hub, answers) in answers where hub < fronts.count { fronts[hub].answered(answers) }
    }

    // MARK: Read marks

    nonisolated func mark(_ mark: ReadMark, hub: Int, socket: Int) {
        loop.execute { self.assumeIsolated { $0.take(mark, hub: hub, socket: socket) } }
    }

    private func take(_ mark: ReadMark, hub: Int, socket: Int) {
        let key = MarkKey(room: mark.room, user: mark.user)
        guard marks[key] != nil || marks.count < Self.marksWaitingMax else {
            return refuse([(hub, socket)], mark.room, .unavailable, "The service is overloaded.")
        }
        var waiting = marks[key] ?? Mark(seq: 0, sockets: [])
        waiting.seq = max(waiting.seq, mark.seq)
        // One refusal is enough for a socket that scrolls through what is not its own.
        if waiting.sockets.last.map({ $0 != (hub, socket) }) ?? true { waiting.sockets.append((hub, socket)) }
        marks[key] = waiting
        startMarksTimer()
    }

    private func startMarksTimer() {
        guard marksTimer == nil, !isMarking, !isStopped else { return }
        let timer = LoopTimer(on: loop) { [unowned self] in assumeIsolated { $0.marksDue() } }
        timer.start(milliseconds: limits.marksMilliseconds)
        marksTimer = timer
    }

    private func marksDue() {
        marksTimer = nil
        guard !isMarking, !marks.isEmpty else { return }
        isMarking = true
        _ = Task(executorPreference: loop) { await self.writeMarks() }
    }

    private func writeMarks() async {
        let taken = Array(marks)
        marks = [:]
        let list = taken.map { ReadMark(room: $0.key.room, user: $0.key.user, seq: $0.value.seq) }
        let changed = Array(Set(list.map(\.room)))
        do {
            let hint = sender.map { WakeHint.text(sender: $0, memberships: changed) }
            let standing = try await rooms.markRead(list, notify: hint)
            var moved: [ReadMark] = []
            for (index, seq) in standing.enumerated() {
                let mark = list[index]
                if let seq {
                    moved.append(ReadMark(room: mark.room, user: mark.user, seq: seq))
                } else {
                    refuse(taken[index].value.sockets, mark.room, .forbidden, "Not your room.")
                }
            }
            tell(moved)
        } catch {
            for (key, mark) in taken {
                refuse(mark.sockets, key.room, .unavailable, AppError.unavailable.message)
            }
        }
        isMarking = false
        if !marks.isEmpty { startMarksTimer() }
    }

    private func tell(_ moved: [ReadMark]) { feed.assumeIsolated { $0.marked(moved) } }

    private func refuse(
        _ sockets: [(hub: Int, socket: Int)], _ room: Room.ID, _ code: ServerFrame.ErrorCode, _ message: String
    ) {
        let text = ServerFrame.error(code, message, room: room)
        for (hub, socket) in sockets where hub < hubs.count { hubs[hub].post { $0.answer([(socket, text)]) } }
    }

    // MARK: Ending

    /// Returns when everything submitted so far has been written and answered.
    func drain() async {
        guard isWriting || head < queue.count else { return }
        await withCheckedContinuation { continuation in
            idle.append(continuation)
            startIfDue()
        }
    }

    /// Tells nobody any more.
    func stop() {
        isStopped = true
        marksTimer = nil
        gatherTimer = nil
        // They know the batcher, and the batcher them.
        hubs = []
        fronts = []
    }
}
