import JSON

/// What a client emits.
public struct SocketEvent: Sendable, Equatable {
    public let name: String
    /// Where a binary value was there is `{"_placeholder":true,"num":n}`, n being its place in `attachments`.
    public let arguments: [JSONValue]
    public let attachments: [[UInt8]]
    /// The client waits for an acknowledgement with this number.
    public let ack: Int64?

    public init(name: String, arguments: [JSONValue], attachments: [[UInt8]] = [], ack: Int64? = nil) {
        self.name = name
        self.arguments = arguments
        self.attachments = attachments
        self.ack = ack
    }
}

/// The namespaces of one session of Engine.IO: Socket.IO v5, server's side, without anything that sends.
public struct SocketConnection: Sendable {
    public enum Action: Sendable, Equatable {
        /// A client asks for a namespace; `accept` or `refuse` is the answer.
        case connect(serial: Int32, namespace: String, auth: JSONValue?)
        case event(serial: Int32, SocketEvent)
        /// The client acknowledges what it was sent with this id.
        case acknowledged(serial: Int32, id: Int64, SocketEvent)
        /// The client left a namespace.
        case disconnected(serial: Int32)
        case reply(EnginePacket)
        /// The session is to be closed: what came is against the protocol, or too late.
        case close
    }

    struct Namespace: Sendable {
        let serial: Int32
        let name: String
        var isConnected = false
    }

    /// A binary packet whose attachments are still coming.
    struct Partial: Sendable {
        let packet: SocketPacket
        var attachments: [[UInt8]] = []
        var bytes = 0
    }

    /// Nearly always one.
    private(set) var namespaces: [Namespace] = []
    private var partial: Partial?
    private var lastSerial: Int32 = 0
    private let limits: SocketIOLimits
    /// Until when there must be a namespace; `.max` while there is one.
    public private(set) var deadline: UInt64

    public init(limits: SocketIOLimits, now: UInt64) {
        self.limits = limits
        deadline = now + limits.connectMillisecondsMax
    }

    public static let invalidNamespace = "Invalid namespace"

    public func name(of serial: Int32) -> String? { namespaces.first { $0.serial == serial }?.name }
    public func isConnected(_ serial: Int32) -> Bool { namespaces.contains { $0.serial == serial && $0.isConnected } }

    /// Those that are connected.
    public var serials: [Int32] { namespaces.filter(\.isConnected).map(\.serial) }

    /// Whether the client has been too long without a namespace.
    public func isLate(now: UInt64) -> Bool { now >= deadline }

    // MARK: What comes

    public mutating func received(_ message: EnginePacket, now: UInt64) -> [Action] {
        if message.isBinary { return attachment(message.encoded) }
        // Nothing may come between a binary packet and its attachments.
        guard partial == nil else { return [.close] }
        let packet: SocketPacket
        do throws(SocketFault) {
            packet = try SocketPacket(message.data, limits: limits)
        } catch {
            return [.close]
        }
        guard !packet.kind.isBinary else {
            guard isConnected(packet.namespace) else { return [.close] }
            partial = Partial(packet: packet)
            return []
        }
        return take(packet, [], now: now)
    }

    private mutating func attachment(_ bytes: [UInt8]) -> [Action] {
        guard var partial else { return [.close] }
        self.partial = nil
        partial.attachments.append(bytes)
        partial.bytes += bytes.count
        guard partial.bytes <= limits.payloadBytesMax else { return [.close] }
        guard partial.attachments.count == partial.packet.attachments else {
            self.partial = partial
            return []
        }
        return take(partial.packet, partial.attachments, now: 0)
    }

    private func isConnected(_ name: String) -> Bool { namespaces.contains { $0.name == name && $0.isConnected } }

    private mutating func take(_ packet: SocketPacket, _ attachments: [[UInt8]], now: UInt64) -> [Action] {
        let place = namespaces.firstIndex { $0.name == packet.namespace }
        if packet.kind == .connect { return place == nil ? connect(packet) : [.close] }
        // What is said in a namespace before it is joined ends the session, as in the reference.
        guard let place, namespaces[place].isConnected else { return [.close] }
        let serial = namespaces[place].serial
        switch packet.kind {
        case .disconnect:
            remove(place, now: now)
            return [.disconnected(serial: serial)]
        case .event, .binaryEvent:
            guard case .array(let values)? = packet.data, let name = packet.eventName else { return [.close] }
            let event = SocketEvent(
                name: name, arguments: Array(values.dropFirst()), attachments: attachments, ack: packet.id)
            return [.event(serial: serial, event)]
        case .ack, .binaryAck:
            guard case .array(let values)? = packet.data, let id = packet.id else { return [.close] }
            let answer = SocketEvent(name: "", arguments: values, attachments: attachments)
            return [.acknowledged(serial: serial, id: id, answer)]
        case .connect, .connectError: return [.close]
        }
    }

    private mutating func connect(_ packet: SocketPacket) -> [Action] {
        guard namespaces.count < limits.namespacesMax else {
            return [.reply(Self.refusal(packet.namespace, message: "Too many namespaces", data: nil))]
        }
        lastSerial &+= 1
        namespaces.append(Namespace(serial: lastSerial, name: packet.namespace))
        return [.connect(serial: lastSerial, namespace: packet.namespace, auth: packet.data)]
    }

    private mutating func remove(_ place: Int, now: UInt64) {
        namespaces.remove(at: place)
        if !namespaces.contains(where: \.isConnected) { deadline = now + limits.connectMillisecondsMax }
    }

    // MARK: What the application answers

    /// - Returns: what tells the client; nil when it is not waiting for an answer.
    public mutating func accept(_ serial: Int32, sid: String) -> EnginePacket? {
        guard let place = namespaces.firstIndex(where: { $0.serial == serial && !$0.isConnected }) else { return nil }
        namespaces[place].isConnected = true
        deadline = .max
        return SocketPacket.message(.connect, namespace: namespaces[place].name, json: #"{"sid":"\#(sid)"}"#.utf8)
    }

    /// - Parameter data: written out, valid JSON, for the client's program.
    /// - Returns: as `accept`.
    public mutating func refuse(_ serial: Int32, message: String, data: [UInt8]?) -> EnginePacket? {
        guard let place = namespaces.firstIndex(where: { $0.serial == serial && !$0.isConnected }) else { return nil }
        let name = namespaces.remove(at: place).name
        return Self.refusal(name, message: message, data: data)
    }

    private static func refusal(_ namespace: String, message: String, data: [UInt8]?) -> EnginePacket {
        var json = JSONWriter(capacity: 64)
        json.value(message)
        var object = Array(#"{"message":"#.utf8) + json.finish()
        if let data { object += Array(#","data":"#.utf8) + data }
        object.append(UInt8(ascii: "}"))
        return SocketPacket.message(.connectError, namespace: namespace, json: object)
    }

    /// The application ends a namespace.
    /// - Returns: what tells the client; nil when it was not connected.
    public mutating func disconnect(_ serial: Int32, now: UInt64) -> EnginePacket? {
        guard let place = namespaces.firstIndex(where: { $0.serial == serial }) else { return nil }
        let namespace = namespaces[place]
        remove(place, now: now)
        return namespace.isConnected ? SocketPacket.message(.disconnect, namespace: namespace.name) : nil
    }

    /// The session is over.
    /// - Returns: the namespaces that the application is to be told about.
    public mutating func end() -> [Int32] {
        defer {
            namespaces = []
            partial = nil
            deadline = .max
        }
        return namespaces.map(\.serial)
    }
}
