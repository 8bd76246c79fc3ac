@testable import MediaTools

/// What becomes of every file below ../shared/files.
enum SharedFileTable {
    enum Outcome: Equatable {
        /// What it was, what it is kept as, its size upright, and the sizes of its variants from thumbnail to large.
        case image(ContentType, as: ContentType, String, String)
        /// Pages of a PDF, and the bytes of its text in UTF-8.
        case document(ContentType, pages: Int? = nil, MediaDocument.Text, bytes: Int)
        /// With what the person reads who sent it.
        case refused(Rejection, String)
        case failed(String)

        init(_ answer: MediaAnswer) {
            switch answer {
            case .image(let image):
                self = .image(
                    image.source, as: image.original.type, "\(image.width)x\(image.height)",
                    image.variants.map { "\($0.name) \($0.width)x\($0.height)" }.joined(separator: ", "))
            case .document(let document):
                self = .document(
                    document.type, pages: document.pages, document.textOutcome, bytes: document.text.utf8.count)
            case .rejected(let rejection): self = .refused(rejection, rejection.sentence)
            case .failed(let reason): self = .failed(reason)
            }
        }

        var isImage: Bool { if case .image = self { true } else { false } }

        func isDocument(_ type: ContentType) -> Bool {
            if case .document(type, _, _, _) = self { true } else { false }
        }
    }

    static let boxes: KeyValuePairs<MediaVariant.Name, String> = [
        .thumbnail: "245x156", .small: "500x500", .medium: "750x750", .large: "1000x1000",
    ]

    private static let inflates = Outcome.refused(
        .inflates,
        "The document unpacks to more than a CV can hold. Save it as PDF and send that.")
    private static let unsafeDocument = Outcome.refused(
        .unsafeDocument,
        "The document has parts that no word processor writes, and may be unsafe. Save it as PDF and send that.")
    private static let unsupportedType = Outcome.refused(
        .unsupportedType,
        "Files of this type are not accepted. Send a picture as JPEG, PNG, WebP, GIF, HEIC, AVIF or TIFF, "
            + "a document as PDF, Word, OpenDocument, RTF or plain text.")
    private static let tooManyPixels = Outcome.refused(
        .tooManyPixels,
        "The image has too many pixels. Make it smaller and try again.")
    private static let truncated = Outcome.refused(
        .truncated,
        "The image is damaged or incomplete. Save it again as JPEG or PNG and send that.")
    private static let notAnImage = Outcome.refused(
        .notAnImage,
        "The file is not a valid image. Save it again as JPEG or PNG and send that.")
    private static let tooManyPages = Outcome.refused(
        .tooManyPages,
        "The document has too many pages. Send the pages that matter.")
    private static let empty = Outcome.refused(.empty, "The file is empty. Choose it again and send it once more.")
    private static let encrypted = Outcome.refused(
        .encrypted,
        "The document is protected by a password. Remove the password and try again.")
    private static let broken = Outcome.refused(
        .broken,
        "The document is damaged and cannot be opened. Save it again, best as PDF, and send that.")
    private static let vectorImage = Outcome.refused(
        .vectorImage,
        "SVG pictures are not accepted, as they can hold programs. Save it as PNG and send that.")

