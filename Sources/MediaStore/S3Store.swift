import Core
import Crypto
import EventLoop
import Foundation
import ServiceKit
import Tracing
import Transfer

/// Objects in a bucket of an S3, beneath a prefix. An object appears whole or not at all, as S3 promises: what is small
/// goes in one request, what is bigger in parts that become an object at the end.
///
/// What comes in waits in a nameless file of the scratch folder until it is one part: memory stays flat, and the digest
/// of a part is known before it is sent, as its signature needs it.
public struct S3Store: WorkingStore {
    /// S3 takes parts of 5 MiB and more; most uploads are smaller than this and take one request.
    public static let partBytesDefault = 8 << 20
    /// Of one object. The largest upload has 25 MiB; S3 itself takes 10,000.
    static let partsMax = 1000
    /// Whoever says "slow down" or breaks a connection is asked again, soon and then later.
    static let attemptsMax = 3
    public static let pauseSecondsDefault = 0.2
    /// What the error of a broken connection, or of an S3 that has too much to do, may be called: some of them come
    /// with 400 (Amazon's "Error responses").
    static let passingCodes: Set = [
        "InternalError", "OperationAborted", "RequestTimeout", "ServiceUnavailable", "SlowDown", "ThrottlingException",
    ]
    /// A list of a thousand keys has about 400 kB.
    static let answerBytesMax = 4 << 20
    /// What an S3 says of a mistake.
    static let problemBytesMax = 64 * 1024
    /// Of what is copied to this machine: more than any kind of upload may have.
    static let copyBytesMax: Int64 = 64 << 20
    static let copyPieceBytes = 1 << 20
    /// A part of an upload that is older belongs to nobody: a request has much shorter limits.
    public static let leftoverSecondsMax: TimeInterval = 24 * 3600

    let client: S3Client
    /// With a slash at its end, or empty.
    let root: String
    let scratch: String
    let files: OffloadPool
    let clock: any ServiceClock
    let partBytes: Int
    private let pauseSeconds: Double
    let tracing: S3Tracing?

    /// - Parameters:
    ///   - prefix: of all keys, without a slash at its end; may be empty.
    ///   - scratch: an existing folder for what is on its way.
    ///   - files: for writing and reading there; `client` has its own.
    ///   - partBytes: the size of a part, at least 5 MiB.
    ///   - pauseSeconds: before a second attempt; twice as long before the third.
    ///   - tracer: nil: nothing is traced.
    public init(
        client: S3Client, prefix: String, scratch: String, files: OffloadPool, clock: any ServiceClock,
        partBytes: Int = Self.partBytesDefault, pauseSeconds: Double = Self.pauseSecondsDefault,
        tracer: Tracer? = nil
    ) {
        self.client = client
        root = prefix.isEmpty ? "" : prefix + "/"
        self.scratch = scratch
        self.files = files
        self.clock = clock
        self.partBytes = partBytes
        self.pauseSeconds = pauseSeconds
        tracing = tracer.map { S3Tracing($0, client.location) }
    }

    public func create(_ key: String) async throws -> any ObjectWriter {
        let target = try path(key)
        let name = Files.temporaryName(in: scratch)
        let descriptor = try await files.run {
            let descriptor = try Files.create(name)
            // It has no name from now on, so nothing of it stays when this process is killed.
            unlink(name)
            return descriptor
        }
        return S3Writer(descriptor: descriptor, target: target, store: self)
    }

    public func size(_ key: String) async throws -> Int64? { try await head(try path(key))?.bytes }

    public func open(_ key: String) async throws -> StoredObject? {
        try await head(try path(key)).map { .remote($0) }
    }

    public func delete(_ key: String) async throws { try await remove(S3Request("DELETE", try path(key))) }

    public func withLocalFile<T>(_ key: String, _ body: (String) async throws -> T) async throws -> T? {
        guard let object = try await head(try path(key)) else { return nil }
        guard object.bytes <= Self.copyBytesMax else { throw StoreError(.tooLarge) }
        let copy = scratch + "/copy-" + String(UInt64.random(in: .min ... .max), radix: 16)
        let descriptor = try await files.run { try Files.create(copy) }
        do {
            var offset: Int64 = 0
            while offset < object.bytes {
                let piece = try await object.read(
                    at: offset, count: Int(min(Int64(Self.copyPieceBytes), object.bytes - offset)))
                offset += Int64(piece.count)
                try await files.run { try Files.write(piece, to: descriptor) }
            }
            let result = try await body(copy)
            await remove(copy, descriptor)
            return result
        } catch {
            await remove(copy, descriptor)
            throw error
        }
    }

    private func remove(_ copy: String, _ descriptor: Int32) async {
        let removal: @Sendable () -> Void = {
            close(descriptor)
            unlink(copy)
        }
        // When the pool is full, two quick calls here are better than a file left behind.
        do { try await files.run(removal) } catch { removal() }
    }

    public func probe() async throws {
        // No key of ours begins so.
        let key = root + "tmp/probe"
        for _ in 0..<Self.probesMax {
            let put = S3Request(
                "PUT", key, body: .bytes(Self.probeContent), sha256: Hex.encode(SHA256.hash(Self.probeContent)))
            _ = try await self.put(put, attemptsMax: 1)
            guard let answer = try await ask(S3Request("GET", key), bodyMax: Self.problemBytesMax, attemptsMax: 1)
            else { continue }
            guard answer.body == Self.probeContent else {
                throw StoreError(.unreachable("what was put is not what comes back"))
            }
            return try await remove(S3Request("DELETE", key), attemptsMax: 1)
        }
        throw StoreError(.unreachable("what was put is not there"))
    }

