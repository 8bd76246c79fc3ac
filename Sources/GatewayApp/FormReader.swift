import Core
import CoreHTTP
import Crypto
import Foundation
import HTTPServer
import JSON

/// What a form brought: text fields, and files that lie in the object store but belong to nobody yet.
struct Form: Sendable {
    let fields: Fields
    /// By the name of their part.
    let files: [String: Media.Draft]
    fileprivate let store: any ObjectStore

    /// Runs `body`, which gives the files an owner; when it throws they are removed. Not when it is unknown whether the
    /// rows were written: a row without its file is worse than a file without a row.
    func keepingFiles<T>(_ body: (Form) async throws -> T) async throws -> T {
        do {
            return try await body(self)
        } catch let error as AppError where error == .outcomeUnknown {
            throw error
        } catch {
            for file in files.values {
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

    static func bodyMax(_ kind: Media.Kind) -> Int { kind.bytesMax + overheadBytesMax }

    /// - Parameter files: the parts that may be files, and what kind of media each is. Other file parts are refused.
    /// - Throws: `invalid`, `tooLarge`, `unsupportedType`, or `HTTPError` for a body that is cut off or malformed.
    func read(_ request: HTTPRequest, files: [String: Media.Kind]) async throws -> Form {
        guard request.mediaType == "multipart/form-data" else {
            return Form(fields: try await request.fields(), files: [:], store: store)
        }
        var texts: [String: JSONValue] = [:]
        var stored: [String: Media.Draft] = [:]
        do {
            var reader = try MultipartReader(request)
            while let part = try await reader.nextPart() {
                guard let fileName = part.filename else {
                    texts[part.name] = .string(try await text(of: part, &reader))
                    continue
                }
                // Strapi's own form prefixes files; the client of this contract does not.
                let name = part.name.hasPrefix("files.") ? String(part.name.dropFirst(6)) : part.name
                guard let kind = files[name] else {
                    throw AppError.invalid(part.name, "\(part.name) is not a file that is expected here")
                }
                guard stored[name] == nil else { throw AppError.invalid(name, "\(name) was sent twice") }
                stored[name] = try await file(part, named: fileName, kind: kind, &reader)
            }
        } catch {
            await remove(stored)
            throw error
        }
        do {
            return Form(fields: try Self.fields(from: texts), files: stored, store: store)
        } catch {
            await remove(stored)
            throw error
        }
    }

    /// Bare fields as the stock client sends them, or one JSON `data` as Strapi asks for it.
    private static func fields(from texts: [String: JSONValue]) throws(AppError) -> Fields {
        guard case .string(let data)? = texts["data"] else { return Fields(texts) }
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
                    throw AppError(
                        .tooLarge, "\(part.name) is larger than the \(kind.bytesMax >> 20) MiB that are allowed.")
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
            return draft
        } catch {
            await writer.abort()
            throw error
        }
    }

    private func remove(_ stored: [String: Media.Draft]) async {
        for file in stored.values { try? await store.delete(file.storageKey) }
    }
}

/// What a file is called in its public address.
enum FileName {
    static let slugLengthMax = 60

    /// contracts: slug of the base name, `_`, ten hexadecimal digits.
    static func hash(of name: String, random: any RandomSource) -> String {
        let base = name.lastIndex(of: ".").map { $0 == name.startIndex ? name[...] : name[..<$0] } ?? name[...]
        var slug = ""
        for character in base.lowercased().unicodeScalars {
            if ("a"..."z").contains(character) || ("0"..."9").contains(character) {
                slug.unicodeScalars.append(character)
            } else if !slug.hasSuffix("_"), !slug.isEmpty {
                slug += "_"
            }
            if slug.utf8.count == slugLengthMax { break }
        }
        while slug.hasSuffix("_") { slug.removeLast() }
        return (slug.isEmpty ? "file" : slug) + "_" + Hex.encode(random.bytes(5))
    }
}
