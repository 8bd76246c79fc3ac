import Core
import EventLoop

/// Where the chat instances are, as one loop knows it: their rows, read all at once and kept for seconds.
actor InstanceDirectory {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private let instances: any ChatInstanceRepository
    private let limits: PassOnLimits
    private var addresses: [String: SocketAddress] = [:]
    private var readAt: UInt64?
    private var triedAt: UInt64?
    private var isReading = false
    private var waiting: [CheckedContinuation<Void, any Error>] = []
    private var pause: LoopTimer?

    init(on loop: EventLoop, instances: any ChatInstanceRepository, limits: PassOnLimits) {
        self.loop = loop
        self.instances = instances
        self.limits = limits
    }

    /// Nil when there is no instance of this name, or it takes no requests from others.
    /// - Throws: `AppError.unavailable` when nothing is known and the rows cannot be read.
    func address(of name: String) async throws -> SocketAddress? {
        let isFresh = readAt.map { loop.nowMilliseconds - $0 <= UInt64(limits.directorySecondsMax) * 1000 } ?? false
        if isFresh, let address = addresses[name] { return address }
        do {
            return try await addressAgain(of: name)
        } catch {
            // An address that was right some seconds ago is better than none; the owner is asked who it is anyway.
            guard let address = addresses[name] else { throw error }
            return address
        }
    }

    /// As above, by rows that are read after this call.
    func addressAgain(of name: String) async throws -> SocketAddress? {
        try await withCheckedThrowingContinuation { continuation in
            waiting.append(continuation)
            guard !isReading else { return }
            isReading = true
            _ = Task(executorPreference: loop) { await self.read() }
        }
        return addresses[name]
    }

    /// Reads for all who wait, and again for those who came meanwhile: what they look for may have been written since.
    private func read() async {
        while !waiting.isEmpty {
            await rest()
            triedAt = loop.nowMilliseconds
            let due = waiting
            waiting = []
            do {
                let rows = try await instances.all()
                addresses = [:]
                for row in rows { addresses[row.name] = SocketAddress(row.internalAddress) }
                readAt = loop.nowMilliseconds
                for continuation in due { continuation.resume() }
            } catch {
                for continuation in due { continuation.resume(throwing: error) }
            }
        }
        isReading = false
    }

    private func rest() async {
        guard let triedAt else { return }
        let since = loop.nowMilliseconds - triedAt
        guard since < limits.directoryMillisecondsMin else { return }
        await withCheckedContinuation { continuation in
            let pause = LoopTimer(on: loop) { continuation.resume() }
            self.pause = pause
            pause.start(milliseconds: limits.directoryMillisecondsMin - since)
        }
        pause = nil
    }
}
