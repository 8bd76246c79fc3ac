/// The kinds of file we take, by content. What is stored and served has one of these types, whatever its sender said.
///
/// SVG is a program in an image's clothes: it is refused, or drawn and kept as a PNG. Of a GIF the first frame is kept;
/// GIF, HEIC, AVIF and TIFF become JPEG, or PNG where they are transparent, which every browser shows. Documents are
/// stored as they are.
public enum ContentType: String, Codable, Sendable, CaseIterable {
    case jpeg, png, webp, gif, heic, avif, tiff, svg
    case pdf, docx, doc, odt, rtf, txt

    public var isImage: Bool {
        switch self {
        case .jpeg, .png, .webp, .gif, .heic, .avif, .tiff, .svg: true
        case .pdf, .docx, .doc, .odt, .rtf, .txt: false
        }
    }

    public var mime: String {
        switch self {
        case .jpeg, .png, .webp, .gif, .heic, .avif, .tiff: "image/" + rawValue
        case .svg: "image/svg+xml"
        case .pdf: "application/pdf"
        case .docx: "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
        case .doc: "application/msword"
        case .odt: "application/vnd.oasis.opendocument.text"
        case .rtf: "application/rtf"
        case .txt: "text/plain"
        }
    }

    /// With its dot, as file names and Strapi's `ext` have it.
    public var ext: String { self == .jpeg ? ".jpg" : "." + rawValue }

    /// By the names libmagic gives, which for some formats are several.
    init?(magic: String) {
        switch magic {
        case "image/jpeg": self = .jpeg
        case "image/png", "image/apng", "image/vnd.mozilla.apng": self = .png
        case "image/webp": self = .webp
        case "image/gif": self = .gif
        case "image/heic", "image/heif": self = .heic
        case "image/avif": self = .avif
        case "image/tiff": self = .tiff
        case "image/svg+xml": self = .svg
        case "application/pdf": self = .pdf
        case "application/vnd.openxmlformats-officedocument.wordprocessingml.document": self = .docx
        case "application/msword": self = .doc
        case "application/vnd.oasis.opendocument.text": self = .odt
        case "text/rtf", "application/rtf": self = .rtf
        case "text/plain": self = .txt
        default: return nil
        }
    }
}
