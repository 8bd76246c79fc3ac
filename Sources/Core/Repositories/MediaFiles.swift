import Foundation

/// What a file is for: Strapi's `ref`, `refId` and `field`.
public enum MediaUse: Sendable, Equatable {
    case logo(Company.ID)
    case profile(User.ID)
    case cv(Application.ID)

    public var kind: Media.Kind {
        switch self {
        case .logo: .logo
        case .profile: .profile
        case .cv: .cv
        }
    }
}

public protocol MediaRepository: Sendable {
    /// Media row and the `process_upload` work item in one transaction; a profile picture becomes the user's, and the
    /// former one is deleted with its files (by a `delete_files` item).
    func create(_ draft: Media.Draft, owner: User.ID) async throws -> Media
    /// As `create` for several files at once, in their order, but none of them is in any use yet: see `attach`.
    /// - Parameter use: what they will be for; asked now, so that nobody waits for a refusal.
    /// - Throws: as `attach`.
    func add(_ drafts: [Media.Draft], owner: User.ID, use: MediaUse?) async throws -> [Media]
    /// Puts a file of the owner's into its use; the file that was there before is deleted.
    /// - Throws: `forbidden` unless the use is the owner's to decide: the company they represent, their own account,
    ///   their own application; `conflict` for an application that has been decided; `notFound` for a file that is not
    ///   theirs, not of the kind, or rejected.
    func attach(_ id: Media.ID, to use: MediaUse, owner: User.ID) async throws -> Media
    /// - Throws: `notFound`.
    func find(_ id: Media.ID) async throws -> Media
    /// Those of them that there are, by id.
    func find(_ ids: [Media.ID]) async throws -> [Media]
    /// By the hash of the original or of a variant, as public paths name it; nil when there is none.
    func find(hash: String) async throws -> Media?
    /// Whether the user may read it: a logo anyone; else the owner; a CV also members of the company applied to; an
    /// attachment members of a room that has it; a profile picture those who share a room with its owner, and members
    /// of companies the owner applied to.
    func mayRead(_ id: Media.ID, user: User.ID) async throws -> Bool
    /// What the child found. Writes nothing and returns false when the media is gone or not pending any more. The bytes
    /// of a rejected one are deleted by a `delete_files` item.
    func finish(_ id: Media.ID, _ result: MediaResult) async throws -> Bool
    /// Changes what was said about it; nil leaves what is there.
    /// - Throws: `notFound`, also for others' media.
    func describe(_ id: Media.ID, _ info: Media.Info, owner: User.ID) async throws -> Media
    /// Gives a file the content of another one, which is ready, of the same kind and in no use; the other one is gone
    /// then, and the former content too. A logo gets the other one's hash, because its address is cached for good; any
    /// other file keeps its own.
    /// - Throws: `notFound`, also for others' media; `conflict` for the CV of an application that has been decided.
    func exchange(_ id: Media.ID, for other: Media.ID, owner: User.ID) async throws -> Media
    /// Deletes files that are in no use, with their bytes.
    func discard(_ ids: [Media.ID]) async throws
    /// Deletes a file with its bytes: a company has no logo then, a person no picture. Returns what it was.
    /// - Throws: `notFound`, also for others' media; `conflict` for the CV of an application.
    func delete(_ id: Media.ID, owner: User.ID) async throws -> Media
    /// Makes every capability URL given out for it worthless.
    /// - Throws: `notFound`, also for others' media.
    func revokeURLs(of id: Media.ID, owner: User.ID) async throws
    /// Those of the object store's keys that no row names.
    func unknown(keys: [String]) async throws -> [String]
    /// What rows name in a folder of the object store, by key in the order of its bytes.
    /// - Parameters:
    ///   - folder: with a slash at its end.
    ///   - key: where to go on; nil for the beginning.
    func stored(in folder: String, after key: String?, max: Int) async throws -> [StoredKey]
    /// Files that are ready but whose content is gone say so from now on (`Media.lost`); returns those of them.
    func markLost(_ ids: [Media.ID]) async throws -> [Media.ID]
    /// Takes that back from those whose content is there again; returns those of them.
    func markFound(_ ids: [Media.ID]) async throws -> [Media.ID]
}

/// An object that a row names.
public struct StoredKey: Sendable, Equatable {
    public let key: String
    public let media: Media.ID
    /// Whether it is what the file's own address gives, and not one of its sizes or the original of a picture.
    public let isServed: Bool
    public let standing: Standing

    public enum Standing: String, Sendable {
        /// To be there.
        case wanted
        /// Of a file that is marked as lost.
        case lost
        /// Of a rejected file: its bytes are deleted.
        case deleted
    }

    public init(key: String, media: Media.ID, isServed: Bool, standing: Standing) {
        self.key = key
        self.media = media
        self.isServed = isServed
        self.standing = standing
    }
}

public enum MediaResult: Sendable {
    /// - Parameters:
    ///   - mime: of what is served.
    ///   - ext: as `mime`.
    ///   - resume: what a CV says, as JSON of the Resume module.
    case ready(
        mime: String, ext: String, width: Int?, height: Int?, pageCount: Int?, text: String?, pageOffsets: [Int],
        resume: String? = nil, note: String?, variants: [Media.Variant])
    /// A CV's application stands and gets a `cv_rejected` event.
    case rejected(reason: String, message: String)
    /// Rejected as `Media.infected`, with an audit row that has the name of the signature.
    case infected(signature: String)
}
