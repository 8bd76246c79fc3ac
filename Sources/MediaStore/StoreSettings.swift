import Core
import EventLoop
import Foundation
import ServiceKit
import Tracing
import Transfer

/// The store that the settings name, ready for use.
public struct OpenedStore: Sendable {
    public let store: any WorkingStore
    /// For what is on its way: a real path, of a folder that is there.
    public let scratch: String
    /// Real paths of the folders that all local files of the store are in, `scratch` too.
    public let roots: [String]
}

/// `MARTLET_STORE`: a folder, or `s3://bucket/prefix?endpoint=…&region=…&style=…` with its keys beside it.
public enum StoreSettings {
    static let schemePrefix = "s3://"
    static let prefixBytesMax = 100
    static let regionDefault = "us-east-1"
    /// Threads that may wait for an S3, and requests that may wait for a thread.
    static let threads = 16
    static let waitingMax = 256

    /// Whether `MARTLET_STORE` names a bucket, and not a folder.
    public static func isBucket(_ text: String) -> Bool { text.hasPrefix(schemePrefix) }

    /// That of a service, whose requests to an S3 are traced.
    public static func open(
        _ environment: inout Environment, files: OffloadPool, for context: ServiceContext
    ) -> OpenedStore? {
        open(&environment, files: files, clock: context.clock, tracer: context.traces?.tracer)
    }

    /// Everything that is wrong is a mistake of `environment`'s, and the answer is nil then.
    /// - Parameter tracer: of requests to an S3; nil: they are not traced.
    public static func open(
        _ environment: inout Environment, files: OffloadPool, clock: any ServiceClock, tracer: Tracer? = nil
    ) -> OpenedStore? {
        let text = environment.string("MARTLET_STORE")
        guard !text.isEmpty else { return nil }
        guard isBucket(text) else { return folder(text, &environment, files: files) }
        let place = place(text, &environment)
        let scratch = scratch(&environment)
        guard let place, let scratch else { return nil }
        // A slow S3 holds threads, so they are its own.
        let pool = OffloadPool(name: "s3", threads: threads, queueMax: waitingMax)
        let client = S3Client(place.location, offload: pool, connectionsMax: threads)
        let store = S3Store(
            client: client, prefix: place.prefix, scratch: scratch, files: files, clock: clock, tracer: tracer)
        return OpenedStore(store: store, scratch: scratch, roots: [scratch])
    }

    private static func folder(
        _ path: String, _ environment: inout Environment, files: OffloadPool
    ) -> OpenedStore? {
        let root = URL(fileURLWithPath: path).standardizedFileURL.path
        do {
            let store = try FolderStore(root: root, offload: files)
            let real = URL(fileURLWithPath: root).resolvingSymlinksInPath().path
            return OpenedStore(store: store, scratch: real + "/tmp", roots: [real])
        } catch {
            environment.mistake("MARTLET_STORE names \(root): \(error)")
            return nil
        }
    }

    // MARK: A bucket

    struct Place {
        let location: S3Location
        let prefix: String
    }

