import Core
import EventLoop
import Foundation
import MediaTools
import Resume
import ServiceKit

/// Has an upload scanned where a clamd is configured, has a sandboxed child look at what is clean, keeps what it made,
/// and writes down what the file is, or why it is none.
///
/// Run again it makes the same objects under the same keys, and changes nothing once the media row is decided.
public struct ProcessUpload: WorkHandler {
    /// A file that ends its child, or an object that is not there, gets one more chance: the machine may be at fault.
    public static let attemptsMax = 2
    /// Read and written at a time.
    static let chunkBytes = 256 * 1024

    private struct Payload: Decodable {
        let media_id: Int64
    }

    public let kind = WorkItem.Kind.processUpload
    private let media: any MediaRepository
    private let store: any WorkingStore
    private let scratch: String
    private let offload: OffloadPool
    private let clock: any ServiceClock
    private let scanner: UploadScanner?
    private let process: @Sendable (MediaRequest) async throws -> MediaAnswer
    private let log: Log

    /// - Parameters:
    ///   - scratch: a folder beneath the children's roots, for what they write.
    ///   - scanner: nil where nothing is scanned.
    ///   - process: as `MediaChildPool.process`.
    public init(
        media: any MediaRepository, store: any WorkingStore, scratch: String, offload: OffloadPool,
        clock: any ServiceClock, log: Log, scanner: UploadScanner? = nil,
        process: @escaping @Sendable (MediaRequest) async throws -> MediaAnswer
    ) {
        self.media = media
        self.store = store
        self.scratch = scratch
        self.offload = offload
        self.clock = clock
        self.log = log
        self.scanner = scanner
        self.process = process
    }

    public func run(_ item: WorkItem) async throws {
        let id = Media.ID(try item.decode(Payload.self).media_id)
        let found: Media
        do { found = try await media.find(id) } catch let error as AppError where error.code == .notFound { return }
        switch found.state {
        case .ready, .rejected: return
        case .pending: break
        }
        try scanner?.checkReady()
        try await store.patiently { try await decide(found, item) }
    }

    private func decide(_ found: Media, _ item: WorkItem) async throws {
        let isThere: Void? = try await store.withLocalFile(found.storageKey) { path in
            // Before anything of ours opens it, and of the very bytes that are opened then.
            if let signature = try await scanner?.signature(in: path, of: found) {
                try await reject(found, .infected(signature: signature), reason: Media.infected.reason)
            } else {
                try await look(at: found, path: path, attempt: item.attempt)
            }
        }
        guard isThere != nil else {
            guard item.attempt >= Self.attemptsMax else { throw WorkFailure.later("the object is not in the store") }
            log.error("an upload is not in the store", ["media": .int(found.id.value)])
            let (reason, message) = Media.lost
            return try await reject(found, .rejected(reason: reason, message: message), reason: reason)
        }
    }

    private func look(at found: Media, path: String, attempt: Int) async throws {
        let folder = scratch + "/child-" + String(UInt64.random(in: .min ... .max), radix: 16)
        try await offload.run {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        }
        do {
            let answer = try await process(request(for: found, path: path, folder: folder))
            try await conclude(found, answer, folder: folder, attempt: attempt)
        } catch {
            await remove(folder)
            // Tried again after a pause, in no order, however many others there are: an attempt is not counted. Each
            // begins anew with the object, clamd and the parser, since that it is a scan is known only then.
            if error as? MediaPoolError == .scansBusy { throw WorkFailure.waiting("other scans are being read") }
            throw error
        }
        await remove(folder)
    }

    private func request(for media: Media, path: String, folder: String) -> MediaRequest {
        let kind: MediaRequest.Kind =
            switch media.kind {
            case .cv: .cv
            case .logo, .profile: .image
            case .attachment: .any
            }
        var limits = MediaLimits()
        limits.fileBytesMax = media.kind.bytesMax
        return MediaRequest(
            kind: kind, path: path, outputDirectory: folder, limits: limits,
            resumeIn: media.kind == .cv ? Self.month(of: clock.now()) : nil)
    }

