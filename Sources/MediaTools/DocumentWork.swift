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
        var status = MARTLET_POPPLER_OPEN
        guard let document = martlet_poppler_open(file.duplicate(), &status) else {
            throw status == MARTLET_POPPLER_ENCRYPTED ? .encrypted : .broken
        }
        defer { martlet_poppler_release(UnsafeMutableRawPointer(document)) }
        let pages = Int(poppler_document_get_n_pages(document))
        guard pages > 0 else { throw .broken }
        guard pages <= limits.pagesMax else { throw .tooManyPages }
        var text = TextBuilder(bytesMax: limits.textBytesMax)
        for index in 0..<pages where !text.isCut {
            text.beginPage()
            guard let page = poppler_document_get_page(document, Int32(index)) else { continue }
            defer { martlet_poppler_release(UnsafeMutableRawPointer(page)) }
            append(page, to: &text)
        }
        return text.document(.pdf, pages: pages)
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
