/// By the place of a socket: whether what goes to many may go to it by a send to its descriptor alone, as nothing waits
/// before it.
///
/// Packed, because a broadcast looks at a thousand of them: to visit each socket and its stream costs a tenth of the
/// system call, in memory that is cold by then.
struct DirectTable: ~Copyable {
    struct Entry {
        /// Whose entry it is: a place has many owners in its time.
        var id: Int
        /// -1: frames go the usual way.
        var descriptor: Int32
        /// Messages that are large enough to be compressed are other bytes there.
        var isCompressing: Bool

        static let none = Entry(id: 0, descriptor: -1, isCompressing: false)
    }

    private(set) var count = 0
    private var capacity = 64
    private var base: UnsafeMutablePointer<Entry>

    init() { base = .allocate(capacity: capacity) }

    deinit { base.deallocate() }

    mutating func append() {
        if count == capacity {
            let larger = UnsafeMutablePointer<Entry>.allocate(capacity: capacity * 2)
            larger.moveInitialize(from: base, count: count)
            base.deallocate()
            base = larger
            capacity *= 2
        }
        (base + count).initialize(to: .none)
        count += 1
    }

    subscript(place: Int) -> Entry {
        get {
            precondition(place < count)
            return base[place]
        }
        set {
            precondition(place < count)
            base[place] = newValue
        }
    }
}
