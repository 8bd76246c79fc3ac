import Cpoppler
import Foundation

/// Looks into a document: that it opens, how many pages it has, their text, and where it links to.
struct DocumentWork {
    let limits: MediaLimits

    func run(_ file: borrowing OpenFile, type: ContentType) throws(Rejection) -> MediaDocument {
        let bytesMax = limits.textBytesMax
        let text: TextBuilder
        switch type {
        case .pdf: return try pdf(file)
        case .docx: text = try WordText(Archive(file), bytesMax: bytesMax).read()
        case .odt: text = try OpenDocumentText(Archive(file), bytesMax: bytesMax).read()
        case .doc:
            guard let compound = CompoundFile(file.contents()) else { throw .broken }
            text = try LegacyWordText(compound).read(bytesMax: bytesMax)
        case .rtf:
            var reader = RichText(file.contents(), bytesMax: bytesMax)
            text = try reader.read()
        default: text = PlainText(file: file.contents()).read(bytesMax: bytesMax)
        }
        return text.document(type, pages: nil)
    }

    private func pdf(_ file: borrowing OpenFile) throws(Rejection) -> MediaDocument {
        let pdf = try PDFFile(file, pagesMax: limits.pagesMax)
        var text = TextBuilder(bytesMax: limits.textBytesMax)
        for index in 0..<pdf.pages where !text.isCut {
            text.beginPage()
            pdf.withPage(index) { append($0, to: &text) }
        }
        return text.document(.pdf, pages: pdf.pages)
    }

    /// The text that the pictures of a PDF's pages show, as far as pages, time and certainty go. Nil when there is
    /// none.
    func scan(_ file: borrowing OpenFile, by reader: ScanReader) throws(Rejection) -> MediaDocument? {
        let pdf = try PDFFile(file, pagesMax: limits.pagesMax)
        var text = TextBuilder(bytesMax: limits.textBytesMax)
        let end = ContinuousClock.now + .seconds(limits.scanSecondsMax)
        for index in 0..<min(pdf.pages, limits.scanPagesMax) {
            let left = Int32(max(0, ContinuousClock.now.duration(to: end) / .milliseconds(1)))
            guard left > 0 else { break }
            let lines = pdf.picture(of: index).map { reader.lines(of: $0, millisecondsMax: left) } ?? []
            // A page that was not read to its end is left out, as those behind it are.
            guard let lines else { break }
            text.beginPage()
            for line in lines { text.append(line.utf8) }
        }
        return text.scanned(.pdf, pages: pdf.pages)
    }

    private func append(_ page: OpaquePointer, to text: inout TextBuilder) {
        let begin = text.bytes.count
        PDFPageText(page)?.append(to: &text)
        guard let mappings = poppler_page_get_link_mapping(page) else { return }
        defer { poppler_page_free_link_mapping(mappings) }
        var next: UnsafeMutablePointer<GList>? = mappings
        // The area of a link is known, not its place in the text: it counts for its page.
        while let mapping = next {
            if let address = martlet_poppler_link(mapping.pointee.data) {
                text.link(to: String(cString: address), at: begin)
            }
            next = mapping.pointee.next
        }
    }
}
