import Resume

/// What may be asked of one file.
public struct MediaLimits: Codable, Equatable, Sendable {
    public var fileBytesMax = 20 << 20
    /// One frame. Cameras of today have up to 50 million.
    public var pixelsMax = 50_000_000
    public var sideMax = 20_000
    public var framesMax = 500
    /// All frames together; a header of a hundred bytes can promise any number of them.
    public var framePixelsMax = 250_000_000
    /// What the decoder and the picture may take at once, by estimate from the header. With what the child takes by
    /// itself it stays under 256 MiB.
    public var decodeBytesMax = 176 << 20
    public var pagesMax = 200
    /// UTF-8. Text beyond it is left out.
    public var textBytesMax = 2 << 20
    /// Read from pictures. What matters of a CV stands on its first pages, and each takes some seconds.
    public var scanPagesMax = 10
    /// For all pages of a scan together; then those that are read are the text.
    public var scanSecondsMax = 40

    public init() {}
}

public struct MediaRequest: Codable, Equatable, Sendable {
    public enum Kind: String, Codable, Sendable {
        /// Only images are taken.
        case image
        /// Only documents are taken.
        case cv
        /// Either, by what it is.
        case any
    }

    public let kind: Kind
    /// Absolute, and beneath one of the pool's roots.
    public let path: String
    /// Absolute, existing, beneath one of the pool's roots, for this file alone. When the answer is not an image, or no
    /// answer comes, there may be rests in it: the caller removes the folder in any case.
    public let outputDirectory: String
    public let limits: MediaLimits
    /// The present month, where what the document says as a CV is wanted too.
    public let resumeIn: Resume.Month?
    /// Whether the pool asks a reader of scans for what the pictures show, having learnt that there is no text.
    var isScan = false

    public init(
        kind: Kind, path: String, outputDirectory: String, limits: MediaLimits = MediaLimits(),
        resumeIn: Resume.Month? = nil
    ) {
        self.resumeIn = resumeIn
        self.kind = kind
        self.path = path
        self.outputDirectory = outputDirectory
        self.limits = limits
    }
}

public enum MediaAnswer: Codable, Equatable, Sendable {
    case image(MediaImage)
    case document(MediaDocument)
    /// The file is at fault; trying again changes nothing (but for `timedOut` and `crashed`, once).
    case rejected(Rejection)
    /// We are at fault: the disk is full, or the file is not where it should be. The text is for logs.
    case failed(String)
}

/// An image and what was made of it, all upright and without metadata but the colour profile.
public struct MediaImage: Codable, Equatable, Sendable {
    /// What was uploaded.
    public let source: ContentType
    /// Of the first frame, upright.
    public let width: Int
    public let height: Int
    public let frames: Int
    /// The image itself, written anew, or as it was sent without its metadata where that is smaller.
    public let original: MediaVariant
    /// Those that Strapi's rule gives for this size, from thumbnail to large. May be empty.
    public let variants: [MediaVariant]
}

public struct MediaVariant: Codable, Equatable, Sendable {
    public enum Name: String, Codable, Sendable, CaseIterable {
        case original, thumbnail, small, medium, large
    }

    public let name: Name
    /// One of jpeg, png and webp.
    public let type: ContentType
    public let width: Int
    public let height: Int
    public let bytes: Int

    /// Its name in the output directory.
    public var file: String { name.rawValue + type.ext }
    public var mime: String { type.mime }
    public var ext: String { type.ext }
}

public struct MediaDocument: Codable, Equatable, Sendable {
    public enum Text: String, Codable, Sendable {
        case extracted
        /// A scan, as a rule: it opens, there is nothing to search in it.
        case none
        /// Over `MediaLimits.textBytesMax`; what came before is there.
        case cut
        /// There was none, and this was read from the pictures of its first pages; it may have mistakes.
        case scanned
    }

    public let type: ContentType
    /// For PDF only.
    public let pages: Int?
    public let textOutcome: Text
    /// Without control characters but line ends and tabs.
    public let text: String
    /// Where each page begins in the UTF-8 of `text`. Pages after a cut are missing. Only a PDF has its pages for
    /// certain; of others they are those that the program wrote down, at least one.
    public let pageOffsets: [Int]
    /// Where it links to, beside what is written out in the text.
    public let links: [MediaLink]
    /// What it says as a CV, where that was asked for and there is text.
    public let resume: Resume?

    public init(
        type: ContentType, pages: Int?, textOutcome: Text, text: String, pageOffsets: [Int], links: [MediaLink] = [],
        resume: Resume? = nil
    ) {
        self.type = type
        self.pages = pages
        self.textOutcome = textOutcome
        self.text = text
        self.pageOffsets = pageOffsets
        self.links = links
        self.resume = resume
    }

    func read(in month: Resume.Month) -> MediaDocument {
        guard textOutcome != .none else { return self }
        let links = links.map { Resume.Link(offset: $0.offset, target: $0.target) }
        return MediaDocument(
            type: type, pages: pages, textOutcome: textOutcome, text: text, pageOffsets: pageOffsets, links: self.links,
            resume: Resume.read(text, pageOffsets: pageOffsets, links: links, now: month))
    }
}

/// An address behind a word.
public struct MediaLink: Codable, Equatable, Sendable {
    /// In the UTF-8 of the document's text: of the word, or of its page where that is all that is known.
    public let offset: Int
    /// http, https, mailto or tel.
    public let target: String
}

/// The child's first word, when it is in its sandbox. It has tried what must not work.
struct MediaHello: Codable, Equatable, Sendable {
    let networkDenied: Bool
    let processesDenied: Bool
    /// Whether files outside the roots cannot be opened. Needs Landlock in the kernel.
    let filesDenied: Bool
    /// Whether it has tesseract.
    var readsScans = false
}
