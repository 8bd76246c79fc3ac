import Foundation

@testable import MediaTools

/// A CV of ours with what a person reads in it. A file of the folder `CVs`: lines of labels, `---`, and the text.
struct CVSample {
    let file: String
    private let labels: [String: String]
    private let text: String

    static let all: [CVSample] = {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("CVs")
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return names.sorted().compactMap { name in
            (try? String(contentsOf: folder.appendingPathComponent(name), encoding: .utf8)).map {
                CVSample(file: name, $0)
            }
        }
    }()

    private init(file: String, _ content: String) {
        self.file = file
        let parts = content.components(separatedBy: "---\n")
        text = parts.dropFirst().joined(separator: "---\n")
        var labels: [String: String] = [:]
        for line in parts[0].split(separator: "\n") {
            let pair = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            labels[String(pair[0])] = pair[1].trimmingCharacters(in: .whitespaces)
        }
        self.labels = labels
    }

    var format: String { labels["format"] ?? "" }
    var name: String { labels["name"] ?? "" }
    var experience: Int? { labels["experience"].flatMap { Int($0) } }

    func list(_ key: String) -> [String] {
        (labels[key] ?? "").split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
    }

    // MARK: As a file

    private var lines: [Substring] { text.split(separator: "\n", omittingEmptySubsequences: false) }

    func bytes(in scratch: Scratch) throws -> [UInt8] {
        switch format {
        case "txt": return Array(text.utf8)
        case "txt-1252": return narrow(text)
        case "txt-utf16": return [0xFF, 0xFE] + text.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
        case "rtf", "rtf-1252": return rtf()
        case "doc": return LegacyWordFile(narrow: narrow(text.replacing("\n", with: "\r"))).bytes()
        case "doc-wide": return LegacyWordFile(wide: text.replacing("\n", with: "\r")).bytes()
        case "pdf": return pdf()
        case "pdf-columns": return columns()
        case "odt":
            return try OpenDocumentFile(body: lines.map { OpenDocumentFile.paragraph($0) }.joined()).bytes(in: scratch)
        default: return try word().bytes(in: scratch)
        }
    }

    private func narrow(_ text: String) -> [UInt8] {
        text.unicodeScalars.map { scalar in
            scalar.value < 0x80
                ? UInt8(scalar.value)
                : (0x80...0xFF as ClosedRange<UInt8>).first { CodePage.windows1252.scalar($0) == scalar } ?? 0x3F
        }
    }

    private func rtf() -> [UInt8] {
        var body = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\n": body += "\\par\n"
            case "\t": body += "\\tab "
            case "\\", "{", "}": body += "\\\(scalar)"
            case _ where scalar.value < 0x80: body.unicodeScalars.append(scalar)
            case _ where format == "rtf": body += scalar.utf16.map { "\\u\(Int16(bitPattern: $0))?" }.joined()
            default: body += "\\'" + String(narrow(String(scalar))[0], radix: 16)
            }
        }
        return Array("{\\rtf1\\ansi\\ansicpg1252{\\fonttbl{\\f0 Arial;}}\\f0 \(body)}".utf8)
    }

    private func pdf() -> [UInt8] {
        var pdf = PDFWriter()
        for page in lines.split(separator: "%%", omittingEmptySubsequences: false) {
            precondition(page.count <= PDFWriter.linesMax)
            pdf.addPage([(0, 0, Array(page))])
        }
        return pdf.bytes()
    }

    /// A head over the whole width, a narrow column and a wide one.
    private func columns() -> [UInt8] {
        let parts = lines.split(separator: "|||", omittingEmptySubsequences: false).map(Array.init)
        var pdf = PDFWriter()
        let top = parts[0].count + 1
        pdf.addPage([(0, 0, parts[0]), (0, top, parts[1]), (190, top, parts[2])])
        return pdf.bytes()
    }

    private func word() -> WordFile {
        switch format {
        case "docx-header":
            let end = lines.firstIndex(of: "") ?? 0
            return WordFile(
                body: lines[end...].map { WordFile.paragraph($0) }.joined(),
                header: lines[..<end].map { WordFile.paragraph($0) }.joined())
        case "docx-table":
            let body = lines.map { line in
                let cells = line.components(separatedBy: " |").map { $0.trimmingCharacters(in: .whitespaces) }
                return cells.count > 1 ? "<w:tbl>\(WordFile.row(cells))</w:tbl>" : WordFile.paragraph(line)
            }
            return WordFile(body: body.joined())
        case "docx-links": return linked()
        default: return WordFile(body: lines.map { WordFile.paragraph($0) }.joined())
        }
    }

    /// `[word](address)` is a link.
    private func linked() -> WordFile {
        var links: [String: String] = [:]
        let body = lines.map { line in
            var runs = ""
            var rest = line
            while let match = rest.firstMatch(of: /\[([^\]]+)\]\(([^)]+)\)/) {
                let id = "r\(links.count)"
                links[id] = String(match.2)
                runs += run(rest[..<match.range.lowerBound])
                runs += "<w:hyperlink r:id=\"\(id)\">\(run(match.1))</w:hyperlink>"
                rest = rest[match.range.upperBound...]
            }
            return "<w:p>\(runs)\(run(rest))</w:p>"
        }
        return WordFile(body: body.joined(), links: links)
    }

    private func run(_ text: Substring) -> String {
        "<w:r><w:t xml:space=\"preserve\">\(ArchiveWriter.escaped(text))</w:t></w:r>"
    }
}
