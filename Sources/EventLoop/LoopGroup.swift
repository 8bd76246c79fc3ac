import Synchronization

/// The loops of a process, by index. Work that starts outside of them is spread in turn.
public final class LoopGroup: Sendable {
    public let loops: [EventLoop]
    private let next = Atomic<Int>(0)

    /// - Parameter count: at least 1; one loop a core is the use.
    public init(count: Int, name: String = "loop") {
        loops = (0..<max(1, count)).map { EventLoop(name: "\(name)-\($0)", index: $0) }
    }

    /// Loops that are driven (DrivenLoop.swift).
    public init(driven loops: [EventLoop]) {
        precondition(!loops.isEmpty && loops.enumerated().allSatisfy { $0 == $1.index && $1.isDriven })
        self.loops = loops
    }

    /// The caller's own loop when it is one of these, otherwise the next in turn.
    public func here() -> EventLoop {
        if let current = EventLoop.current, current.index < loops.count, loops[current.index] === current {
            return current
        }
        let turn = next.wrappingAdd(1, ordering: .relaxed).oldValue
        return loops[Int(UInt(bitPattern: turn) % UInt(loops.count))]
    }

    public func stop() async {
        for loop in loops { await loop.stop() }
    }
}
