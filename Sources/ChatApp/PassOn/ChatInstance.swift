import Core
import ServiceKit
import Synchronization

/// This process among the other chats: what it passes on to them, where they pass on to it, and its row in
/// `chat_instances`.
public final class ChatInstance: Sendable {
    /// The way to the sessions of others, for the service's Socket.IO.
    public let passOn: InstancePassOn

    private let configuration: ChatConfiguration
    private let instances: any ChatInstanceRepository
    private let context: ServiceContext
    private let log: Log
    private let listener = Mutex<PassOnListener?>(nil)

    public init(
        _ configuration: ChatConfiguration, instances: any ChatInstanceRepository, context: ServiceContext, log: Log
    ) {
        self.configuration = configuration
        self.instances = instances
        self.context = context
        self.log = log
        passOn = InstancePassOn(
            loops: context.loops, instances: instances, keys: configuration.keys, limits: configuration.limits.passOn,
            clock: context.clock, metrics: context.metrics)
    }

    /// Listens for what others pass on, where that is configured. Once, and before `register`: who is registered can be
    /// reached.
    /// - Throws: `LoopError` when the address is taken, or not one of this machine.
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
    private var advertised: String { configuration.internalPort?.advertised.description ?? "" }

    /// - Throws: `AppError.unavailable`.
    public func register() async throws {
        try await instances.start(configuration.instance, internalAddress: advertised)
    }

    /// Takes no more from others, and lets what it has taken end within `graceSeconds`.
    public func drain(graceSeconds: Int) async {
        let listener = listener.withLock { $0 }
        await listener?.drain(graceSeconds: graceSeconds)
    }

    /// A row that stays costs the others a refused connection, so a database that is away is no reason to wait.
    public func unregister() async {
        try? await instances.stop(configuration.instance, internalAddress: advertised)
    }
}
