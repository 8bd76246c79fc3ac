import Dispatch

/// Holds a thread until it is opened, and tells when the thread has come.
final class DispatchGate: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)
    private let arrived = AsyncStream<Void>.makeStream()

    func wait() {
        arrived.continuation.yield()
        semaphore.wait()
    }

    func entered() async {
        for await _ in arrived.stream { return }
    }

    func open() {
        semaphore.signal()
    }
}
