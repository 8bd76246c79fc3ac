/// The jobs of one loop thread, first in, first out.
///
/// A ring of its own instead of an array: every request passes here several times, and an array in a property is
/// checked for exclusive access and for uniqueness each time.
struct JobQueue {
    private var base: UnsafeMutablePointer<UnownedJob>
    /// A power of two.
    private var capacity: Int
    private var head = 0
    private var count = 0

    init() {
        capacity = 256
        base = .allocate(capacity: capacity)
    }

    var isEmpty: Bool { count == 0 }

    mutating func append(_ job: UnownedJob) {
        if count == capacity { grow() }
        (base + ((head + count) & (capacity - 1))).initialize(to: job)
        count += 1
    }

    mutating func popFirst() -> UnownedJob? {
        guard count > 0 else { return nil }
        let job = (base + head).move()
        head = (head + 1) & (capacity - 1)
        count -= 1
        return job
    }

    private mutating func grow() {
        let larger = UnsafeMutablePointer<UnownedJob>.allocate(capacity: capacity * 2)
        for index in 0..<count {
            (larger + index).moveInitialize(from: base + ((head + index) & (capacity - 1)), count: 1)
        }
        base.deallocate()
        base = larger
        capacity *= 2
        head = 0
    }

    /// What is still queued is never run.
    func deallocate() { base.deallocate() }
}
