/// Why a file is not taken. The raw values are stored, so they stay.
public enum Rejection: String, Error, Codable, Sendable, CaseIterable {
    case empty, tooLarge, unsupportedType
    case notAnImage, tooManyPixels, tooManyFrames, tooMuchMemory, truncated
    case notACV, broken, encrypted, tooManyPages, tooOld, inflates
    case unsafeDocument = "unsafe"
    case timedOut, crashed

    /// What the person who sent the file is told.
    public var sentence: String {
        switch self {
        case .empty: "The file is empty."
        case .tooLarge: "The file is too large."
        case .unsupportedType: "Files of this type are not accepted."
        case .notAnImage: "The file is not a valid image."
        case .tooManyPixels: "The image has too many pixels. Make it smaller and try again."
        case .tooManyFrames: "The animation has too many frames."
        case .tooMuchMemory: "The image takes too much memory to open. Make it smaller, or save it without interlacing."
        case .truncated: "The image is damaged or incomplete."
        case .notACV: "A CV must be a document: PDF, Word, OpenDocument, RTF or plain text."
        case .broken: "The document is damaged and cannot be opened. Save it again, best as PDF, and send that."
        case .encrypted: "The document is protected by a password. Remove the password and try again."
        case .tooManyPages: "The document has too many pages. Send the pages that matter."
        case .tooOld: "The document is from a very old version of Word. Save it as PDF or DOCX and send that."
        case .inflates: "The document unpacks to more than a CV can hold. Save it as PDF and send that."
        case .unsafeDocument:
            "The document has parts that no word processor writes, and may be unsafe. Save it as PDF and send that."
        case .timedOut: "Opening the file took too long."
        case .crashed: "The file could not be opened."
        }
    }
}
