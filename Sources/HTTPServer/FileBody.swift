/// A file, or a part of one, as the body of an answer. Read in pieces through libuv's pool; the loop never waits for a disk.
public struct FileBody: Sendable {
    public let path: String
    /// Where in the file the body starts.
    public let offset: Int
    /// Bytes of the body. A file that turns out to be shorter cuts the connection.
    public let count: Int

    public init(path: String, offset: Int = 0, count: Int) {
        self.path = path
        self.offset = offset
        self.count = count
    }
}