    /// Another process may be trying too, and remove the object between the two requests of this one.
    static let probesMax = 3
    static let probeContent = Array("Martlet tries whether it can write here.\n".utf8)

    func path(_ key: String) throws -> String {
        guard ObjectKey.isValid(key), !key.hasPrefix("tmp/"), key != "tmp" else { throw StoreError(.badKey) }
        return root + key
    }

    /// - Parameter path: the whole key.
    private func head(_ path: String) async throws -> S3Object? {
        guard let answer = try await ask(S3Request("HEAD", path)) else { return nil }
        guard let length = answer.headers["content-length"]?.last, let bytes = Int64(length),
            let tag = answer.headers["etag"]?.last
        else { throw StoreError(.unreachable("the answer to HEAD lacks a size or a tag")) }
        let modified = answer.headers["last-modified"]?.last.flatMap(S3Document.headerDate)
        return S3Object(store: self, path: path, bytes: bytes, tag: tag, modifiedAt: modified ?? clock.now())
    }

    // MARK: Asking, and believing only what an S3 says

    /// Puts an object or a part of one, and gives the tag that the S3 has for it. Who has not stored it has none.
    func put(_ request: S3Request, attemptsMax: Int = Self.attemptsMax) async throws -> String {
        let answer = try await answer(to: request, attemptsMax: attemptsMax)
        guard let tag = answer.headers["etag"]?.last, !tag.isEmpty else {
            throw StoreError(.unreachable("what was put has no tag"))
        }
        return tag
    }

    /// Deleting what is not there is fine. An answer with content is none of an S3's to a deletion.
    func remove(_ request: S3Request, attemptsMax: Int = Self.attemptsMax) async throws {
        guard let answer = try await ask(request, attemptsMax: attemptsMax), !answer.body.isEmpty else { return }
        throw StoreError(.unreachable("the answer to a deletion has content"))
    }

    /// The document of an answer.
    /// - Parameter name: of its outermost element. Anything else that comes with a 200 is an error: a proxy's page has
    ///   no objects in it, and that says nothing about the bucket.
    func document(
        _ name: String, of request: S3Request, attemptsMax: Int = Self.attemptsMax
    ) async throws -> S3Document {
        let document = S3Document(try await answer(to: request, attemptsMax: attemptsMax).body)
        if document.isWhole("Error") {
            throw StoreError(.refused(status: 200, code: document.texts(of: "Code").first ?? ""))
        }
        guard document.isWhole(name) else { throw StoreError(.unreachable("the answer is no \(name)")) }
        return document
    }

    /// The answer of a success; nil when the object is not there. For the bucket itself there is `answer(to:)`.
    func ask(
        _ request: S3Request, bodyMax: Int = Self.answerBytesMax, attemptsMax: Int = Self.attemptsMax
    ) async throws -> HTTPClientResponse? {
        do {
            return try await answer(to: request, bodyMax: bodyMax, attemptsMax: attemptsMax)
        } catch let error as StoreError {
            guard case .refused(404, let code) = error.reason, code != "NoSuchBucket" else { throw error }
            return nil
        }
    }

    /// The answer of a success. A 404 is an error too: a bucket with nothing in it does not answer so, but who stands
    /// before an S3 and does not find it may, and then nothing is known about the objects.
    ///
    /// Asked again where that may help: nothing that is asked so does harm twice.
    func answer(
        to request: S3Request, bodyMax: Int = Self.answerBytesMax, attemptsMax: Int = Self.attemptsMax
    ) async throws -> HTTPClientResponse {
        var attempt = 1
        while true {
            let problem: StoreError
            var isPassing = false
            do {
                let answer = try await self.attempt(request, number: attempt, bodyMax: bodyMax)
                if (200...299).contains(answer.status) { return answer }
                let code = S3Document(answer.body).texts(of: "Code").first ?? ""
                if answer.status == 412 { throw StoreError(.changed) }
                problem = StoreError(.refused(status: answer.status, code: code))
                isPassing =
                    [429, 500, 502, 503, 504].contains(answer.status) || Self.passingCodes.contains(code)
            } catch let error as HTTPClientError {
                switch error {
                // It has had its time.
                case .timedOut: problem = StoreError(.unreachable("no answer in time"))
                case .failed(let text):
                    problem = StoreError(.unreachable(text))
                    isPassing = true
                case .badURL, .badHeader, .bodyTooLarge: problem = StoreError(.unreachable("\(error)"))
                }
            }
            guard isPassing, attempt < attemptsMax else { throw problem }
            try await clock.sleep(seconds: pauseSeconds * Double(1 << (attempt - 1)))
            attempt += 1
        }
    }
}

/// An object in a bucket, as it was when it was opened.
struct S3Object: RemoteObject {
    let store: S3Store
    let path: String
    let bytes: Int64
    let tag: String
    let modifiedAt: Date

    func read(at offset: Int64, count: Int) async throws -> [UInt8] {
        let request = S3Request(
            "GET", path, headers: [("Range", "bytes=\(offset)-\(offset + Int64(count) - 1)"), ("If-Match", tag)])
        guard let answer = try await store.ask(request, bodyMax: max(count, S3Store.problemBytesMax))
        else { throw StoreError(.changed) }
        guard answer.body.count == count else {
            throw StoreError(.unreachable("\(answer.body.count) bytes came where \(count) were asked for"))
        }
        return answer.body
    }
}
