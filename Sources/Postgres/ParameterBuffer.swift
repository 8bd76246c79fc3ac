/// Lays out a statement's binds as libpq wants them. One for each connection: its memory is used again and again.
final class ParameterBuffer {
    private var bytes: [UInt8] = []
    private var offsets: [Int] = []
    private var lengths: [Int32] = []
    private var formats: [Int32] = []
    private var pointers: [UnsafePointer<CChar>?] = []

    /// A statement larger than this does not leave its memory behind.
    private static let keptBytesMax = 64 * 1024

    /// Calls `body` with the number of parameters, their values (ended by NUL; nil for NULL), lengths and formats
    /// (0 text, 1 binary). The pointers are valid during the call.
    func with<T>(
        _ binds: [PostgresBind],
        _ body: (
            Int32, UnsafePointer<UnsafePointer<CChar>?>?, UnsafePointer<Int32>?, UnsafePointer<Int32>?
        ) -> T
    ) -> T {
        guard !binds.isEmpty else { return body(0, nil, nil, nil) }
        clear()
        for bind in binds { append(bind) }
        defer { if bytes.capacity > Self.keptBytesMax { bytes = [] } }
        return bytes.withUnsafeBytes { buffer in
            for offset in offsets {
                let start = offset < 0 ? nil : buffer.baseAddress?.advanced(by: offset)
                pointers.append(start?.assumingMemoryBound(to: CChar.self))
            }
            return pointers.withUnsafeBufferPointer { pointers in
                lengths.withUnsafeBufferPointer { lengths in
                    formats.withUnsafeBufferPointer { formats in
                        body(Int32(binds.count), pointers.baseAddress, lengths.baseAddress, formats.baseAddress)
                    }
                }
            }
        }
    }

    private func clear() {
        bytes.removeAll(keepingCapacity: true)
        offsets.removeAll(keepingCapacity: true)
        lengths.removeAll(keepingCapacity: true)
        formats.removeAll(keepingCapacity: true)
        pointers.removeAll(keepingCapacity: true)
    }

    private func append(_ bind: PostgresBind) {
        let start = bytes.count
        var format: Int32 = 0
        switch bind {
        case .null, .refused:
            offsets.append(-1)
            lengths.append(0)
            formats.append(0)
            return
        case .integer(let value): appendDigits(value)
        case .text(let text): bytes.append(contentsOf: text.utf8)
        case .array(let literal): bytes.append(contentsOf: literal)
        case .bytes(let raw):
            bytes.append(contentsOf: raw)
            format = 1
        }
        offsets.append(start)
        lengths.append(Int32(bytes.count - start))
        formats.append(format)
        bytes.append(0)
    }

    private func appendDigits(_ value: Int64) {
        let start = bytes.count
        var rest = value.magnitude
        repeat {
            bytes.append(UInt8(ascii: "0") + UInt8(rest % 10))
            rest /= 10
        } while rest > 0
        if value < 0 { bytes.append(UInt8(ascii: "-")) }
        bytes[start...].reverse()
    }
}
