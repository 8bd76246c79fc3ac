import Foundation

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

/// A store that can be looked through, a part at a time.
public protocol ObjectListing: Sendable {
    /// Gives `page` the keys of a shard's objects that were last written before `date`, at most `pageMax` at once,
    /// until there are no more or it returns false.
    /// - Parameter shard: `0..<ObjectShard.count`.
    func oldKeys(shard: Int, before date: Date, pageMax: Int, _ page: ([String]) async throws -> Bool) async throws
}

/// The second part of a key, two hexadecimal digits of a random number: it divides the store evenly.
public enum ObjectShard {
    public static let count = 256

    public static func name(_ shard: Int) -> String {
        let digits = String(shard, radix: 16)
        return digits.count == 1 ? "0" + digits : digits
    }
}

public protocol ObjectWriter: Sendable {
    func write(_ bytes: [UInt8]) async throws
    /// The object is durable (fsync of file and folder) when this returns.
    func commit() async throws
    /// Leaves nothing behind.
    func abort() async
}
