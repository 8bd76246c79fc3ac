/// JSON text inside a JSON string: the app of contracts/01 takes every argument as a string to be parsed again.
enum EscapedJSON {
    /// What stands between the quotes. The text is JSON as `JSONWriter` makes it: it has no control characters.
    static func append(_ json: [UInt8], to bytes: inout [UInt8]) {
        json.withUnsafeBufferPointer { json in
            // Runs without an escape are copied whole.
            var start = 0
            for index in 0..<json.count where json[index] == quote || json[index] == backslash {
                bytes.append(contentsOf: UnsafeBufferPointer(rebasing: json[start..<index]))
                bytes.append(backslash)
                start = index
            }
            bytes.append(contentsOf: UnsafeBufferPointer(rebasing: json[start...]))
        }
    }

    static func bytes(_ json: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(json.count + json.count / 4)
        append(json, to: &bytes)
        return bytes
    }

    /// Bytes of a text's byte in here: escaped once, and its escapes once more.
    static func count(of byte: UInt8) -> Int {
        switch byte {
        case quote, backslash: 4
        case 0x09, 0x0A, 0x0D: 3
        case 0..<0x20: 7
        default: 1
        }
    }

    private static let quote = UInt8(ascii: "\"")
    private static let backslash = UInt8(ascii: "\\")
}
