/// Where the bytes of media live: a folder, or any S3. Keys are ours: `[a-z0-9/._-]`, never a name from outside.
public protocol ObjectStore: Sendable {
    /// Begins an object that does not exist until `commit`.
    func create(_ key: String) async throws -> any ObjectWriter
    /// Nil when there is none.
    func size(_ key: String) async throws -> Int64?
    /// A path on this machine with the object's bytes: the object itself or a temporary copy. For children and
    /// sendfile.
    func localPath(_ key: String) async throws -> String?
    /// Deleting what is not there is fine.
    func delete(_ key: String) async throws
}

public protocol ObjectWriter: Sendable {
    func write(_ bytes: [UInt8]) async throws
    /// The object is durable (fsync of file and folder) when this returns.
    func commit() async throws
    /// Leaves nothing behind.
    func abort() async
}
