import Foundation

/// An uploaded file and what was derived from it.
public struct Media: Sendable, Equatable, Identifiable {
    public typealias ID = Identifier<Media>

    public enum Kind: String, Sendable, CaseIterable {
        case cv, logo, profile, attachment

        /// Bytes of the file as uploaded.
        public var bytesMax: Int {
            switch self {
            case .cv: 10 << 20
            case .logo, .profile: 8 << 20
            case .attachment: 25 << 20
            }
        }
    }

    /// The rejection of a file whose content is not in the object store any more.
    public static let lost = (reason: "missing", message: "The file was lost. Please send it again.")

    /// The rejection of a file in which a virus scan found something.
    public static let infected = (
        reason: "infected",
        message: "A virus scan found something harmful in this file, so it was not kept. Scan your computer, then save "
            + "the file anew and send that."
    )

    public enum State: String, Sendable, CaseIterable {
        case pending, ready, rejected
    }

    public struct Variant: Sendable, Equatable {
        public static let upright = "upright"

        public let name: String
        public let storageKey: String
        public let hash: String
        public let mime: String
        public let ext: String
        public let bytes: Int64
        public let width: Int
        public let height: Int

        public init(
            name: String, storageKey: String, hash: String, mime: String, ext: String, bytes: Int64, width: Int,
            height: Int
        ) {
            self.name = name
            self.storageKey = storageKey
            self.hash = hash
            self.mime = mime
            self.ext = ext
            self.bytes = bytes
            self.width = width
            self.height = height
        }
    }

    public let id: ID
    public let ownerID: User.ID
    public let kind: Kind
    public let state: State
    public let rejection: String?
    public let rejectionMessage: String?
    /// As the person named it; never used as a path.
    public let name: String
    /// What the person says the picture shows, for those who cannot see it, and beneath it.
    public let alternativeText: String?
    public let caption: String?
    /// Of what is served. Set when the content has been looked at.
    public let mime: String?
    public let ext: String?
    /// Strapi's: slug of the base name, `_`, ten hexadecimal digits. Names the public path.
    public let hash: String
    public let bytes: Int64
    public let storageKey: String
    public let width: Int?
    public let height: Int?
    public let pageCount: Int?
    public let note: String?
    public let urlGeneration: Int
    public let variants: [Variant]
    public let createdAt: Date
    public let updatedAt: Date

    public init(
        id: ID, ownerID: User.ID, kind: Kind, state: State, rejection: String?, rejectionMessage: String?, name: String,
        alternativeText: String? = nil, caption: String? = nil, mime: String?, ext: String?, hash: String, bytes: Int64,
        storageKey: String, width: Int?, height: Int?, pageCount: Int?, note: String?, urlGeneration: Int,
        variants: [Variant], createdAt: Date, updatedAt: Date
    ) {
        self.id = id
        self.ownerID = ownerID
        self.kind = kind
        self.state = state
        self.rejection = rejection
        self.rejectionMessage = rejectionMessage
        self.name = name
        self.alternativeText = alternativeText
        self.caption = caption
        self.mime = mime
        self.ext = ext
        self.hash = hash
        self.bytes = bytes
        self.storageKey = storageKey
        self.width = width
        self.height = height
        self.pageCount = pageCount
        self.note = note
        self.urlGeneration = urlGeneration
        self.variants = variants
        self.createdAt = createdAt
        self.updatedAt = updatedAt
    }

    /// The image itself, written anew: its address gives this, and never the bytes that were sent.
    public var upright: Variant? { variants.first { $0.name == Variant.upright } }
    /// The sizes beside the image itself, from small to large.
    public var formats: [Variant] { variants.filter { $0.name != Variant.upright } }

    /// A file that has been streamed to the object store and is not yet anyone's.
    public struct Draft: Sendable {
        public static let nameLengthMax = 255
        public static let declaredTypeLengthMax = 255

        public let kind: Kind
        public let info: Info
        /// The last part of what was sent, without what cannot be seen. Kept to give it back; never used as a path.
        public let name: String
        /// What the client said it was: kept for those who look for a fault, believed by nobody.
        public let declaredType: String
        public let hash: String
        public let bytes: Int64
        public let sha256: [UInt8]
        public let storageKey: String

        public init(
            kind: Kind, name: String, declaredType: String, hash: String, bytes: Int64, sha256: [UInt8],
            storageKey: String, info: Info = .none
        ) {
            self.kind = kind
            self.info = info
            self.name = info.name ?? Self.clean(name: name)
            let type = declaredType.unicodeScalars.filter { (0x20..<0x7F).contains($0.value) }
            self.declaredType = String(String.UnicodeScalarView(type.prefix(Self.declaredTypeLengthMax)))
            self.hash = hash
            self.bytes = bytes
            self.sha256 = sha256
            self.storageKey = storageKey
        }

        /// A name from outside is never a reason to refuse a file: folders, control characters and the marks that turn
        /// the direction of writing go; of one too long the end stays, with the extension; no name becomes "file".
        public static func clean(name: String) -> String {
            let last = name.split(whereSeparator: { $0 == "/" || $0 == "\\" }).last ?? ""
            let kept = last.unicodeScalars.filter { $0 == " " || $0 == "\u{200D}" || $0.isVisible }
            let text = String(String.UnicodeScalarView(kept.suffix(nameLengthMax)))
                .trimmingCharacters(in: .whitespacesAndNewlines)
            return text.isEmpty || text.allSatisfy({ $0 == "." }) ? "file" : text
        }
    }
}
