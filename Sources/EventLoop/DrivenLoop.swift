/// A driven loop has no thread: whoever made it says when it runs and what time it is. For simulations, in which
/// everything happens in an order that a seed decides (the simulator of the chat).
///
/// Drive all loops that know each other from one thread.
extension EventLoop {
    public convenience init(driven name: String, index: Int = 0, milliseconds: UInt64 = 0) {
        self.init(name: name, index: index, driven: DrivenClock(milliseconds))
    }

    public var isDriven: Bool { driven != nil }

    /// Runs what is due at this time, once, as a real loop does between two looks at its sockets. A time before the
    /// one of the turn before counts as that.
    public func turn(at milliseconds: UInt64) {
        guard let driven else { preconditionFailure("\(name) has a thread of its own") }
        runTurn(driven, at: milliseconds)
    }

    /// Whether something waits for the next turn, whatever its time.
    public var isDue: Bool { driven?.isDue ?? false }

    /// When the next timer is due, in the loop's milliseconds.
    public var nextTimerMilliseconds: UInt64? { driven?.next }
}

/// The clock of a driven loop: it stands still between turns, and fires timers as libuv does.
final class DrivenClock {
    private struct Entry {
        let timer: Unmanaged<LoopTimer>
        var due: UInt64
        var order: Int
        var repeating: UInt64
    }

    private(set) var now: UInt64
    /// Something waits for the next turn, timers aside.
    var isDue = false
    /// When the next timer is due.
    private(set) var next: UInt64?
    /// A loop has few timers: looked through each time. A timer takes itself out before it is gone.
    private var entries: [Entry] = []
    private var started = 0

    init(_ now: UInt64) { self.now = now }

    func goOn(to milliseconds: UInt64) { now = max(now, milliseconds) }

    func start(_ timer: LoopTimer, milliseconds: UInt64, repeating: UInt64) {
        cancel(timer)
        add(Entry(timer: .passUnretained(timer), due: now + milliseconds, order: 0, repeating: repeating))
    }

    private func add(_ entry: Entry) {
        started += 1
        var entry = entry
        entry.order = started
        entries.append(entry)
        next = min(next ?? .max, entry.due)
    }

    private func findNext() {
        next = nil
        for entry in entries { next = min(next ?? .max, entry.due) }
    }

    func cancel(_ timer: LoopTimer) {
        let handle = Unmanaged.passUnretained(timer).toOpaque()
        guard let index = entries.firstIndex(where: { $0.timer.toOpaque() == handle }) else { return }
        entries.remove(at: index)
        findNext()
    }

    /// Fires what is due, in the order of the times, then of the starts. Timers started meanwhile wait for the next
    /// turn; one that repeats fires once, however much time went by.
    func fire() {
        guard let next, next <= now else { return }
        let last = started
        defer { findNext() }
        while let index = dueIndex(upTo: last) {
            var entry = entries.remove(at: index)
            if entry.repeating > 0 {
                entry.due = now + entry.repeating
                add(entry)
            }
            // Retained for the call: the body may let go of the timer.
            entry.timer.takeUnretainedValue().fire()
        }
    }

    private func dueIndex(upTo order: Int) -> Int? {
        entries.indices.filter { entries[$0].due <= now && entries[$0].order <= order }
            .min { (entries[$0].due, entries[$0].order) < (entries[$1].due, entries[$1].order) }
    }
}
