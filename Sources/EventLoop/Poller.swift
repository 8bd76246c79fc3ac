import Cuv

/// Watches a file descriptor that another library owns (libpq's socket, say). On the loop's thread only.
public final class Poller {
    public struct Events: OptionSet, Sendable {
        public let rawValue: Int32
        public init(rawValue: Int32) { self.rawValue = rawValue }
        public static let readable = Events(rawValue: 1)
        public static let writable = Events(rawValue: 2)
    }

    private let handle: UnsafeMutablePointer<uv_poll_t>
    private let body: (Events) -> Void
    private var watched: Events = []
    private var open = true

    /// - Parameter body: what is ready; an error of the descriptor shows as both.
    public init(on loop: EventLoop, descriptor: Int32, _ body: @escaping (Events) -> Void) {
        self.body = body
        handle = .allocate(capacity: 1)
        uv_poll_init(loop.uv, handle, descriptor)
        handle.pointee.data = Unmanaged.passUnretained(self).toOpaque()
    }

    deinit {
        if open { close() }
    }

    /// Changes what is watched; nothing stops watching.
    public func watch(_ events: Events) {
        guard open, events != watched else { return }
        watched = events
        guard !events.isEmpty else {
            uv_poll_stop(handle)
            return
        }
        uv_poll_start(handle, events.rawValue) { handle, status, ready in
            guard let data = handle?.pointee.data else { return }
            let poller = Unmanaged<Poller>.fromOpaque(data).takeUnretainedValue()
            poller.body(status < 0 ? [.readable, .writable] : Events(rawValue: ready))
        }
    }

    /// Stops for good. Call before the owner closes the descriptor.
    public func close() {
        guard open else { return }
        open = false
        handle.pointee.data = nil
        uv_poll_stop(handle)
        closeAndFree(handle)
    }
}
