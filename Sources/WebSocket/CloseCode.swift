/// Why a connection ends (RFC 6455 §7.4 and the registry it set up).
public struct CloseCode: Sendable, Hashable, RawRepresentable, CustomStringConvertible {
    public let rawValue: UInt16

    public init(rawValue: UInt16) { self.rawValue = rawValue }

    public static let normal = CloseCode(rawValue: 1000)
    public static let goingAway = CloseCode(rawValue: 1001)
    public static let protocolError = CloseCode(rawValue: 1002)
    public static let unsupportedData = CloseCode(rawValue: 1003)
    /// Never sent: the peer's close frame had no code.
    public static let noStatus = CloseCode(rawValue: 1005)
    /// Never sent: the connection ended without a close frame.
    public static let abnormal = CloseCode(rawValue: 1006)
    public static let invalidData = CloseCode(rawValue: 1007)
    public static let policyViolation = CloseCode(rawValue: 1008)
    public static let tooBig = CloseCode(rawValue: 1009)
    public static let internalError = CloseCode(rawValue: 1011)
    public static let serviceRestart = CloseCode(rawValue: 1012)
    public static let tryAgainLater = CloseCode(rawValue: 1013)

    /// Whether a close frame may carry it: registered for that, or of libraries (3000) or applications (4000).
    public var isSendable: Bool {
        switch rawValue {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }

    public var description: String { String(rawValue) }
}

/// What a peer did that ends its connection, and the code to tell it.
public struct WebSocketFault: Error, Equatable, Sendable {
    public let code: CloseCode
    /// One sentence for the peer; at most 123 bytes, as a close frame holds no more.
    public let reason: String

    public init(_ code: CloseCode, _ reason: String) {
        self.code = code
        self.reason = reason
    }
}