    static let rows: [String: Outcome] = [
        "docs/gen_docx_inflates_200MiB.docx": inflates,
        "docs/gen_docx_renamed_as.pdf": .document(.docx, .extracted, bytes: 336),
        "docs/gen_docx_xxe.docx": unsafeDocument,
        "docs/pythondocx_having-images.docx": .document(.docx, .none, bytes: 10),
        "docs/tv_invalid_plain_text_file.txt": .document(.txt, .extracted, bytes: 27),
        "docs/tv_valid_legacy_word_document.doc": .document(.doc, .extracted, bytes: 87),
        "docs/tv_valid_word_document.docx": .document(.docx, .extracted, bytes: 5),
        "docs/tv_zip_file_pretending_to_be_a_pdf.pdf": unsupportedType,
        "images/exif_Landscape_1.jpg": .image(
            .jpeg, as: .jpeg, "1800x1200", "thumbnail 234x156, small 500x333, medium 750x500, large 1000x667"),
        "images/exif_Landscape_3.jpg": .image(
            .jpeg, as: .jpeg, "1800x1200", "thumbnail 234x156, small 500x333, medium 750x500, large 1000x667"),
        "images/exif_Landscape_6.jpg": .image(
            .jpeg, as: .jpeg, "1800x1200", "thumbnail 234x156, small 500x333, medium 750x500, large 1000x667"),
        "images/exif_Landscape_8.jpg": .image(
            .jpeg, as: .jpeg, "1800x1200", "thumbnail 234x156, small 500x333, medium 750x500, large 1000x667"),
        "images/exif_Portrait_6.jpg": .image(
            .jpeg, as: .jpeg, "1200x1800", "thumbnail 104x156, small 333x500, medium 500x750, large 667x1000"),
        "images/gen_16bit_rgb.png": .image(.png, as: .png, "320x240", "thumbnail 208x156"),
        "images/gen_alpha_1200x800.webp": .image(
            .webp, as: .webp, "1200x800", "thumbnail 234x156, small 500x333, medium 750x500, large 1000x667"),
        "images/gen_cmyk.jpg": .image(.jpeg, as: .jpeg, "900x600", "thumbnail 234x156, small 500x333, medium 750x500"),
        "images/gen_header_claims_100000x100000.png": tooManyPixels,
        "images/gen_html_named.png": unsupportedType,
        "images/gen_huge_30000x30000_1bit.png": tooManyPixels,
        "images/gen_jpeg_with_trailing_html.jpg": .image(
            .jpeg, as: .jpeg, "1800x1200", "thumbnail 234x156, small 500x333, medium 750x500, large 1000x667"),
        "images/gen_size_1000x1000.png": .image(
            .png, as: .png, "1000x1000", "thumbnail 156x156, small 500x500, medium 750x750"),
        "images/gen_size_1001x667.png": .image(
            .png, as: .png, "1001x667", "thumbnail 234x156, small 500x333, medium 750x500, large 1000x666"),
        "images/gen_size_10x1200.png": .image(
            .png, as: .png, "10x1200", "thumbnail 1x156, small 4x500, medium 6x750, large 8x1000"),
        "images/gen_size_1x1.png": .image(.png, as: .png, "1x1", ""),
        "images/gen_size_244x155.png": .image(.png, as: .png, "244x155", ""),
        "images/gen_size_245x156.png": .image(.png, as: .png, "245x156", ""),
        "images/gen_size_246x157.png": .image(.png, as: .png, "246x157", "thumbnail 244x156"),
        "images/gen_size_3000x1.png": .image(
            .png, as: .png, "3000x1", "thumbnail 245x1, small 500x1, medium 750x1, large 1000x1"),
        "images/gen_size_500x500.png": .image(.png, as: .png, "500x500", "thumbnail 156x156"),
        "images/gen_size_501x400.png": .image(.png, as: .png, "501x400", "thumbnail 195x156, small 500x399"),
        "images/gen_size_750x10.png": .image(.png, as: .png, "750x10", "thumbnail 245x3, small 500x7"),
        "images/gen_size_751x750.png": .image(
            .png, as: .png, "751x750", "thumbnail 156x156, small 500x499, medium 750x749"),
        "images/gen_truncated_60pct.jpg": truncated,
        "images/libheif_example.heic": .image(
            .heic, as: .jpeg, "1280x854", "thumbnail 234x156, small 500x334, medium 750x500, large 1000x667"),
        "images/pillow_broken.png": notAnImage,
        "images/pillow_decompression_bomb.gif": notAnImage,
        "images/pillow_exif_gps.jpg": .image(.jpeg, as: .jpeg, "8x8", ""),
        "images/pillow_hopper.avif": .image(.avif, as: .jpeg, "128x128", ""),
        "images/pillow_hopper_orientation_6.webp": .image(.webp, as: .webp, "128x128", ""),
        "images/pillow_iss634.gif": .image(.gif, as: .png, "245x245", "thumbnail 156x156"),
        "images/pillow_iss634.webp": .image(.webp, as: .webp, "245x245", "thumbnail 156x156"),
        "images/pillow_png_decompression_dos.png": .image(.png, as: .png, "1x1", ""),
        "pdf/gen_1500_blank_pages.pdf": tooManyPages,
        "pdf/gen_empty_0_bytes.pdf": empty,
        "pdf/gen_encrypted_aes256_owner_only.pdf": .document(.pdf, pages: 2, .extracted, bytes: 4811),
        "pdf/gen_encrypted_aes256_userpw_openpassword.pdf": encrypted,
        "pdf/gen_flate_stream_inflates_300MiB.pdf": .document(.pdf, pages: 1, .none, bytes: 0),
        "pdf/gen_header_only.pdf": broken,
        "pdf/gen_openaction_javascript.pdf": .document(.pdf, pages: 2, .extracted, bytes: 4811),
        "pdf/gen_resume_no_text_layer.pdf": .document(.pdf, pages: 1, .none, bytes: 0),
        "pdf/gen_truncated_50pct.pdf": broken,
        "pdf/pdfjs_copy_paste_ligatures.pdf": .document(.pdf, pages: 1, .extracted, bytes: 36),
        "pdf/pdfjs_empty_protected.pdf": .document(.pdf, pages: 1, .none, bytes: 0),
        "pdf/pdfjs_poppler-395-0-fuzzed.pdf": broken,
        "pdf/pypdf_google-doc-document.pdf": .document(.pdf, pages: 1, .extracted, bytes: 1124),
        "pdf/pypdf_multicolumn.pdf": .document(.pdf, pages: 3, .extracted, bytes: 7059),
        "resumes/John_Doe_ClassicTheme_CV.pdf": .document(.pdf, pages: 2, .extracted, bytes: 4811),
        "resumes/John_Doe_EmberTheme_CV.pdf": .document(.pdf, pages: 2, .extracted, bytes: 4776),
        "resumes/John_Doe_ModerncvTheme_CV.pdf": .document(.pdf, pages: 3, .extracted, bytes: 4808),
        "resumes/gen_John_Doe_CV.docx": .document(.docx, .extracted, bytes: 336),
        "resumes/rendercv_classic_minimal.pdf": .document(.pdf, pages: 1, .extracted, bytes: 103),
        "svg/externalTest.svg": vectorImage,
        "svg/gen_script.svg": vectorImage,
        "svg/useDosTest.svg": vectorImage,
        "svg/xlinkLaughsTest.svg": vectorImage,
    ]

    private static let unsafeImage = Outcome.refused(
        .unsafeImage,
        "The SVG cannot be drawn safely: it refers to other files, has entities, or repeats its parts too often. "
            + "Save it as PNG and send that.")

    /// What becomes of them where `MARTLET_SVG` is `rasterize`.
    static let drawings: [String: Outcome] = [
        // References to files of others, in each way there is.
        "svg/externalTest.svg": unsafeImage,
        // A script, a handler and a page within: nothing of it runs, and what is seen is the rectangle.
        "svg/gen_script.svg": .image(
            .svg, as: .png, "1000x1000", "thumbnail 156x156, small 500x500, medium 750x750"),
        // A million of the same element, and a billion.
        "svg/useDosTest.svg": unsafeImage,
        "svg/xlinkLaughsTest.svg": unsafeImage,
    ]

    /// Where vipsthumbnail decides otherwise, and why.
    static let differences: [String: (ours: String, theirs: String)] = [
        // It starts from the small picture that the file carries, 320x212, whose sides were rounded already.
        "images/libheif_example.heic thumbnail": ("234x156", "235x156")
    ]
}
