/// Gathers the rows of a COPY, in PostgreSQL's text format, and sends them in pieces of `chunkBytes`.
/// Not Sendable: one task writes one COPY.
public final class CopyWriter {
    /// Large enough that a system call is little beside it, small enough to be nothing in memory.
    static let chunkBytes = 64 * 1024
    /// One row of more bytes than this is refused.
    public static let rowBytesMax = PostgresBind.bytesMax

    private let lease: Lease
    private var buffer: [UInt8] = []

    init(lease: Lease) {
        self.lease = lease
        buffer.reserveCapacity(Self.chunkBytes + 4096)
    }

    /// Writes one row, a value for each column named by the COPY.
    /// - Throws: `PostgresEncodingError` for a value PostgreSQL has no place for; `PostgresUnavailable`.
    public func row<each V: PostgresEncodable>(_ value: repeat each V) async throws {
        var binds: [PostgresBind] = []
        for one in repeat each value { binds.append(one.postgresBind) }
        try await row(binds: binds)
    }

    /// As `row`, for columns known only when it runs.
    public func row(binds: [PostgresBind]) async throws {
        if let problem = binds.lazy.compactMap(\.problem).first { throw problem }
        CopyText.append(binds, to: &buffer)
        if buffer.count >= Self.chunkBytes { try await flush() }
    }

    /// Writes text that is in COPY's format already: rows, each ended by a newline.
    public func write(_ text: [UInt8]) async throws {
        guard text.count <= Self.rowBytesMax else { throw PostgresEncodingError.tooLarge }
        buffer.append(contentsOf: text)
        if buffer.count >= Self.chunkBytes { try await flush() }
    }

    func flush() async throws {
        guard !buffer.isEmpty else { return }
        try await lease.copyWrite(buffer)
        buffer.removeAll(keepingCapacity: true)
    }
}

/// COPY's text format (PostgreSQL manual, COPY, "Text Format"): tabs between, `\N` for NULL, backslash escapes.
public enum CopyText {
    /// Appends one row and its newline.
    public static func append(_ binds: [PostgresBind], to buffer: inout [UInt8]) {
        for (index, bind) in binds.enumerated() {
            if index > 0 { buffer.append(UInt8(ascii: "\t")) }
            switch bind {
            case .null, .refused: buffer.append(contentsOf: "\\N".utf8)
            case .integer(let value): buffer.append(contentsOf: String(value).utf8)
            case .text(let text): escape(text.utf8, to: &buffer)
            case .array(let literal): escape(literal, to: &buffer)
            case .bytes(let bytes): escape(Hex.bytea(bytes).utf8, to: &buffer)
            }
        }
        buffer.append(UInt8(ascii: "\n"))
    }

    /// Appends one value's text so that it is read back as it was.
    public static func escape(_ text: some Sequence<UInt8>, to buffer: inout [UInt8]) {
        for byte in text {
            switch byte {
            case UInt8(ascii: "\\"): buffer.append(contentsOf: "\\\\".utf8)
            case UInt8(ascii: "\n"): buffer.append(contentsOf: "\\n".utf8)
            case UInt8(ascii: "\r"): buffer.append(contentsOf: "\\r".utf8)
            case UInt8(ascii: "\t"): buffer.append(contentsOf: "\\t".utf8)
            default: buffer.append(byte)
            }
        }
    }
}