    static func place(_ text: String, _ environment: inout Environment) -> Place? {
        let keys = ["MARTLET_S3_ACCESS_KEY", "MARTLET_S3_SECRET_KEY"].map { key($0, &environment) }
        guard let parts = URLComponents(string: text), parts.user == nil, parts.password == nil, parts.port == nil,
            parts.fragment == nil, let bucket = parts.host
        else {
            environment.mistake("MARTLET_STORE must be a folder, or like s3://bucket/prefix?region=eu-central-1")
            return nil
        }
        var mistakes: [String] = []
        if !isBucketName(bucket) {
            mistakes.append("\"\(bucket)\" is no name of a bucket: 3 to 63 of a-z, 0-9, - and .")
        }
        let prefix = parts.path.split(separator: "/", omittingEmptySubsequences: true).joined(separator: "/")
        if !isPrefix(prefix) {
            mistakes.append("the prefix may have letters, digits, -, _ and . between slashes, \(prefixBytesMax) in all")
        }
        var values: [String: String] = [:]
        for item in parts.queryItems ?? [] {
            guard ["endpoint", "region", "style"].contains(item.name), values[item.name] == nil else {
                mistakes.append("\"\(item.name)\" is unknown or there twice; known are endpoint, region and style")
                continue
            }
            values[item.name] = item.value ?? ""
        }
        let region = values["region"] ?? regionDefault
        if !isWord(region, "-") { mistakes.append("the region \"\(region)\" must be like eu-central-1") }
        let endpoint = values["endpoint"] ?? "https://s3.\(region).amazonaws.com"
        if !isEndpoint(endpoint) {
            mistakes.append("the endpoint must be like https://s3.example.org or http://127.0.0.1:9000, without a path")
        }
        // Amazon wants the bucket in the host's name; servers of one's own mostly have one name.
        let styleText = values["style"] ?? (values["endpoint"] == nil ? "virtual" : "path")
        let style = S3Location.Style(rawValue: styleText)
        if style == nil { mistakes.append("the style \"\(styleText)\" must be path or virtual") }
        if style == .virtual, bucket.contains("."), endpoint.hasPrefix("https://") {
            mistakes.append(
                "a bucket with a dot in its name has no valid certificate in style virtual: take style=path")
        }
        for mistake in mistakes { environment.mistake("MARTLET_STORE: \(mistake)") }
        guard mistakes.isEmpty, let style, let accessKey = keys[0], let secretKey = keys[1] else { return nil }
        return Place(
            location: S3Location(
                endpoint: endpoint.hasSuffix("/") ? String(endpoint.dropLast()) : endpoint, region: region,
                bucket: bucket, style: style, accessKey: accessKey, secretKey: secretKey),
            prefix: prefix)
    }

    private static func key(_ name: String, _ environment: inout Environment) -> String? {
        guard let key = environment.value(name) else {
            environment.mistake("\(name) is not set, and MARTLET_STORE is an S3")
            return nil
        }
        guard key.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            environment.mistake("\(name) has a space, a line end or a character that no key has")
            return nil
        }
        return key
    }

    private static func isBucketName(_ name: String) -> Bool {
        let isBetween = { (byte: UInt8) in byte != UInt8(ascii: "-") && byte != UInt8(ascii: ".") }
        return (3...63).contains(name.utf8.count) && isWord(name, "-.") && name.utf8.first.map(isBetween) == true
            && name.utf8.last.map(isBetween) == true && !name.contains("..")
    }

    private static func isPrefix(_ prefix: String) -> Bool {
        prefix.utf8.count <= prefixBytesMax
            && prefix.split(separator: "/").allSatisfy { part in
                part.first != "." && isWord(part.lowercased(), "-_.")
            }
    }

    private static func isWord(_ text: String, _ others: String) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte) || others.utf8.contains(byte)
            }
    }

    private static func isEndpoint(_ text: String) -> Bool {
        guard let parts = URLComponents(string: text), ["http", "https"].contains(parts.scheme ?? ""),
            parts.host?.isEmpty == false, parts.user == nil, parts.query == nil, parts.fragment == nil
        else { return false }
        return parts.path.isEmpty || parts.path == "/"
    }

    // MARK: The scratch folder

    /// Only of this user, or everybody on the machine could read or replace what is in it.
    private static func scratch(_ environment: inout Environment) -> String? {
        let fallback = FileManager.default.temporaryDirectory.path + "/martlet-\(geteuid())"
        let path = environment.value("MARTLET_SCRATCH") ?? fallback
        let folder = URL(fileURLWithPath: path).standardizedFileURL
        do {
            try Files.makeNamedFolder(folder.path)
            let real = folder.resolvingSymlinksInPath().path
            var facts = stat()
            guard lstat(real, &facts) == 0 else { throw StoreError.system("stat") }
            guard facts.st_uid == geteuid(), facts.st_mode & 0o022 == 0, access(real, W_OK) == 0 else {
                environment.mistake("MARTLET_SCRATCH: \(real) must be a folder that only this user may write to")
                return nil
            }
            return real
        } catch {
            environment.mistake("MARTLET_SCRATCH names \(folder.path): \(error)")
            return nil
        }
    }
}
