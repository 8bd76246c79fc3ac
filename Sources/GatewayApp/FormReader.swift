import Core
import CoreHTTP
import Crypto
import Foundation
import HTTPServer
import JSON
import ServiceKit

/// What a form brought: text fields, and files that lie in the object store but belong to nobody yet.
struct Form: Sendable {
    let fields: Fields
    /// Whether it came as a form, and not as JSON.
    let isMultipart: Bool
    /// All values of each field, as they came; of a form only.
    let texts: [String: [String]]
    /// All files of each part's name, as they came.
    let lists: [String: [Media.Draft]]
    fileprivate let store: any ObjectStore

    /// By the name of their part, where that may be there once.
    var files: [String: Media.Draft] { lists.compactMapValues(\.first) }

    /// Runs `body`, which gives the files an owner; when it throws they are removed. Not when it is unknown whether the
    /// rows were written: a row without its file is worse than a file without a row.
    func keepingFiles<T>(_ body: (Form) async throws -> T) async throws -> T {
        do {
            return try await body(self)
        } catch let error as AppError where error == .outcomeUnknown {
            throw error
        } catch {
            for file in lists.values.joined() {
                do {
                    try await store.delete(file.storageKey)
                } catch {
                    // The sweep of the object store finds it: no row names it.
                    continue
                }
            }
            throw error
        }
    }
}

/// Reads JSON and multipart forms alike. Files go to the object store as they arrive, hashed and counted on the way;
/// nothing of them is held in memory. What is not taken (too large, too many, an unknown part) leaves nothing behind.
struct FormReader: Sendable {
    static let textBytesMax = 64 * 1024
    /// Of the form around the file: boundaries, part heads, texts.
    static let overheadBytesMax = 1 << 20

    let store: any ObjectStore
    let random: any RandomSource
    let counts: UploadCounts

    static func bodyMax(_ kind: Media.Kind) -> Int { kind.bytesMax + overheadBytesMax }

    /// - Parameters:
    ///   - files: the parts that may be files, and what kind of media each is. Other file parts are refused.
    ///   - repeatedMax: how many files of one name there may be.
    /// - Throws: `invalid`, `tooLarge`, `unsupportedType`, or `HTTPError` for a body that is cut off or malformed.
    func read(_ request: HTTPRequest, files: [String: Media.Kind], repeatedMax: Int = 1) async throws -> Form {
        guard request.mediaType == "multipart/form-data" else {
            return Form(fields: try await request.fields(), isMultipart: false, texts: [:], lists: [:], store: store)
        }
        var texts: [String: [String]] = [:]
        var stored: [String: [Media.Draft]] = [:]
        do {
            var reader = try MultipartReader(request)
            while let part = try await reader.nextPart() {
                guard let fileName = part.filename else {
                    texts[part.name, default: []].append(try await text(of: part, &reader))
                    continue
                }
                // Strapi's own form prefixes files; the client of this contract does not.
                let name = part.name.hasPrefix("files.") ? String(part.name.dropFirst(6)) : part.name
                guard let kind = files[name] else {
                    throw AppError.invalid(part.name, "\(part.name) is not a file that is expected here")
                }
                guard stored[name, default: []].count < repeatedMax else {
                    throw AppError.invalid(
                        name, repeatedMax == 1 ? "\(name) was sent twice" : "\(name) are limited to \(repeatedMax)")
                }
                stored[name, default: []].append(try await file(part, named: fileName, kind: kind, &reader))
            }
        } catch {
            await remove(stored)
            throw error
        }
        do {
            return Form(
                fields: try Self.fields(from: texts), isMultipart: true, texts: texts, lists: stored, store: store)
        } catch {
            await remove(stored)
            throw error
        }
    }

    /// Bare fields as the stock client sends them, or one JSON `data` as Strapi asks for it.
    private static func fields(from texts: [String: [String]]) throws(AppError) -> Fields {
        guard let data = texts["data"]?.last else {
            return Fields(texts.compactMapValues { $0.last.map(JSONValue.string) })
        }
        guard let value = try? JSONValue(parsing: Array(data.utf8)), case .object(let object) = value else {
            throw .invalid("data", "Invalid 'data' field. 'data' should be a valid JSON.")
        }
        return Fields(object)
    }

