/// Numbers as text from outside. Swift's own readers also take hexadecimal floats, `inf` and `nan`; no client means
/// them.
public enum DecimalText {
    /// Longer ones are no number that anyone wrote.
    static let lengthMax = 64

    /// Finite, in decimal digits with a sign, a point and an exponent at most.
    public static func double(_ text: String) -> Double? {
        guard isDecimal(text), let number = Double(text), number.isFinite else { return nil }
        return number
    }

    public static func float(_ text: String) -> Float? {
        guard isDecimal(text), let number = Float(text), number.isFinite else { return nil }
        return number
    }

    private static func isDecimal(_ text: String) -> Bool {
        text.utf8.count <= lengthMax
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "e"),
                    UInt8(ascii: "E"):
                    true
                default: false
                }
            }
    }
}
