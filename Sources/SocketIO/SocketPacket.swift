import JSON

/// Why a message is no packet of Socket.IO. The connection that sent it is closed, as the reference closes it.
public enum SocketFault: Error, Sendable {
    case malformed
    case tooMuch
}

/// A packet of Socket.IO v5, the text part: `<type>[<attachments>-][<namespace>,][<ack id>][JSON]`.
///
/// Source: the socket.io-protocol repository, README of v5, "Packet encoding".
public struct SocketPacket: Sendable, Equatable {
    public enum Kind: UInt8, Sendable {
        case connect = 0x30
        case disconnect, event, ack, connectError, binaryEvent, binaryAck

        var isBinary: Bool { self == .binaryEvent || self == .binaryAck }
    }

    public let kind: Kind
    public let namespace: String
    public let id: Int64?
    /// How many binary messages follow; 0 for the other types.
    public let attachments: Int
    public let data: JSONValue?

    public static let root = "/"

    /// These mean something else on either side, so nobody may send them as events (socket.io-parser).
    static let reservedNames: Set<String> = [
        "connect", "connect_error", "disconnect", "disconnecting", "newListener", "removeListener",
    ]

    /// - Parameter text: what follows the `4`, of a text message.
    public init(_ text: ArraySlice<UInt8>, limits: SocketIOLimits) throws(SocketFault) {
        guard let first = text.first, let kind = Kind(rawValue: first) else { throw .malformed }
        var rest = text.dropFirst()
        self.kind = kind
        attachments = kind.isBinary ? try Self.attachments(&rest, max: limits.attachmentsMax) : 0
        namespace = try Self.namespace(&rest, bytesMax: limits.namespaceBytesMax)
        id = try Self.id(&rest, digitsMax: limits.ackDigitsMax)
        data = rest.isEmpty ? nil : try Self.json(rest, limits: limits)
        guard isValid else { throw .malformed }
    }

    private static func attachments(_ rest: inout ArraySlice<UInt8>, max: Int) throws(SocketFault) -> Int {
        let digits = rest.prefix { (0x30...0x39).contains($0) }
        guard !digits.isEmpty, digits.count <= 10, let count = Int(String(decoding: digits, as: UTF8.self)), count > 0,
            rest.dropFirst(digits.count).first == UInt8(ascii: "-")
        else { throw .malformed }
        guard count <= max else { throw .tooMuch }
        rest = rest.dropFirst(digits.count + 1)
        return count
    }

    /// Up to the comma, or to the end where there is none: `40/admin` is sent, too. The Swift client names the root.
    private static func namespace(_ rest: inout ArraySlice<UInt8>, bytesMax: Int) throws(SocketFault) -> String {
        guard rest.first == UInt8(ascii: "/") else { return root }
        let name = rest.prefix { $0 != UInt8(ascii: ",") }
        guard name.count <= bytesMax else { throw .tooMuch }
        guard let text = String(validating: name, as: UTF8.self) else { throw .malformed }
        rest = rest.dropFirst(name.count + 1)
        return text
    }

    private static func id(_ rest: inout ArraySlice<UInt8>, digitsMax: Int) throws(SocketFault) -> Int64? {
        let digits = rest.prefix { (0x30...0x39).contains($0) }
        guard !digits.isEmpty else { return nil }
        guard digits.count <= digitsMax, let id = Int64(String(decoding: digits, as: UTF8.self)) else { throw .tooMuch }
        rest = rest.dropFirst(digits.count)
        return id
    }

    private static func json(_ rest: ArraySlice<UInt8>, limits: SocketIOLimits) throws(SocketFault) -> JSONValue {
        var bounds = JSONLimits()
        bounds.depthMax = limits.depthMax
        bounds.valuesMax = limits.valuesMax
        do throws(JSONFault) {
            return try JSONValue(parsing: Array(rest), limits: bounds)
        } catch {
            throw .malformed
        }
    }

    private var isValid: Bool {
        switch kind {
        case .connect:
            guard let data else { return true }
            if case .object = data { return true }
            return false
        case .disconnect: return data == nil
        case .event, .binaryEvent: return eventName != nil && hasPlaceholders
        case .ack, .binaryAck:
            guard case .array? = data, id != nil else { return false }
            return hasPlaceholders
        case .connectError: return data != nil
        }
    }

    /// Of an event: the first of its values. The reference takes numbers for names, too.
    var eventName: String? {
        guard case .array(let values)? = data else { return nil }
        switch values.first {
        case .string(let name)? where !Self.reservedNames.contains(name): return name
        case .int(let number)?: return String(number)
        default: return nil
        }
    }

    /// Whether every placeholder stands for an attachment that there is.
    private var hasPlaceholders: Bool {
        guard kind.isBinary, let data else { return true }
        return Self.placeholders(in: data).allSatisfy { (0..<Int64(attachments)).contains($0) }
    }

    /// The numbers of all `{"_placeholder":true,"num":n}`; -1 for one without a number.
    private static func placeholders(in value: JSONValue) -> [Int64] {
        switch value {
        case .array(let values): return values.flatMap(placeholders)
        case .object(let members):
            guard members["_placeholder"] == .bool(true) else { return members.values.flatMap(placeholders) }
            guard case .int(let number)? = members["num"] else { return [-1] }
            return [number]
        default: return []
        }
    }

    // MARK: Writing

    /// The text part as a message of Engine.IO; attachments follow it as binary packets.
    /// - Parameter json: written out, valid JSON; empty for none.
    public static func message(
        _ kind: Kind, namespace: String = root, id: Int64? = nil, attachments: Int = 0,
        json: some Collection<UInt8> = [UInt8]()
    ) -> EnginePacket {
        var text: [UInt8] = []
        text.reserveCapacity(json.count + namespace.utf8.count + 24)
        text.append(kind.rawValue)
        if kind.isBinary {
            text += String(attachments).utf8
            text.append(UInt8(ascii: "-"))
        }
        if namespace != root {
            text += namespace.utf8
            text.append(UInt8(ascii: ","))
        }
        if let id { text += String(id).utf8 }
        text += json
        return EnginePacket(.message, text)
    }
}
