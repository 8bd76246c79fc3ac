/// The text of a DOCX (ECMA-376): headers, the body, notes, footers, each part once. Pages are those that the program
/// wrote down when it last drew the document.
final class WordText {
    /// Headers, footers and notes that are read.
    private static let partsMax = 32
    private static let relationsMax = 10_000

    private struct Relation {
        let kind: Substring
        let target: String
        let isExternal: Bool
    }

    private let archive: Archive
    private var text: TextBuilder
    private var relations: [String: Relation] = [:]

    // While a part is read.
    private var runs = 0
    private var texts = 0
    private var skipped = 0
    private var links: [(target: String, offset: Int)] = []
    /// For each `AlternateContent` around us, whether its first choice has been taken.
    private var alternatives: [Bool] = []

    init(_ archive: Archive, bytesMax: Int) {
        self.archive = archive
        text = TextBuilder(bytesMax: bytesMax)
    }

    func read() throws(Rejection) -> TextBuilder {
        let main = try mainPart()
        let folder = main.split(separator: "/").dropLast().joined(separator: "/")
        try readRelations("\(folder)/_rels/\(main.split(separator: "/").last ?? "").rels")
        text.beginPage()
        try readParts(of: "header", in: folder)
        guard try readPart(main, relations: relations) else { throw .broken }
        for kind in ["footnotes", "endnotes", "footer"] { try readParts(of: kind, in: folder) }
        return text
    }

    // MARK: Parts

    /// What the package says is the document; by its usual name where the package says nothing.
    private func mainPart() throws(Rejection) -> String {
        try readRelations("_rels/.rels")
        defer { relations = [:] }
        let found = relations.values.first { $0.kind == "officeDocument" && !$0.isExternal }
        return found.map { Self.path($0.target, in: "") } ?? "word/document.xml"
    }

    private func readRelations(_ name: String) throws(Rejection) {
        let reader = try XMLReader()
        var found: [String: Relation] = [:]
        reader.onStart = { name, attributes in
            guard name.local == "Relationship", found.count < Self.relationsMax, let id = attributes["Id"],
                let type = attributes["Type"], let target = attributes["Target"]
            else { return }
            found[id] = Relation(
                kind: type.split(separator: "/").last ?? "", target: target,
                isExternal: attributes["TargetMode"] == "External")
        }
        _ = try archive.read(name) { bytes, isLast throws(Rejection) in try reader.feed(bytes, isLast: isLast) }
        relations = found
    }

    /// A target as a name in the archive.
    static func path(_ target: String, in folder: String) -> String {
        guard !target.hasPrefix("/") else { return String(target.dropFirst()) }
        var parts = folder.split(separator: "/")
        for part in target.split(separator: "/") where part != "." {
            if part == ".." { _ = parts.popLast() } else { parts.append(part) }
        }
        return parts.joined(separator: "/")
    }

    private func readParts(of kind: String, in folder: String) throws(Rejection) {
        let targets = relations.values.filter { $0.kind == kind && !$0.isExternal }
        for target in Set(targets.map(\.target)).sorted().prefix(Self.partsMax) {
            text.endLine()
            // Links of these have relations of their own; what they show is enough.
            _ = try readPart(Self.path(target, in: folder), relations: [:])
        }
    }

    private func readPart(_ name: String, relations: [String: Relation]) throws(Rejection) -> Bool {
        (runs, texts, skipped, links, alternatives) = (0, 0, 0, [], [])
        let reader = try XMLReader()
        reader.onStart = { [unowned self] name, attributes in start(name, attributes, relations) }
        reader.onEnd = { [unowned self] name in end(name) }
        reader.onText = { [unowned self] bytes in if texts > 0, skipped == 0 { text.append(bytes) } }
        return try archive.read(name) { bytes, isLast throws(Rejection) in try reader.feed(bytes, isLast: isLast) }
    }

    // MARK: Elements

    private static func isWord(_ name: XMLReader.Name) -> Bool { name.space.contains("wordprocessingml") }
    private static func isCompatibility(_ name: XMLReader.Name) -> Bool {
        name.space.hasSuffix("markup-compatibility/2006")
    }

    private func start(_ name: XMLReader.Name, _ attributes: XMLReader.Attributes, _ relations: [String: Relation]) {
        if skipped > 0 || isLeftOut(name) {
            skipped += 1
            return
        }
        guard Self.isWord(name) else { return }
        switch name.local {
        case "r": runs += 1
        case "t": texts += 1
        case "txbxContent": text.endLine()
        case "hyperlink":
            let relation = attributes["id"].flatMap { relations[$0] }
            links.append((relation?.isExternal == true ? relation?.target ?? "" : "", text.bytes.count))
        case let local where runs > 0: mark(local, attributes)
        default: break
        }
    }

    /// What stands for a character in a run.
    private func mark(_ local: Substring, _ attributes: XMLReader.Attributes) {
        switch local {
        case "tab": text.append(UInt8(ascii: "\t"))
        case "cr": text.newline()
        case "br": if attributes["type"] == "page" { text.breakPage() } else { text.newline() }
        case "lastRenderedPageBreak": text.breakPage()
        case "noBreakHyphen": text.append(UInt8(ascii: "-"))
        case "sym": text.append(UInt8(ascii: " "))
        default: break
        }
    }

    /// What was deleted or moved away, and all but the first of several drawings of the same thing.
    private func isLeftOut(_ name: XMLReader.Name) -> Bool {
        if Self.isCompatibility(name) {
            switch name.local {
            case "AlternateContent": alternatives.append(false)
            case "Choice", "Fallback":
                guard let isTaken = alternatives.last else { return false }
                alternatives[alternatives.count - 1] = true
                return isTaken
            default: break
            }
            return false
        }
        return Self.isWord(name) && ["del", "moveFrom", "rPr", "pPr"].contains(name.local)
    }

    private func end(_ name: XMLReader.Name) {
        guard skipped == 0 else {
            skipped -= 1
            return
        }
        if Self.isCompatibility(name), name.local == "AlternateContent" { _ = alternatives.popLast() }
        guard Self.isWord(name) else { return }
        switch name.local {
        case "r": runs -= 1
        case "t": texts -= 1
        case "p": text.newline()
        case "tc": text.endCell()
        case "tr": text.endRow()
        case "hyperlink": if let link = links.popLast() { text.link(to: link.target, at: link.offset) }
        default: break
        }
    }
}
