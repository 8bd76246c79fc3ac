import Cpoppler

/// A page drawn in grey, white where nothing is.
struct PageImage {
    let width: Int
    let height: Int
    let dotsPerInch: Int
    /// A byte a pixel, row after row.
    let grey: [UInt8]
}

/// A PDF that opened.
final class PDFFile {
    /// What readers of letters are made for.
    private static let dotsPerInch = 300.0
    /// A4 at that. Larger pages are drawn coarser; with the colours it is drawn in first it takes 45 MiB.
    static let pixelsMax = 9_000_000.0
    /// cairo draws on nothing longer.
    private static let sideMax = 32_767
    private static let pointsPerInch = 72.0

    let pages: Int
    private let document: OpaquePointer

    /// - Throws: `encrypted`, `broken`, `tooManyPages`.
    init(_ file: borrowing OpenFile, pagesMax: Int) throws(Rejection) {
        var status = MARTLET_POPPLER_OPEN
        guard let document = martlet_poppler_open(file.duplicate(), &status) else {
            throw status == MARTLET_POPPLER_ENCRYPTED ? .encrypted : .broken
        }
        self.document = document
        pages = Int(poppler_document_get_n_pages(document))
        guard pages > 0 else { throw .broken }
        guard pages <= pagesMax else { throw .tooManyPages }
    }

    deinit { martlet_poppler_release(UnsafeMutableRawPointer(document)) }

    /// - Parameter index: from 0.
    func withPage(_ index: Int, _ body: (OpaquePointer) -> Void) {
        guard let page = poppler_document_get_page(document, Int32(index)) else { return }
        defer { martlet_poppler_release(UnsafeMutableRawPointer(page)) }
        body(page)
    }

    /// Nil for a page that is not there, is blank, has no size, or for which there is no memory.
    func picture(of index: Int) -> PageImage? {
        var picture: PageImage?
        withPage(index) { picture = Self.draw($0) }
        return picture
    }

    private static func draw(_ page: OpaquePointer) -> PageImage? {
        var (across, down) = (0.0, 0.0)
        poppler_page_get_size(page, &across, &down)
        guard across >= 1, down >= 1, across.isFinite, down.isFinite else { return nil }
        let scale = min(dotsPerInch / pointsPerInch, (pixelsMax / (across * down)).squareRoot())
        let (width, height) = (max(1, Int(across * scale)), max(1, Int(down * scale)))
        guard max(width, height) <= sideMax else { return nil }
        var isDrawn = false
        let grey = [UInt8](unsafeUninitializedCapacity: width * height) { buffer, filled in
            isDrawn = martlet_poppler_draw(page, scale, Int32(width), Int32(height), buffer.baseAddress) == 1
            filled = isDrawn ? width * height : 0
        }
        guard isDrawn else { return nil }
        // Of a page that says it is larger than it was, as scans do, the letters count, not what it says.
        return PageImage(width: width, height: height, dotsPerInch: Int(dotsPerInch), grey: grey)
    }
}
