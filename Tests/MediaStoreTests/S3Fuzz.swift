import Foundation
import Seeded
import Testing

@testable import MediaStore

@Suite("Answers of an S3, by chance") struct S3Fuzz {
    private static let words = [
        "<Key>", "</Key>", "<Key/>", "<Contents>", "</Contents>", "<IsTruncated>true</IsTruncated>", "&amp;", "&lt;",
        "&",
        "<!--", "-->", "<![CDATA[", "]]>", "<KeyCount>", "<", ">", "</",
    ]

    private static func document(_ keys: [String]) -> String {
        let contents = keys.map { key in
            "<Contents><Key>\(S3Document.escape(key))</Key><LastModified>2026-11-30T14:18:24.000Z</LastModified>"
                + "<ETag>&quot;a&quot;</ETag></Contents>"
        }
        return "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"x\"><KeyCount>\(keys.count)</KeyCount>"
            + contents.joined() + "<IsTruncated>false</IsTruncated></ListBucketResult>"
    }

    @Test("give the keys that are in them, and nothing that is not")
    func s3() throws {
        try Fuzz("s3", rounds: 3_000).run { fuzz in
            let keys = (0..<fuzz.number(0...5)).map { _ in
                fuzz.text(of: ["up/", "a0", "<", ">", "&", "&amp;", "\"", "'", "é", " ", "&lt;", "]]>"], max: 8)
            }
            let document = Array(Self.document(keys).utf8)
            let isHarmed = fuzz.once(in: 2)
            fuzz.input = isHarmed ? fuzz.mutated(document, words: Self.words) : document
            let read = S3Document(fuzz.input)
            let contents = read.elements("Contents")
            let found = contents.flatMap { $0.texts(of: "Key") }
            if !isHarmed {
                try fuzz.checkEqual(found, keys, "the keys")
                let dates = contents.flatMap { $0.texts(of: "LastModified") }.map(S3Document.date)
                try fuzz.check(dates.count == keys.count && !dates.contains(nil), "the dates")
            }
            // Nothing is made longer than it came, and nothing is found twice.
            let length = found.reduce(0) { $0 + $1.utf8.count }
            let given = String(decoding: fuzz.input, as: UTF8.self)
            try fuzz.check(length <= given.utf8.count, "\(length) bytes of keys in \(given.utf8.count)")
            _ = read.texts(of: "LastModified").map { (S3Document.date($0), S3Document.headerDate($0)) }
        }
    }
}
