import Cpoppler
import Foundation

/// Looks into a document: that a PDF opens, how many pages it has, and their text.
struct DocumentWork {
    let limits: MediaLimits

    func run(_ file: borrowing OpenFile, type: ContentType) throws(Rejection) -> MediaDocument {
        guard type == .pdf else {
            return MediaDocument(type: type, pages: nil, textOutcome: .notRead, text: "", pageOffsets: [])
        }
        var status = MARTLET_POPPLER_OPEN
        guard let document = martlet_poppler_open(file.duplicate(), &status) else {
            throw status == MARTLET_POPPLER_ENCRYPTED ? .encrypted : .broken
        }
        defer { martlet_poppler_release(UnsafeMutableRawPointer(document)) }
        let pages = Int(poppler_document_get_n_pages(document))
        guard pages > 0 else { throw .broken }
        guard pages <= limits.pagesMax else { throw .tooManyPages }
        return text(of: document, pages: pages)
    }

    private func text(of document: OpaquePointer, pages: Int) -> MediaDocument {
        var text: [UInt8] = []
        var offsets: [Int] = []
        var isCut = false
        for index in 0..<pages where !isCut {
            if !text.isEmpty { text.append(UInt8(ascii: "\n")) }
            offsets.append(text.count)
            guard let page = poppler_document_get_page(document, Int32(index)) else { continue }
            defer { martlet_poppler_release(UnsafeMutableRawPointer(page)) }
            guard let pageText = poppler_page_get_text(page) else { continue }
            defer { martlet_poppler_free(pageText) }
            isCut = !append(pageText, to: &text)
        }
        let isBlank = text.allSatisfy { $0 <= 32 }
        let outcome: MediaDocument.Text = isBlank ? .none : isCut ? .cut : .extracted
        return MediaDocument(
            type: .pdf, pages: pages, textOutcome: outcome, text: String(decoding: text, as: UTF8.self),
            pageOffsets: offsets)
    }

    /// Without control characters: PostgreSQL takes no zero, and nobody reads the others. False at the limit.
    private func append(_ pageText: UnsafeMutablePointer<CChar>, to text: inout [UInt8]) -> Bool {
        var index = 0
        while pageText[index] != 0 {
            let byte = UInt8(bitPattern: pageText[index])
            index += 1
            if byte < 32 && byte != 9 && byte != 10 || byte == 127 { continue }
            // Not in the middle of a character.
            if text.count >= limits.textBytesMax && byte & 0xC0 != 0x80 { return false }
            text.append(byte)
        }
        return true
    }
}
