import Core
import EventLoop
import Foundation
import ServiceKit
import Synchronization
import Testing

@testable import ChatApp

/// The batcher on a loop whose time is the test's, before rooms that answer when the test says so.
private final class Batching {
    let loop = EventLoop(driven: "batches")
    let rooms = WatchedRooms()
    let batcher: SendBatcher
    private var now: UInt64 = 0
    private var said = 0

    init() {
        let (metrics, log) = (Metrics(), Log.silent)
        let presence = PresenceFeed(
            on: loop, process: ChatProcess(name: "a", run: 1), sender: "a", presence: WatchedPresence(), rooms: rooms,
            notify: false, limits: PresenceLimits(), log: log, metrics: metrics)
        let feed = RoomFeed(
            on: loop, rooms: rooms, presence: presence, notify: false, limits: ChatLimits(), log: log,
            measures: FeedMetrics(metrics, clock: SystemClock()))
        batcher = SendBatcher(
            on: loop, rooms: rooms, feed: feed, sender: nil, limits: ChatLimits(), log: log, metrics: metrics)
    }

    /// Lets milliseconds go by, one at a time, and everything happen that is due.
    func pass(_ milliseconds: UInt64 = 0) {
        for step in 0...milliseconds {
            if step > 0 { now += 1 }
            repeat { loop.turn(at: now) } while loop.isDue
        }
    }

    func say(_ count: Int = 1) throws {
        for _ in 0..<count {
            said += 1
            let draft = try Message.Draft(roomID: Room.ID(1), senderID: User.ID(1), clientID: "\(said)", body: "x")
            batcher.submit([SendBatcher.Send(draft: draft, hub: 0, socket: 0)])
        }
        pass()
    }

    /// The sizes of the batches that have been begun since the last question; they are answered.
    func begun() -> [Int] {
        let batches = rooms.takeBatches()
        for batch in batches {
            batch.answer.resume(
                returning: batch.drafts.map { _ in .sent(seq: 1, createdAt: Date(timeIntervalSince1970: 0)) })
        }
        pass()
        return batches.map(\.drafts.count)
    }
}

private final class Flag: Sendable {
    let value = Atomic(false)
}

@Suite("Batches of sends")
struct BatchTests {
    @Test("those who were answered and send again go with those who waited")
    func gathers() throws {
        let batching = Batching()
        try batching.say()
        try batching.say(7)
        #expect(batching.begun() == [1])
        // Seven wait, and the first may come again.
        #expect(batching.begun() == [])
        try batching.say()
        #expect(batching.begun() == [8])
        try batching.say(7)
        #expect(batching.begun() == [])
        try batching.say()
        #expect(batching.begun() == [8])
    }

    @Test("they are not waited for longer than a millisecond")
    func ends() throws {
        let batching = Batching()
        try batching.say()
        try batching.say(3)
        #expect(batching.begun() == [1])
        batching.pass(1)
        #expect(batching.begun() == [3])
        batching.pass(1)
        try batching.say()
        #expect(batching.begun() == [1])
    }

    @Test("who sends alone does not wait, and nobody does once there is enough for a batch")
    func atOnce() throws {
        let batching = Batching()
        for _ in 0..<3 {
            try batching.say()
            #expect(batching.begun() == [1])
        }
        let most = ChatLimits().batchSendsMax
        try batching.say()
        try batching.say(most + 1)
        #expect(batching.begun() == [1])
        #expect(batching.begun() == [most])
    }

    @Test("a service that ends waits for nobody")
    func drains() async throws {
        let batching = Batching()
        try batching.say()
        try batching.say(3)
        #expect(batching.begun() == [1])
        let (batcher, isDrained) = (batching.batcher, Flag())
        Task {
            await batcher.drain()
            isDrained.value.store(true, ordering: .relaxed)
        }
        var begun: [Int] = []
        while !isDrained.value.load(ordering: .relaxed) {
            begun += batching.begun()
            await Task.yield()
        }
        #expect(begun == [3])
    }
}
