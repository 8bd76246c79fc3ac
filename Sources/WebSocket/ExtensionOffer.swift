/// What a client offers in Sec-WebSocket-Extensions (RFC 6455 §9.1): the name of an extension and its parameters.
struct ExtensionOffer: Equatable {
    struct Parameter: Equatable {
        let name: String
        let value: String?
    }

    let name: String
    let parameters: [Parameter]

    /// - Returns: the offers of one header in their order; nil when it is not of the RFC's grammar.
    static func parse(_ header: String) -> [ExtensionOffer]? {
        var text = HeaderText(header)
        var offers: [ExtensionOffer] = []
        while true {
            text.skipSpace()
            // Lists of HTTP may have empty elements (RFC 9110 §5.6.1).
            if text.isAtEnd { return offers }
            if text.take(",") { continue }
            guard let offer = offer(&text) else { return nil }
            offers.append(offer)
            text.skipSpace()
            guard text.isAtEnd || text.take(",") else { return nil }
        }
    }

    private static func offer(_ text: inout HeaderText) -> ExtensionOffer? {
        guard let name = text.token() else { return nil }
        var parameters: [Parameter] = []
        text.skipSpace()
        while text.take(";") {
            text.skipSpace()
            guard let name = text.token() else { return nil }
            text.skipSpace()
            var value: String?
            if text.take("=") {
                text.skipSpace()
                value = text.quoted() ?? text.token()
                guard value != nil else { return nil }
                text.skipSpace()
            }
            parameters.append(Parameter(name: name.lowercased(), value: value))
        }
        return ExtensionOffer(name: name.lowercased(), parameters: parameters)
    }
}

/// Reads the words of a header from its start to its end.
private struct HeaderText {
    private var rest: Substring.UTF8View

    init(_ text: String) { rest = text[...].utf8 }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func skipSpace() { rest = rest.drop { $0 == 0x20 || $0 == 0x09 } }

    mutating func take(_ character: Character) -> Bool {
        guard rest.first == character.asciiValue else { return false }
        rest = rest.dropFirst()
        return true
    }

    mutating func token() -> String? {
        let word = rest.prefix(while: Self.isToken)
        rest = rest[word.endIndex...]
        return word.isEmpty ? nil : String(word)
    }

    /// A value in quotation marks, which is a token too once it is out of them (RFC 6455 §9.1).
    mutating func quoted() -> String? {
        var text = self
        guard text.take("\""), let word = text.unescaped() else { return nil }
        self = text
        return word
    }

    private mutating func unescaped() -> String? {
        var word: [UInt8] = []
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "\"") { return word.isEmpty ? nil : String(validating: word, as: UTF8.self) }
            guard let plain = byte == UInt8(ascii: "\\") ? rest.popFirst() : byte, Self.isToken(plain) else {
                return nil
            }
            word.append(plain)
        }
        return nil
    }

    /// RFC 9110 §5.6.2
    private static func isToken(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}
