import Core
import ServiceKit
import Synchronization

/// This process among the other chats: what it passes on to them, and where they pass on to it.
public final class ChatInstance: Sendable {
    /// The way to the sessions of others, for the service's Socket.IO.
    public let passOn: InstancePassOn

    private let configuration: ChatConfiguration
    private let context: ServiceContext
    private let log: Log
    private let listener = Mutex<PassOnListener?>(nil)

    public init(
        _ configuration: ChatConfiguration, instances: any ChatInstanceRepository, context: ServiceContext, log: Log
    ) {
        self.configuration = configuration
        self.context = context
        self.log = log
        passOn = InstancePassOn(
            loops: context.loops, instances: instances, keys: configuration.keys, limits: configuration.limits.passOn,
            clock: context.clock, metrics: context.metrics)
    }

    /// Listens for what others pass on, where that is configured. Once, and before the chat starts: whose row
    /// is written can be reached.
    /// - Throws: `AddressError` when the address is taken, or not one of this machine.
    public func listen(for chat: ChatService) async throws {
        guard let port = configuration.internalPort else { return }
        let listener = PassOnListener(
            instance: configuration.instance, loops: context.loops, address: port.address, keys: configuration.keys,
            limits: configuration.limits.passOn, clock: context.clock, log: log, metrics: context.metrics,
            handler: { try await chat.answerPassedOn($0) })
        let address = try await listener.start()
        self.listener.withLock { $0 = listener }
        log.info(
            "listening for other chats",
            ["address": .string(address.description), "advertised": .string(port.advertised.description)])
    }

    /// Empty where others cannot reach this instance.
    public var internalAddress: String { configuration.internalPort?.advertised.description ?? "" }

    /// Takes no more from others, and lets what it has taken end within `graceSeconds`.
    public func drain(graceSeconds: Int) async {
        let listener = listener.withLock { $0 }
        await listener?.drain(graceSeconds: graceSeconds)
    }
}
