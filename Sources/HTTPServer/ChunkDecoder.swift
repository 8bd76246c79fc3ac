/// Takes the chunked coding off a body (RFC 9112 §7.1), and takes nothing that is not exactly it.
///
/// Extensions and trailers are checked and thrown away. A bare CR or LF, white space around a size, or a byte between a
/// chunk and its CRLF is an error: each of them is a way to make two servers see different requests.
struct ChunkDecoder {
    enum Event: Equatable {
        case needsMore
        /// Offsets of the input.
        case data(Range<Int>)
        case end
    }

    private enum State {
        case size
        case lineExtension
        case sizeLineFeed
        case data
        case dataReturn
        case dataLineFeed
        case trailerStart
        case trailerName
        case trailerValue
        case trailerLineFeed
        case lastLineFeed
        case ended
    }

    /// 15 hexadecimal digits are more than any body, and do not overflow.
    private static let sizeDigitsMax = 15

    private var state = State.size
    private var remaining = 0
    private var digits = 0
    private var lineBytes = 0
    private var trailerBytes = 0
    private let lineBytesMax: Int
    private let trailerBytesMax: Int

    init(limits: HTTPLimits) {
        lineBytesMax = limits.chunkLineBytesMax
        trailerBytesMax = limits.trailerBytesMax
    }

    /// Goes on from `position`, which moves to the first byte not looked at.
    /// - Throws: 400 when the coding is malformed or its lines are too long.
    mutating func next(_ bytes: UnsafeRawBufferPointer, _ position: inout Int) throws(HTTPError) -> Event {
        while position < bytes.count {
            if state == .data {
                let count = min(remaining, bytes.count - position)
                let range = position..<(position + count)
                position += count
                remaining -= count
                if remaining == 0 { state = .dataReturn }
                return .data(range)
            }
            try take(bytes[position])
            position += 1
            if state == .ended { return .end }
        }
        return .needsMore
    }

    private mutating func take(_ byte: UInt8) throws(HTTPError) {
        switch state {
        case .size, .lineExtension: try takeSizeLine(byte)
        case .sizeLineFeed:
            try expect(byte, 0x0A)
            state = remaining > 0 ? .data : .trailerStart
        case .dataReturn:
            try expect(byte, 0x0D)
            state = .dataLineFeed
        case .dataLineFeed:
            try expect(byte, 0x0A)
            state = .size
            digits = 0
            lineBytes = 0
        case .lastLineFeed:
            try expect(byte, 0x0A)
            state = .ended
        case .trailerStart, .trailerName, .trailerValue, .trailerLineFeed: try takeTrailer(byte)
        case .data, .ended: throw malformed
        }
    }

    private mutating func takeSizeLine(_ byte: UInt8) throws(HTTPError) {
        lineBytes += 1
        guard lineBytes <= lineBytesMax else { throw HTTPError(400, "A chunk's size line is too long.") }
        if byte == 0x0D, digits > 0 {
            state = .sizeLineFeed
        } else if state == .lineExtension {
            guard byte >= 0x20 || byte == 0x09, byte != 0x7F else { throw malformed }
        } else if let digit = hexadecimal(byte) {
            digits += 1
            guard digits <= Self.sizeDigitsMax else { throw HTTPError(413, "A chunk is too large.") }
            remaining = remaining << 4 | Int(digit)
        } else if byte == UInt8(ascii: ";"), digits > 0 {
            state = .lineExtension
        } else {
            throw malformed
        }
    }

    private mutating func takeTrailer(_ byte: UInt8) throws(HTTPError) {
        trailerBytes += 1
        guard trailerBytes <= trailerBytesMax else { throw HTTPError(400, "The trailers are too long.") }
        switch state {
        case .trailerStart where byte == 0x0D: state = .lastLineFeed
        case .trailerStart where isToken(byte): state = .trailerName
        case .trailerName where byte == UInt8(ascii: ":"): state = .trailerValue
        case .trailerName where isToken(byte): break
        case .trailerValue where byte == 0x0D: state = .trailerLineFeed
        case .trailerValue where (byte >= 0x20 || byte == 0x09) && byte != 0x7F: break
        case .trailerLineFeed where byte == 0x0A: state = .trailerStart
        default: throw malformed
        }
    }

    private func expect(_ byte: UInt8, _ expected: UInt8) throws(HTTPError) {
        guard byte == expected else { throw malformed }
    }

    private var malformed: HTTPError { HTTPError(400, "The chunked body is malformed.") }
}
