import EventLoop
import Foundation

/// Asks clamd, by its protocol of clamd(8). Each question has a connection of its own and blocks a thread of the pool;
/// of a file there is one piece in memory.
public struct ClamdClient: Sendable {
    public static let connectSecondsMax = 5.0
    /// Of a question without a file, or with a small one.
    public static let answerSecondsMax = 10.0
    /// Of a file: longer than clamd's own `MaxScanTime`, which is two minutes.
    public static let scanSecondsDefault = 150

    private let address: ClamdAddress
    private let offload: OffloadPool
    private let scanSecondsMax: Int

    /// - Parameter scanSecondsMax: from the connection to the verdict on a file.
    public init(_ address: ClamdAddress, offload: OffloadPool, scanSecondsMax: Int = Self.scanSecondsDefault) {
        self.address = address
        self.offload = offload
        self.scanSecondsMax = scanSecondsMax
    }

    /// - Parameter path: of a file that stays as it is meanwhile.
    /// - Throws: `ClamdError`, `OffloadPool.Full`.
    public func scan(file path: String) async throws -> ClamdVerdict {
        try await offload.run { [address, scanSecondsMax] in
            let file = try ScannedFile(path)
            return try Self.scan(address, seconds: Double(scanSecondsMax)) { () throws(ClamdError) in try file.next() }
        }
    }

    /// Whether a scan works: of a few clean bytes, as what answers a ping may have no room for a stream.
    /// - Throws: `ClamdError`, `OffloadPool.Full`.
    public func probe() async throws {
        try await offload.run { [address] in
            var pieces = [Array("martlet".utf8)]
            let verdict = try Self.scan(address, seconds: Self.answerSecondsMax) { () throws(ClamdError) in
                pieces.popLast() ?? []
            }
            guard verdict == .clean else { throw ClamdError.garbage("the word \"martlet\" is infected") }
        }
    }

    /// clamd's own words about itself and its signatures, after it has answered a ping.
    /// - Throws: `ClamdError`, `OffloadPool.Full`.
    public func version() async throws -> String {
        try await offload.run { [address] in
            let pong = try Self.ask(address, ClamdExchange.ping)
            guard pong == "PONG" else { throw ClamdError.garbage("\"\(pong)\"") }
            return try Self.ask(address, ClamdExchange.version)
        }
    }

    // MARK: Blocking

    private static func ask(_ address: ClamdAddress, _ command: [UInt8]) throws(ClamdError) -> String {
        let connection = try ClamdConnection(
            address, connectSeconds: connectSecondsMax, seconds: answerSecondsMax)
        var exchange = ClamdExchange()
        if try connection.send(command) { exchange.asked() }
        try connection.receive(into: &exchange)
        return try exchange.text()
    }

    /// - Parameter next: gives the file's pieces, the last one empty.
    private static func scan(
        _ address: ClamdAddress, seconds: Double, _ next: () throws(ClamdError) -> [UInt8]
    ) throws(ClamdError) -> ClamdVerdict {
        let connection = try ClamdConnection(address, connectSeconds: connectSecondsMax, seconds: seconds)
        var exchange = ClamdExchange()
        var isTaken = try connection.send(ClamdExchange.instream)
        while isTaken {
            let piece = try next()
            guard !piece.isEmpty else {
                if try connection.send(ClamdExchange.end) { exchange.asked() }
                break
            }
            isTaken = try connection.send(ClamdExchange.lengthPrefix(piece.count) + piece)
        }
        try connection.receive(into: &exchange)
        return try exchange.verdict()
    }
}

/// A file in pieces, all of it. Used by one thread.
private final class ScannedFile {
    private let descriptor: Int32
    private let size: Int
    private var offset = 0

    init(_ path: String) throws(ClamdError) {
        descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .unreadable(String(cString: strerror(errno))) }
        var facts = stat()
        guard fstat(descriptor, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            throw .unreadable("it is no file")
        }
        size = Int(facts.st_size)
    }

    deinit { close(descriptor) }

    /// Empty after the last byte.
    func next() throws(ClamdError) -> [UInt8] {
        var count = 0
        let place = descriptor
        let start = offset
        let piece = [UInt8](unsafeUninitializedCapacity: ClamdExchange.chunkBytesMax) { buffer, initialized in
            count = pread(place, buffer.baseAddress, buffer.count, off_t(start))
            initialized = max(0, count)
        }
        guard count >= 0 else { throw .unreadable(String(cString: strerror(errno))) }
        offset += count
        guard count > 0 || offset == size else { throw .unreadable("it has \(offset) bytes, and not \(size)") }
        return piece
    }
}
