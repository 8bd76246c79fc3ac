import Core
import Foundation
import Transfer

extension S3Store {
    /// Pages of one folder that are looked at: an endless list ends.
    static let pagesMax = 10_000
    /// Uploads in parts that one sweep looks at, for each of the first parts of our keys.
    static let leftoversMax = 1000
    /// Keys of one page; S3 gives no more.
    static let listMax = 1000

    public func oldKeys(
        shard: Int, before date: Date, pageMax: Int, _ page: ([String]) async throws -> Bool
    ) async throws {
        let shard = ObjectShard.name(shard)
        for top in ObjectKey.tops {
            var next: String?
            for _ in 0..<Self.pagesMax {
                let list = try await list("\(root)\(top)/\(shard)/", max: pageMax, from: next)
                let keys = list.objects.compactMap { object -> String? in
                    guard object.modifiedAt < date, object.key.hasPrefix(root) else { return nil }
                    let key = String(object.key.dropFirst(root.count))
                    return ObjectKey.isValid(key) ? key : nil
                }
                if !keys.isEmpty, try await !page(keys) { return }
                next = list.next
                if next == nil { break }
            }
        }
    }

    /// By listing what lies between them: a request for a thousand keys, rather than a thousand requests.
    public func missing(of keys: [String]) async throws -> [String] {
        guard let first = keys.first, let last = keys.last else { return [] }
        let (paths, end) = (try keys.map(path), try path(last))
        // Comes before the first key, and little comes between.
        let start = String(try path(first).dropLast())
        let folder = start[...(start.lastIndex(of: "/") ?? start.startIndex)]
        var (found, next) = (Set<String>(), String?.none)
        for _ in 0..<Self.pagesMax {
            let list = try await list(String(folder), max: Self.listMax, from: next, after: start)
            found.formUnion(list.objects.map(\.key))
            next = list.next
            if next == nil || list.objects.last.map({ Array($0.key.utf8).lexicographicallyPrecedes(end.utf8) }) != true
            {
                break
            }
        }
        return zip(keys, paths).filter { !found.contains($0.1) }.map(\.0)
    }

    public func sweep(now: Date) async throws -> Int {
        let (scratch, before) = (scratch, now - Self.leftoverSecondsMax)
        let files = try await files.run { try Files.sweep(scratch, before: before) }
        return files + (try await sweepUploads(before: before))
    }

    /// Ends uploads in parts that nobody goes on with: they cost as much as objects, and no list shows them.
    private func sweepUploads(before date: Date) async throws -> Int {
        var removed = 0
        for top in ObjectKey.tops { removed += try await sweepUploads("\(root)\(top)/", before: date) }
        return removed
    }

    /// - Parameter prefix: the whole beginning of the keys. Others in the bucket may have uploads of their own.
    private func sweepUploads(_ prefix: String, before date: Date) async throws -> Int {
        let query = [("max-uploads", "\(Self.leftoversMax)"), ("prefix", prefix), ("uploads", "")]
        let document = try await document("ListMultipartUploadsResult", of: S3Request("GET", "", query: query))
        var removed = 0
        for upload in document.elements("Upload") {
            guard let key = upload.texts(of: "Key").first, key.hasPrefix(prefix),
                let id = upload.texts(of: "UploadId").first,
                let begun = upload.texts(of: "Initiated").first.flatMap(S3Document.date), begun < date
            else { continue }
            try await remove(S3Request("DELETE", key, query: [("uploadId", id)]))
            removed += 1
        }
        return removed
    }

    private struct Page {
        let objects: [(key: String, modifiedAt: Date)]
        /// Where the list goes on.
        let next: String?
    }

    /// - Parameters:
    ///   - prefix: the whole beginning of the keys.
    ///   - token: of the page before, to go on.
    ///   - start: a whole key, after which the first page begins.
    private func list(
        _ prefix: String, max: Int, from token: String?, after start: String? = nil
    ) async throws -> Page {
        var query = [("list-type", "2"), ("max-keys", "\(max)"), ("prefix", prefix)]
        if let token {
            query.append(("continuation-token", token))
        } else if let start {
            query.append(("start-after", start))
        }
        let document = try await document("ListBucketResult", of: S3Request("GET", "", query: query))
        // What is not understood of a list must not look like what is not there.
        let objects = try document.elements("Contents").map { object -> (key: String, modifiedAt: Date) in
            guard let key = object.texts(of: "Key").first, key.hasPrefix(prefix),
                let modified = object.texts(of: "LastModified").first.flatMap(S3Document.date)
            else { throw StoreError(.unreachable("a list has what was not asked for")) }
            return (key, modified)
        }
        let next = document.texts(of: "NextContinuationToken").first
        switch document.texts(of: "IsTruncated").first {
        case "false": return Page(objects: objects, next: nil)
        case "true" where next != nil: return Page(objects: objects, next: next)
        default: throw StoreError(.unreachable("a list does not say where it ends"))
        }
    }
}
