import EventLoop

/// A file, or a part of one, as the body of an answer. Read in pieces through libuv's pool; the loop never waits for a
/// disk.
public struct FileBody: Sendable {
    /// One piece of a file in memory, and one trip to the pool: large enough that the trip does not count.
    static let pieceBytes = 128 * 1024

    public let file: LoopFile
    /// Where in the file the body starts.
    public let offset: Int
    /// Bytes of the body. A file that turns out to be shorter cuts the connection.
    public let count: Int

    public init(file: LoopFile, offset: Int = 0, count: Int) {
        self.file = file
        self.offset = offset
        self.count = count
    }
}
