/// The text of an ODT (OpenDocument 1.3): headers and footers, which stand among the styles, then the body.
final class OpenDocumentText {
    /// Spaces that one element may stand for; layouts by spaces have some dozens.
    private static let spacesMax = 200

    private let archive: Archive
    private var text: TextBuilder

    // While a part is read.
    private var paragraphs = 0
    private var skipped = 0
    /// Elements around us in which text counts.
    private var places = 0
    private var links: [(target: String, offset: Int)] = []

    init(_ archive: Archive, bytesMax: Int) {
        self.archive = archive
        text = TextBuilder(bytesMax: bytesMax)
    }

    func read() throws(Rejection) -> TextBuilder {
        guard try !isEncrypted() else { throw .encrypted }
        text.beginPage()
        _ = try readPart("styles.xml", places: [":style:header", ":style:footer"])
        text.endLine()
        guard try readPart("content.xml", places: [":office:body"]) else { throw .broken }
        return text
    }

    private func isEncrypted() throws(Rejection) -> Bool {
        let reader = try XMLReader()
        var isEncrypted = false
        reader.onStart = { name, _ in if name.local == "encryption-data" { isEncrypted = true } }
        _ = try archive.read("META-INF/manifest.xml") { bytes, isLast throws(Rejection) in
            try reader.feed(bytes, isLast: isLast)
        }
        return isEncrypted
    }

    private func readPart(_ part: String, places wanted: Set<String>) throws(Rejection) -> Bool {
        (paragraphs, skipped, places, links) = (0, 0, 0, [])
        let reader = try XMLReader()
        reader.onStart = { [unowned self] name, attributes in
            let key = Self.key(name)
            if wanted.contains(key) { places += 1 }
            if places > 0 { start(key, attributes) }
        }
        reader.onEnd = { [unowned self] name in
            let key = Self.key(name)
            if places > 0 { end(key) }
            if wanted.contains(key) { places -= 1 }
        }
        reader.onText = { [unowned self] bytes in
            // A line end in the markup is a space; what is meant as one is an element.
            if paragraphs > 0, skipped == 0 { text.append(bytes.lazy.map { $0 == 10 ? 32 : $0 }) }
        }
        return try archive.read(part) { bytes, isLast throws(Rejection) in try reader.feed(bytes, isLast: isLast) }
    }

    /// `urn:oasis:names:tc:opendocument:xmlns:text:1.0` and `p` → `:text:p`.
    private static func key(_ name: XMLReader.Name) -> String {
        let parts = name.space.split(separator: ":")
        return ":\(parts.dropLast().last ?? ""):\(name.local)"
    }

    private static let leftOut: Set<String> = [":text:tracked-changes", ":office:annotation", ":text:note-citation"]

    private func start(_ key: String, _ attributes: XMLReader.Attributes) {
        if skipped > 0 || Self.leftOut.contains(key) {
            skipped += 1
            return
        }
        switch key {
        case ":text:p", ":text:h":
            // In a frame within a line.
            if paragraphs > 0 { text.endLine() }
            paragraphs += 1
        case ":text:s":
            let count = min(max(attributes["c"].flatMap { Int($0) } ?? 1, 0), Self.spacesMax)
            text.append(repeatElement(UInt8(ascii: " "), count: count))
        case ":text:tab": text.append(UInt8(ascii: "\t"))
        case ":text:line-break": text.newline()
        case ":text:soft-page-break": text.breakPage()
        case ":text:a": links.append((attributes["href"] ?? "", text.bytes.count))
        default: break
        }
    }

    private func end(_ key: String) {
        guard skipped == 0 else {
            skipped -= 1
            return
        }
        switch key {
        case ":text:p", ":text:h":
            paragraphs -= 1
            text.newline()
        case ":table:table-cell": text.endCell()
        case ":table:table-row": text.endRow()
        case ":text:a": if let link = links.popLast() { text.link(to: link.target, at: link.offset) }
        default: break
        }
    }
}
