import Core
import Crypto
import Foundation
import Synchronization
import Transfer

/// One object on its way into an `S3Store`. One owner, one call at a time.
final class S3Writer: ObjectWriter {
    /// A digest that grows, owned by whoever has the writer.
    private final class Digest: Sendable {
        private let hasher = Mutex(SHA256.Hasher())

        func update(_ bytes: [UInt8]) { hasher.withLock { $0.update(bytes) } }
        /// In hexadecimal; it begins anew.
        func finish() -> String { hasher.withLock { Hex.encode($0.finish()) } }
    }

    private struct State {
        /// Bytes of the part that is being gathered.
        var gathered = 0
        /// Of an upload in parts, once there is one.
        var upload: String?
        /// What S3 calls the parts that it has.
        var tags: [String] = []
        var isFinished = false
    }

    private let descriptor: Int32
    private let target: String
    private let store: S3Store
    private let digest = Digest()
    private let state = Mutex(State())

    /// - Parameters:
    ///   - descriptor: of a file without a name, which is closed with this.
    ///   - target: the whole key.
    init(descriptor: Int32, target: String, store: S3Store) {
        self.descriptor = descriptor
        self.target = target
        self.store = store
    }

    // An upload in parts that its owner forgot is ended by the sweep.
    deinit { close(descriptor) }

    func write(_ bytes: [UInt8]) async throws {
        guard !state.withLock({ $0.isFinished }) else { throw StoreError(.finished) }
        var rest = bytes[...]
        while !rest.isEmpty {
            var gathered = state.withLock { $0.gathered }
            if gathered == store.partBytes {
                try await sendPart()
                gathered = 0
            }
            let piece = Array(rest.prefix(store.partBytes - gathered))
            rest = rest.dropFirst(piece.count)
            let (descriptor, offset) = (descriptor, gathered)
            try await store.files.run { try Files.write(piece, to: descriptor, at: offset) }
            digest.update(piece)
            state.withLock { $0.gathered += piece.count }
        }
    }

    func commit() async throws {
        let isOpen = state.withLock { state in
            defer { state.isFinished = true }
            return !state.isFinished
        }
        guard isOpen else { throw StoreError(.finished) }
        do {
            guard state.withLock({ $0.upload }) != nil else {
                let count = state.withLock { $0.gathered }
                let request = S3Request(
                    "PUT", target, body: .file(descriptor: descriptor, count: count), sha256: digest.finish())
                _ = try await store.put(request)
                return
            }
            try await sendPart()
            try await complete()
        } catch {
            await abandon()
            throw error
        }
    }

    func abort() async {
        state.withLock { $0.isFinished = true }
        await abandon()
    }

    // MARK: Parts

    private func sendPart() async throws {
        let (known, number, count) = state.withLock { ($0.upload, $0.tags.count + 1, $0.gathered) }
        guard number <= S3Store.partsMax else { throw StoreError(.tooLarge) }
        let upload: String
        if let known { upload = known } else { upload = try await begin() }
        let request = S3Request(
            "PUT", target, query: [("partNumber", "\(number)"), ("uploadId", upload)],
            body: .file(descriptor: descriptor, count: count), sha256: digest.finish())
        let tag = try await store.put(request)
        state.withLock { state in
            state.tags.append(tag)
            state.gathered = 0
        }
    }

    private func begin() async throws -> String {
        let document = try await store.document(
            "InitiateMultipartUploadResult", of: S3Request("POST", target, query: [("uploads", "")]))
        guard let upload = document.texts(of: "UploadId").first else {
            throw StoreError(.unreachable("an upload in parts has no name"))
        }
        state.withLock { $0.upload = upload }
        return upload
    }

    /// Not asked again: whether the first one was heard would be a guess.
    private func complete() async throws {
        let (upload, tags) = state.withLock { ($0.upload ?? "", $0.tags) }
        let parts = tags.enumerated().map { index, tag in
            "<Part><PartNumber>\(index + 1)</PartNumber><ETag>\(S3Document.escape(tag))</ETag></Part>"
        }
        let body = Array("<CompleteMultipartUpload>\(parts.joined())</CompleteMultipartUpload>".utf8)
        let request = S3Request(
            "POST", target, query: [("uploadId", upload)], body: .bytes(body),
            sha256: Hex.encode(SHA256.hash(body)))
        // S3 says 200 before it knows, to keep the connection: what counts is in the body.
        _ = try await store.document("CompleteMultipartUploadResult", of: request, attemptsMax: 1)
        state.withLock { $0.upload = nil }
    }

    /// Lets S3 forget the parts.
    private func abandon() async {
        let upload = state.withLock { state in
            defer { state.upload = nil }
            return state.upload
        }
        guard let upload else { return }
        do {
            try await store.remove(S3Request("DELETE", target, query: [("uploadId", upload)]), attemptsMax: 1)
        } catch {
            // The sweep finds it within a day.
            return
        }
    }
}
