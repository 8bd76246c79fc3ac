import Cuv

/// A timer of one loop. Not Sendable: make, start and cancel it on the loop's thread.
public final class LoopTimer {
    /// Of a real loop; a driven one has a clock of its own.
    private let handle: UnsafeMutablePointer<uv_timer_t>?
    private let clock: DrivenClock?
    private let body: () -> Void

    /// The body runs on the loop's thread until `cancel()` or until the timer is released.
    public init(on loop: EventLoop, _ body: @escaping () -> Void) {
        self.body = body
        clock = loop.driven
        guard clock == nil else {
            handle = nil
            return
        }
        let handle = UnsafeMutablePointer<uv_timer_t>.allocate(capacity: 1)
        self.handle = handle
        uv_timer_init(loop.uv, handle)
        handle.pointee.data = Unmanaged.passUnretained(self).toOpaque()
    }

    deinit {
        clock?.cancel(self)
        guard let handle else { return }
        handle.pointee.data = nil
        closeAndFree(handle)
    }

    /// Fires once after `milliseconds`, then every `repeating` (0: once). Starting again replaces the former time.
    public func start(milliseconds: UInt64, repeating: UInt64 = 0) {
        guard let handle else {
            clock?.start(self, milliseconds: milliseconds, repeating: repeating)
            return
        }
        uv_timer_start(
            handle,
            { handle in
                guard let data = handle?.pointee.data else { return }
                // Retained for the call: the body may let go of the timer.
                let timer = Unmanaged<LoopTimer>.fromOpaque(data).takeUnretainedValue()
                timer.body()
            }, milliseconds, repeating)
    }

    public func cancel() {
        clock?.cancel(self)
        if let handle { uv_timer_stop(handle) }
    }

    /// The time has come on a driven loop.
    func fire() { body() }
}

/// libuv frees nothing: the memory of a handle may go only when its close callback has run.
func closeAndFree<Handle>(_ handle: UnsafeMutablePointer<Handle>) {
    let raw = UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_handle_t.self)
    // A loop that ends closes what is open. Closing twice would abort the process, so a handle's few bytes are left.
    guard uv_is_closing(raw) == 0 else { return }
    uv_close(raw) { handle in
        UnsafeMutableRawPointer(handle)?.deallocate()
    }
}