    private static func month(of date: Date) -> Resume.Month {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        let parts = calendar.dateComponents([.year, .month], from: date)
        return Resume.Month(year: parts.year ?? 0, month: parts.month ?? 1)
    }

    private func conclude(_ media: Media, _ answer: MediaAnswer, folder: String, attempt: Int) async throws {
        switch answer {
        case .failed(let text): throw WorkFailure.later(text)
        case .rejected(let rejection):
            if rejection == .crashed || rejection == .timedOut, attempt < Self.attemptsMax {
                throw WorkFailure.later("the child ended: \(rejection.rawValue)")
            }
            let reason = rejection.rawValue
            try await reject(media, .rejected(reason: reason, message: rejection.sentence), reason: reason)
        case .document(let document):
            let note: String? =
                switch document.textOutcome {
                case .extracted: nil
                case .none: "no_text"
                case .cut: "text_cut"
                // The first pages of a long one.
                case .scanned: document.pageOffsets.count < document.pages ?? 0 ? "scan_cut" : "scan"
                }
            let resume = try document.resume.map { String(decoding: try JSONEncoder().encode($0), as: UTF8.self) }
            _ = try await self.media.finish(
                media.id,
                .ready(
                    mime: document.type.mime, ext: document.type.ext, width: nil, height: nil,
                    pageCount: document.pages, text: document.text.isEmpty ? nil : document.text,
                    pageOffsets: document.pageOffsets, resume: resume, note: note, variants: []))
        case .image(let image):
            try await finish(media, image, folder: folder)
        }
    }

    private func reject(_ media: Media, _ result: MediaResult, reason: String) async throws {
        guard try await self.media.finish(media.id, result) else { return }
        log.info("rejected an upload", ["media": .int(media.id.value), "reason": .string(reason)])
    }

    private func finish(_ media: Media, _ image: MediaImage, folder: String) async throws {
        var variants: [Media.Variant] = []
        for variant in [image.original] + image.variants {
            let name = variant.name == .original ? "upright" : variant.name.rawValue
            let key = Self.variantKey(media.storageKey, name)
            try await keep(folder + "/" + variant.file, as: key)
            variants.append(
                Media.Variant(
                    name: name, storageKey: key, hash: "\(name)_\(media.hash)", mime: variant.mime, ext: variant.ext,
                    bytes: Int64(variant.bytes), width: variant.width, height: variant.height))
        }
        let finished = try await self.media.finish(
            media.id,
            .ready(
                // What is served is the image written anew: a GIF's first frame is a PNG.
                mime: image.original.mime, ext: image.original.ext, width: image.width, height: image.height,
                pageCount: nil, text: nil, pageOffsets: [], note: image.frames > 1 ? "animated" : nil,
                variants: variants))
        guard !finished else { return }
        // Deleted in the meantime: nobody will ever delete these. Decided by another worker: they are in use.
        do { _ = try await self.media.find(media.id) } catch let error as AppError where error.code == .notFound {
            for variant in variants { try await store.delete(variant.storageKey) }
        }
    }

    /// `up/ab/abcd…` → `va/ab/abcd…_small`: the same for every run.
    static func variantKey(_ original: String, _ name: String) -> String {
        "va/" + original.split(separator: "/").dropFirst().joined(separator: "/") + "_" + name
    }

    /// Copies a file of the child's into the store.
    private func keep(_ path: String, as key: String) async throws {
        let writer = try await store.create(key)
        do {
            var offset: UInt64 = 0
            while true {
                let start = offset
                let bytes = try await offload.run {
                    let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
                    defer { try? file.close() }
                    try file.seek(toOffset: start)
                    return [UInt8](try file.read(upToCount: Self.chunkBytes) ?? Data())
                }
                if bytes.isEmpty { break }
                offset += UInt64(bytes.count)
                try await writer.write(bytes)
            }
            try await writer.commit()
        } catch {
            await writer.abort()
            throw error
        }
    }

    private func remove(_ folder: String) async {
        do {
            try await offload.run { try FileManager.default.removeItem(atPath: folder) }
        } catch {
            log.warning("could not remove a child's folder", ["error": .string("\(error)")])
        }
    }
}
