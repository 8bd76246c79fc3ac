import EventLoop
import Seeded

/// What went wrong in a simulation, in a sentence.
struct Violation: Error, CustomStringConvertible {
    let description: String
}

/// Time, chance and order of one simulation: everything that happens is an event of its queue, on one thread, and the
/// seed decides when. The same seed is the same run, byte for byte, where sets and dictionaries have an order
/// (`SWIFT_DETERMINISTIC_HASHING`, see ops/scripts/test).
final class World {
    private struct Event {
        let time: UInt64
        /// Of events of the same time, the smaller comes first: chance orders what nothing else does.
        let tie: UInt64
        let body: () -> Void
    }

    let seed: UInt64
    /// Milliseconds since the start.
    private(set) var now: UInt64 = 0
    /// While true, faults may be drawn.
    var isFaulty = true
    private(set) var violation: Violation?
    /// Of everything that was noted, in order.
    private(set) var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    private(set) var lines: [String] = []
    private let keepsLines: Bool
    private var random: SeededGenerator
    /// The next event is the last one.
    private var events: [Event] = []
    private(set) var count = 0

    init(seed: UInt64, keepsLines: Bool) {
        self.seed = seed
        self.keepsLines = keepsLines
        random = SeededGenerator(seed: seed &* 0x9E37_79B9 &+ 7)
    }

    // MARK: Chance

    /// From 0 to `bound`, that left out.
    func below(_ bound: Int) -> Int { Int(random.next() >> 33) % max(1, bound) }

    func chance(_ percent: Int) -> Bool { below(100) < percent }

    /// A fault that comes so often, while there are faults.
    func fault(_ percent: Int) -> Bool { isFaulty && percent > 0 && chance(percent) }

    func pick<Element>(_ list: [Element]) -> Element? { list.isEmpty ? nil : list[below(list.count)] }

    /// Mostly at once, sometimes soon, seldom late.
    func delay(upTo milliseconds: Int) -> UInt64 {
        switch below(8) {
        case 0...4: UInt64(below(3))
        case 5, 6: UInt64(below(milliseconds / 4 + 1))
        default: UInt64(below(milliseconds + 1))
        }
    }

    // MARK: Order

    func after(_ milliseconds: UInt64, _ body: @escaping () -> Void) {
        let event = Event(time: now + milliseconds, tie: random.next(), body: body)
        var (low, high) = (0, events.count)
        while low < high {
            let middle = (low + high) / 2
            let other = events[middle]
            if other.time > event.time || other.time == event.time && other.tie > event.tie {
                low = middle + 1
            } else {
                high = middle
            }
        }
        events.insert(event, at: low)
    }

    /// Runs the next event. False when there is none before `end`.
    func step(until end: UInt64) -> Bool {
        guard violation == nil, let event = events.last, event.time <= end else { return false }
        events.removeLast()
        now = event.time
        count += 1
        event.body()
        return true
    }

    /// Lets go of everything that was to come.
    func forget() { events = [] }

    // MARK: What is told

    func note(_ what: StaticString, _ first: Int64 = 0, _ second: Int64 = 0, _ more: @autoclosure () -> String = "") {
        mix(UInt64(what.utf8CodeUnitCount) << 8 | UInt64(what.utf8Start.pointee))
        mix(UInt64(bitPattern: first))
        mix(UInt64(bitPattern: second))
        mix(now)
        if keepsLines { lines.append("\(now) ms  \(what) \(first) \(second) \(more())") }
    }

    private func mix(_ value: UInt64) { hash = (hash ^ value) &* 0x100_0000_01B3 }

    /// The first one ends the simulation.
    func fail(_ sentence: String) {
        guard violation == nil else { return }
        violation = Violation(description: sentence)
        if keepsLines { lines.append("\(now) ms  FAILED: \(sentence)") }
    }
}
