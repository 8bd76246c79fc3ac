import Foundation

/// Where the bytes of media live: a folder, or any S3. Keys are ours: `[a-z0-9/._-]`, never a name from outside.
public protocol ObjectStore: Sendable {
    /// Begins an object that does not exist until `commit`.
    func create(_ key: String) async throws -> any ObjectWriter
    /// Nil when there is none.
    func size(_ key: String) async throws -> Int64?
    /// What its bytes are read from; nil when there is none.
    func open(_ key: String) async throws -> StoredObject?
    /// Deleting what is not there is fine.
    func delete(_ key: String) async throws
}

/// An object that is there to be read.
public enum StoredObject: Sendable {
    /// The object is a file on this machine.
    case file(path: String)
    /// It is elsewhere, and comes in pieces.
    case remote(any RemoteObject)
}

public protocol RemoteObject: Sendable {
    var bytes: Int64 { get }
    var modifiedAt: Date { get }
    /// `count` bytes from `offset` on, all of them within the object.
    /// - Throws: also when the object is another one than was opened.
    func read(at offset: Int64, count: Int) async throws -> [UInt8]
}

/// A store with all that looking after it takes: what a worker has.
public protocol WorkingStore: ObjectStore, ObjectListing {
    /// Gives `body` a path on this machine with the object's bytes: the object itself, or a copy that is removed when
    /// `body` has ended. Nil, without calling it, when there is no such object.
    func withLocalFile<T>(_ key: String, _ body: (String) async throws -> T) async throws -> T?
    /// Those of the keys that there is no object of.
    /// - Parameter keys: a thousand at most, of one folder, in the order of their bytes.
    func missing(of keys: [String]) async throws -> [String]
    /// Removes what those that are gone have left behind: temporary files, uploads that nobody goes on with. Returns
    /// how many went.
    func sweep(now: Date) async throws -> Int
    /// Whether objects can be written now: writes a small one, which is no object of anybody's.
    /// - Throws: what is wrong.
    func probe() async throws
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