    private func text(of part: MultipartReader.Part, _ reader: inout MultipartReader) async throws -> String {
        let bytes = try await reader.collect(max: Self.textBytesMax)
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw AppError.invalid(part.name, "\(part.name) is not UTF-8")
        }
        return text
    }

    private func file(
        _ part: MultipartReader.Part, named fileName: String, kind: Media.Kind, _ reader: inout MultipartReader
    ) async throws -> Media.Draft {
        let id = Hex.encode(random.bytes(16))
        let key = "up/\(id.prefix(2))/\(id)"
        let writer = try await store.create(key)
        let hasher = SHA256.Hasher()
        var count = 0
        do {
            while let chunk = try await reader.next() {
                count += chunk.count
                guard count <= kind.bytesMax else {
                    throw Self.tooLarge(part.name, kind)
                }
                hasher.update(chunk)
                try await writer.write(chunk)
            }
            guard count > 0 else { throw AppError(.invalid, "Files are empty", issues: []) }
            let draft = Media.Draft(
                kind: kind, name: fileName, declaredType: part.contentType ?? "",
                hash: FileName.hash(of: Media.Draft.clean(name: fileName), random: random), bytes: Int64(count),
                sha256: hasher.finish(),
                storageKey: key)
            try await writer.commit()
            counts.stored(kind, bytes: count)
            return draft
        } catch {
            counts.refused(kind)
            await writer.abort()
            throw error
        }
    }

    static func tooLarge(_ part: String, _ kind: Media.Kind) -> AppError {
        AppError(.tooLarge, "\(part) is larger than the \(kind.bytesMax >> 20) MiB that are allowed.")
    }

    private func remove(_ stored: [String: [Media.Draft]]) async {
        for file in stored.values.joined() { try? await store.delete(file.storageKey) }
    }
}

/// Files that came in, by kind.
struct UploadCounts: Sendable {
    private struct OfKind: Sendable {
        let stored: Counter
        let refused: Counter
        let bytes: Counter
    }

    private let kinds: [Media.Kind: OfKind]

    init(_ metrics: Metrics) {
        kinds = Dictionary(
            uniqueKeysWithValues: Media.Kind.allCases.map { kind in
                func files(_ outcome: String) -> Counter {
                    metrics.counter(
                        "martlet_upload_files_total", "Files that came in: stored, or refused or broken off.",
                        labels: ["kind": kind.rawValue, "outcome": outcome])
                }
                let bytes = metrics.counter(
                    "martlet_upload_bytes_total", "Bytes of files that were stored.", labels: ["kind": kind.rawValue])
                return (kind, OfKind(stored: files("stored"), refused: files("refused"), bytes: bytes))
            })
    }

    func stored(_ kind: Media.Kind, bytes: Int) {
        kinds[kind]?.stored.add()
        kinds[kind]?.bytes.add(bytes)
    }

    func refused(_ kind: Media.Kind) { kinds[kind]?.refused.add() }
}

/// What a file is called in its public address.
enum FileName {
    static let slugLengthMax = 60

    /// contracts: slug of the base name, `_`, ten hexadecimal digits.
    static func hash(of name: String, random: any RandomSource) -> String {
        let base = name.lastIndex(of: ".").map { $0 == name.startIndex ? name[...] : name[..<$0] } ?? name[...]
        return slug(of: String(base)) + "_" + Hex.encode(random.bytes(5))
    }

    /// As Strapi makes one: letters lose their accents and keep their case, words of a `camelCase` come apart, and all
    /// else between them is one `_`.
    static func slug(of base: String) -> String {
        let plain = base.replacing("&", with: " and ").replacing("ß", with: "ss").replacing("æ", with: "ae")
            .replacing("ø", with: "o").folding(options: .diacriticInsensitive, locale: nil)
        var slug: [UInt8] = []
        var scalars = plain.unicodeScalars.map { $0.isASCII ? UInt8($0.value) : 0 }
        scalars.append(0)
        var capitals = 0
        for (byte, next) in zip(scalars, scalars.dropFirst()) {
            let kind = Letter(byte)
            // "myCV" and "CVFile" are two words each; so is "IMG2", but not "A2".
            let before = slug.last.map(Letter.init) ?? .other
            let begins =
                switch (before, kind) {
                case (.small, .capital), (.digit, .capital): true
                case (.capital, .capital): Letter(next) == .small
                case (.capital, .digit): capitals > 1
                default: false
                }
            if kind == .other || begins, before != .other { slug.append(UInt8(ascii: "_")) }
            if kind != .other { slug.append(byte) }
            capitals = kind == .capital ? capitals + 1 : 0
            if slug.count >= slugLengthMax { break }
        }
        while slug.last == UInt8(ascii: "_") { slug.removeLast() }
        return slug.isEmpty ? "file" : String(decoding: slug, as: UTF8.self)
    }

    private enum Letter {
        case small, capital, digit, other

        init(_ byte: UInt8) {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"): self = .small
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): self = .capital
            case UInt8(ascii: "0")...UInt8(ascii: "9"): self = .digit
            default: self = .other
            }
        }
    }
}
