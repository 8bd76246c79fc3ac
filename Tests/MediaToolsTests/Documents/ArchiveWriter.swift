import Czip
import Foundation

/// Archives made for a test, by libzip.
enum ArchiveWriter {
    static func zip(_ parts: [(name: String, bytes: [UInt8])], in scratch: Scratch) throws -> [UInt8] {
        let path = scratch.path + "/" + UUID().uuidString + ".zip"
        var code: Int32 = 0
        guard let archive = zip_open(path, ZIP_CREATE | ZIP_EXCL, &code) else { throw Trouble.zip(code) }
        for (name, bytes) in parts {
            // Freed by libzip, which reads it when the archive is closed.
            let copy = malloc(max(bytes.count, 1))
            bytes.withUnsafeBytes { if let base = $0.baseAddress { copy?.copyMemory(from: base, byteCount: $0.count) } }
            let source = zip_source_buffer(archive, copy, zip_uint64_t(bytes.count), 1)
            guard zip_file_add(archive, name, source, zip_flags_t(ZIP_FL_ENC_UTF_8)) >= 0 else {
                throw Trouble.zip(-1)
            }
        }
        guard zip_close(archive) == 0 else { throw Trouble.zip(-2) }
        defer { try? FileManager.default.removeItem(atPath: path) }
        return Array(try Data(contentsOf: URL(fileURLWithPath: path)))
    }

    enum Trouble: Error { case zip(Int32) }

    static func escaped(_ text: some StringProtocol) -> String {
        text.replacingOccurrences(of: "&", with: "&amp;").replacingOccurrences(of: "<", with: "&lt;")
    }
}

/// A DOCX with given parts.
struct WordFile {
    static let space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    private static let relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"

    var body: String
    var header: String?
    var prolog = ""
    /// Addresses by their relation's id.
    var links: [String: String] = [:]
    var more: [(name: String, bytes: [UInt8])] = []

    /// A paragraph of one run; tabs and page breaks as Word has them.
    static func paragraph(_ text: some StringProtocol) -> String {
        let runs = text.split(separator: "\t", omittingEmptySubsequences: false).map { part in
            "<w:r><w:t xml:space=\"preserve\">" + ArchiveWriter.escaped(part) + "</w:t></w:r>"
        }
        return "<w:p>" + runs.joined(separator: "<w:r><w:tab/></w:r>") + "</w:p>"
    }

    static func row(_ cells: [String]) -> String {
        "<w:tr>" + cells.map { "<w:tc>" + paragraph($0) + "</w:tc>" }.joined() + "</w:tr>"
    }

    func bytes(in scratch: Scratch) throws -> [UInt8] {
        let part = { (root: String, content: String) in
            Array(
                ("<?xml version=\"1.0\" encoding=\"UTF-8\"?>" + prolog
                    + "<w:\(root) xmlns:w=\"\(Self.space)\" xmlns:r=\"\(Self.relations)\" "
                    + "xmlns:mc=\"http://schemas.openxmlformats.org/markup-compatibility/2006\">"
                    + content + "</w:\(root)>").utf8)
        }
        var relations = links.sorted { $0.key < $1.key }.map { id, target in
            "<Relationship Id=\"\(id)\" Type=\"\(Self.relations)/hyperlink\" Target=\"\(target)\" "
                + "TargetMode=\"External\"/>"
        }
        if header != nil {
            relations.append("<Relationship Id=\"h1\" Type=\"\(Self.relations)/header\" Target=\"header1.xml\"/>")
        }
        var parts: [(name: String, bytes: [UInt8])] = [
            ("[Content_Types].xml", Array(Self.types.utf8)),
            (
                "_rels/.rels",
                Self.list([
                    "<Relationship Id=\"m\" Type=\"\(Self.relations)/officeDocument\" Target=\"word/document.xml\"/>"
                ])
            ),
            ("word/document.xml", part("document", "<w:body>\(body)</w:body>")),
            ("word/_rels/document.xml.rels", Self.list(relations)),
        ]
        if let header { parts.append(("word/header1.xml", part("hdr", header))) }
        return try ArchiveWriter.zip(parts + more, in: scratch)
    }

    private static let types =
        "<Types xmlns=\"http://schemas.openxmlformats.org/package/2006/content-types\"><Override "
        + "PartName=\"/word/document.xml\" ContentType=\"application/vnd.openxmlformats-officedocument"
        + ".wordprocessingml.document.main+xml\"/></Types>"

    private static func list(_ relations: [String]) -> [UInt8] {
        Array(
            ("<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\">"
                + relations.joined() + "</Relationships>").utf8)
    }
}

/// An ODT with given markup.
struct OpenDocumentFile {
    private static let spaces =
        ["office", "text", "table", "style", "draw"].map {
            "xmlns:\($0)=\"urn:oasis:names:tc:opendocument:xmlns:\($0):1.0\""
        }.joined(separator: " ") + " xmlns:xlink=\"http://www.w3.org/1999/xlink\""

    var body: String
    var header = ""
    var manifest = "<manifest:manifest xmlns:manifest=\"urn:oasis:names:tc:opendocument:xmlns:manifest:1.0\"/>"

    static func paragraph(_ text: some StringProtocol) -> String {
        "<text:p>" + ArchiveWriter.escaped(text).replacingOccurrences(of: "\t", with: "<text:tab/>") + "</text:p>"
    }

    func bytes(in scratch: Scratch) throws -> [UInt8] {
        try ArchiveWriter.zip(
            [
                ("mimetype", Array("application/vnd.oasis.opendocument.text".utf8)),
                (
                    "content.xml",
                    Array(
                        ("<office:document-content \(Self.spaces)><office:body><office:text>\(body)</office:text>"
                            + "</office:body></office:document-content>").utf8)
                ),
                (
                    "styles.xml",
                    Array(
                        ("<office:document-styles \(Self.spaces)><office:master-styles><style:master-page>"
                            + "<style:header>\(header)</style:header></style:master-page></office:master-styles>"
                            + "</office:document-styles>").utf8)
                ),
                ("META-INF/manifest.xml", Array(manifest.utf8)),
            ], in: scratch)
    }
}
