import Foundation

@testable import MediaTools

/// PDFs made for a test: lines of text at places, in one of the fonts that every reader has.
struct PDFWriter {
    private static let size = (width: 595, height: 842)
    private static let leading = 13
    private static let margin = 40
    static let linesMax = 58

    /// Characters outside of Windows' Latin, each with a code of its own below the space.
    private var others: [Unicode.Scalar: UInt8] = [:]
    private var pages: [[UInt8]] = []

    /// - Parameter columns: each its left edge and its lines.
    mutating func addPage(_ columns: [(left: Int, top: Int, lines: [Substring])]) {
        var content: [UInt8] = []
        for column in columns {
            for (number, line) in column.lines.enumerated() where !line.isEmpty {
                let y = Self.size.height - Self.margin - (column.top + number) * Self.leading
                content += Array("BT /F1 10 Tf \(Self.margin + column.left) \(y) Td (".utf8)
                content += encoded(line)
                content += Array(") Tj ET\n".utf8)
            }
        }
        pages.append(content)
    }

    private mutating func encoded(_ text: Substring) -> [UInt8] {
        var bytes: [UInt8] = []
        for scalar in text.unicodeScalars {
            if scalar == "(" || scalar == ")" || scalar == "\\" { bytes.append(UInt8(ascii: "\\")) }
            if scalar.value < 0x80 {
                bytes.append(scalar == "\t" ? 32 : UInt8(scalar.value))
            } else if let byte = (0x80...0xFF as ClosedRange<UInt8>).first(where: {
                CodePage.windows1252.scalar($0) == scalar
            }) {
                bytes.append(byte)
            } else {
                let code = others[scalar] ?? UInt8(others.count + 14)
                others[scalar] = code
                bytes.append(code)
            }
        }
        return bytes
    }

    func bytes() -> [UInt8] {
        let names = others.sorted { $0.value < $1.value }.map { scalar, code in
            let hex = String(scalar.value, radix: 16, uppercase: true)
            return "\(code) /uni" + String(repeating: "0", count: 4 - hex.count) + hex
        }
        let encoding =
            "<< /Type /Encoding /BaseEncoding /WinAnsiEncoding /Differences [\(names.joined(separator: " "))] >>"
        let kids = pages.indices.map { "\(4 + $0 * 2) 0 R" }.joined(separator: " ")
        var objects: [[UInt8]] = [
            "<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Count \(pages.count) /Kids [\(kids)] >>",
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding \(encoding) >>",
        ].map { Array($0.utf8) }
        for (index, content) in pages.enumerated() {
            objects.append(
                Array(
                    ("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 \(Self.size.width) \(Self.size.height)] "
                        + "/Resources << /Font << /F1 3 0 R >> >> /Contents \(5 + index * 2) 0 R >>").utf8))
            objects.append(
                Array("<< /Length \(content.count) >>\nstream\n".utf8) + content + Array("\nendstream".utf8))
        }
        var pdf = Array("%PDF-1.4\n".utf8)
        var offsets: [Int] = []
        for (index, object) in objects.enumerated() {
            offsets.append(pdf.count)
            pdf += Array("\(index + 1) 0 obj\n".utf8) + object + Array("\nendobj\n".utf8)
        }
        let table = pdf.count
        pdf += Array("xref\n0 \(objects.count + 1)\n0000000000 65535 f \n".utf8)
        for offset in offsets {
            pdf += Array((String(repeating: "0", count: 10 - "\(offset)".count) + "\(offset) 00000 n \n").utf8)
        }
        let trailer = "trailer\n<< /Size \(objects.count + 1) /Root 1 0 R >>\nstartxref\n\(table)\n%%EOF\n"
        return pdf + Array(trailer.utf8)
    }
}
