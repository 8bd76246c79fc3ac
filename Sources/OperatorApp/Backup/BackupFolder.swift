import Core
import Foundation

/// What a backup looks like on the disk. `sha256sum -c SHA256SUMS objects.sha256` verifies it without Martlet.
struct BackupFolder: Sendable {
    /// There from the first moment until everything else is durable.
    static let unfinishedName = "UNFINISHED"
    static let dumpName = "database.dump"
    static let objectsName = "objects"
    static let keysName = "objects.keys"
    static let listName = "objects.sha256"
    static let manifestName = "manifest.json"
    static let sumsName = "SHA256SUMS"
    /// What the sums are of, in their order.
    static let summedNames = [manifestName, dumpName, listName]

    let path: String

    func file(_ name: String) -> String { "\(path)/\(name)" }
    func object(_ key: String) -> String { "\(path)/\(Self.objectsName)/\(key)" }

    /// Makes the folder ready for a new backup; what an earlier one left that was broken off goes.
    func begin() throws {
        let manager = FileManager.default
        try Disk.makeFolder(path)
        let names = (try? manager.contentsOfDirectory(atPath: path)) ?? []
        if names.contains(Self.unfinishedName) {
            let own = Self.summedNames + [Self.sumsName, Self.keysName, Self.objectsName]
            for name in own where names.contains(name) {
                do { try manager.removeItem(atPath: file(name)) } catch {
                    throw BackupError("\(file(name)) of an earlier backup cannot be removed")
                }
            }
        } else if !names.isEmpty {
            throw BackupError("\(path) is not empty; a backup needs a folder of its own: name one that is not there")
        }
        try Disk.writeWhole("This backup is being made, or was broken off.\n", to: file(Self.unfinishedName))
        try Disk.makeFolder(file(Self.objectsName))
    }

    func finish() throws {
        unlink(file(Self.keysName))
        var sums = ""
        for name in Self.summedNames { sums += "\(try Disk.digest(of: file(name)).sha256)  \(name)\n" }
        try Disk.writeWhole(sums, to: file(Self.sumsName))
        try Disk.sync(folder: path)
        guard unlink(file(Self.unfinishedName)) == 0 else { throw BackupError.system(file(Self.unfinishedName)) }
        try Disk.sync(folder: path)
    }

    /// Reads the manifest, after a look at whether this is a whole backup and everything but its objects is as it was.
    func opened() throws -> BackupManifest {
        let manager = FileManager.default
        guard manager.fileExists(atPath: path) else { throw BackupError("there is no \(path)") }
        guard !manager.fileExists(atPath: file(Self.unfinishedName)) else {
            throw BackupError("\(path) was broken off while it was made: it is no backup. Make another one")
        }
        guard let data = manager.contents(atPath: file(Self.sumsName)) else {
            throw BackupError("\(path) is no backup of Martlet's: it has no \(Self.sumsName)")
        }
        let sums = String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init)
        guard sums.count == Self.summedNames.count else { throw BackupError("\(file(Self.sumsName)) is broken") }
        for (name, line) in zip(Self.summedNames, sums) {
            guard manager.fileExists(atPath: file(name)) else { throw BackupError("\(file(name)) is gone") }
            guard try line == "\(Disk.digest(of: file(name)).sha256)  \(name)" else {
                throw BackupError("\(file(name)) is not what was written: its SHA-256 differs")
            }
        }
        return try BackupManifest(manager.contents(atPath: file(Self.manifestName)) ?? Data())
    }

    /// A line of the list; nil when it is none. A key is ours, and leads out of no folder.
    static func listed(_ line: String) -> (sha256: String, key: String)? {
        let parts = line.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: true)
        let prefix = " \(objectsName)/"
        guard parts.count == 2, parts[0].utf8.count == 64, parts[1].hasPrefix(prefix) else { return nil }
        let key = String(parts[1].dropFirst(prefix.count))
        let isOurs = key.utf8.allSatisfy { byte in
            (0x61...0x7A).contains(byte) || (0x30...0x39).contains(byte) || "/._-".utf8.contains(byte)
        }
        let segments = key.split(separator: "/", omittingEmptySubsequences: false)
        guard isOurs, !segments.contains(where: { $0.isEmpty || $0 == "." || $0 == ".." }) else { return nil }
        return (String(parts[0]), key)
    }
}

/// What a backup says of itself.
struct BackupManifest: Sendable, Equatable {
    static let format = "martlet-backup"
    static let version = 1
    /// Objects that rows name and that were not in the store, told one by one.
    static let missingToldMax = 100

    var createdAt: Date
    var postgres: String
    var migrations: [String]
    var tables: [TableCount]
    var dumpBytes: Int64 = 0
    var objects: Int64 = 0
    var objectBytes: Int64 = 0
    var missing: [String] = []
    var missingCount: Int64 = 0

    var rows: Int64 { tables.reduce(0) { $0 + $1.rows } }
}

extension BackupManifest {
    var json: OrderedJSON {
        let counts = JSONObject(members: tables.map { JSONObject.Member(name: $0.table, value: .integer($0.rows)) })
        return .objectOf([
            "format": .string(Self.format), "version": .integer(Self.version),
            "created_at": .string(createdAt.ISO8601Format()), "postgres": .string(postgres),
            "migrations": .array(migrations.map { .string($0) }), "tables": .object(counts),
            "dump_bytes": .integer(dumpBytes), "objects": .integer(objects), "object_bytes": .integer(objectBytes),
            "missing": .array(missing.map { .string($0) }), "missing_count": .integer(missingCount),
        ])
    }

    init(_ data: Data) throws {
        func number(_ value: OrderedJSON?) throws -> Int64 {
            guard case .number(let digits) = value, let number = Int64(digits) else { throw Self.broken }
            return number
        }
        func text(_ value: OrderedJSON?) throws -> String {
            guard case .string(let text) = value else { throw Self.broken }
            return text
        }
        func texts(_ value: OrderedJSON?) throws -> [String] {
            guard case .array(let items) = value else { throw Self.broken }
            return try items.map(text)
        }
        guard case .object(let object) = try? OrderedJSON.parse(Array(data)), object["format"] == .string(Self.format)
        else { throw Self.broken }
        let version = try number(object["version"])
        guard version == Self.version else {
            throw BackupError(
                "the backup is of version \(version), and this program knows version \(Self.version) only")
        }
        guard case .object(let counts) = object["tables"],
            let createdAt = try? Date(text(object["created_at"]), strategy: .iso8601)
        else { throw Self.broken }
        self.createdAt = createdAt
        postgres = try text(object["postgres"])
        migrations = try texts(object["migrations"])
        tables = try counts.members.map { TableCount(table: $0.name, rows: try number($0.value)) }
        dumpBytes = try number(object["dump_bytes"])
        objects = try number(object["objects"])
        objectBytes = try number(object["object_bytes"])
        missing = try texts(object["missing"])
        missingCount = try number(object["missing_count"])
    }

    private static var broken: BackupError { BackupError("the manifest is not one of a backup of Martlet's") }
}
