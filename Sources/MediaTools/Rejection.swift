/// Why a file is not taken. The raw values are stored, so they stay.
public enum Rejection: String, Error, Codable, Sendable, CaseIterable {
    case empty, tooLarge, unsupportedType
    case notAnImage, vectorImage, unsafeImage, tooManyPixels, tooManyFrames, tooMuchMemory, truncated
    case notACV, broken, encrypted, tooManyPages, tooOld, inflates
    case unsafeDocument = "unsafe"
    case timedOut, crashed

    /// What the person who sent the file is told.
    public var sentence: String {
        switch self {
        case .empty: "The file is empty. Choose it again and send it once more."
        case .tooLarge: "The file is too large. Make it smaller and try again."
        case .unsupportedType:
            "Files of this type are not accepted. Send a picture as JPEG, PNG, WebP, GIF, HEIC, AVIF or TIFF, "
                + "a document as PDF, Word, OpenDocument, RTF or plain text."
        case .notAnImage: "The file is not a valid image. Save it again as JPEG or PNG and send that."
        case .vectorImage: "SVG pictures are not accepted, as they can hold programs. Save it as PNG and send that."
        case .unsafeImage:
            "The SVG cannot be drawn safely: it refers to other files, has entities, or repeats its parts too often. "
                + "Save it as PNG and send that."
        case .tooManyPixels: "The image has too many pixels. Make it smaller and try again."
        case .tooManyFrames: "The animation has too many frames. Send a still picture of it, or a shorter one."
        case .tooMuchMemory: "The image takes too much memory to open. Make it smaller, or save it without interlacing."
        case .truncated: "The image is damaged or incomplete. Save it again as JPEG or PNG and send that."
        case .notACV: "A CV must be a document: PDF, Word, OpenDocument, RTF or plain text."
        case .broken: "The document is damaged and cannot be opened. Save it again, best as PDF, and send that."
        case .encrypted: "The document is protected by a password. Remove the password and try again."
        case .tooManyPages: "The document has too many pages. Send the pages that matter."
        case .tooOld: "The document is from a very old version of Word. Save it as PDF or DOCX and send that."
        case .inflates: "The document unpacks to more than a CV can hold. Save it as PDF and send that."
        case .unsafeDocument:
            "The document has parts that no word processor writes, and may be unsafe. Save it as PDF and send that."
        case .timedOut: "Opening the file took too long. Save it again, a document best as PDF, and send that."
        case .crashed: "The file could not be opened. Save it again, a document best as PDF, and send that."
        }
    }
}
