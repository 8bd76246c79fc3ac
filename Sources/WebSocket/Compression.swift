/// permessage-deflate as two peers agreed to it (RFC 7692 §7.1): without context takeover on either side, because then
/// a broadcast is compressed once for all of its sockets, and a socket needs no memory for it.
public struct Compression: Equatable, Sendable {
    static let name = "permessage-deflate"
    static let windowBitsMax = 15
    private static let windowBits = 8...windowBitsMax

    /// How far back a reference in what we send may reach, as a power of two: 8 to 15.
    public let windowBits: Int
    /// Whether the answer names the window: only a client that asked for one need know the parameter.
    private let isWindowTold: Bool

    /// The full window.
    public init() { self.init(windowBits: Self.windowBitsMax, isWindowTold: false) }

    private init(windowBits: Int, isWindowTold: Bool) {
        self.windowBits = windowBits
        self.isWindowTold = isWindowTold
    }

    /// Nil when the offer is of another extension, or has a parameter that §7.1 does not know or allow.
    init?(_ offer: ExtensionOffer) {
        guard offer.name == Self.name else { return nil }
        var seen: Set<String> = []
        var windowBits: Int?
        for parameter in offer.parameters {
            guard seen.insert(parameter.name).inserted else { return nil }
            switch parameter.name {
            case "server_no_context_takeover", "client_no_context_takeover":
                guard parameter.value == nil else { return nil }
            case "client_max_window_bits":
                // A hint: we read every window. It may stand without a value.
                guard parameter.value == nil || parameter.value.flatMap(Self.bits) != nil else { return nil }
            case "server_max_window_bits":
                windowBits = parameter.value.flatMap(Self.bits)
                guard windowBits != nil else { return nil }
            default: return nil
            }
        }
        self.init(windowBits: windowBits ?? Self.windowBitsMax, isWindowTold: windowBits != nil)
    }

    /// §7.1.2: digits without a leading zero.
    private static func bits(_ value: String) -> Int? { windowBits.first { String($0) == value } }

    /// What the 101 says of it.
    var header: String {
        "\(Self.name); server_no_context_takeover; client_no_context_takeover"
            + (isWindowTold ? "; server_max_window_bits=\(windowBits)" : "")
    }

    /// Longer messages go as they are. All sockets share one compressed form, made with the full window; within a
    /// smaller one it is right for as long as the whole message fits into that.
    var messageBytesMax: Int { windowBits == Self.windowBitsMax ? .max : 1 << windowBits }
}
