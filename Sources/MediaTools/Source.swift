/// Where the pixels come from: memory, or the file again each time.
final class Source {
    let output: ContentType
    let profile: [UInt8]?
    /// Whether the pixels are those of the file, in its own type: no colours converted, nothing turned.
    let isAsSent: Bool
    private let work: ImageWork
    private let kept: Picture?
    private var unread: Picture?

    init(work: ImageWork, isInMemory: Bool, isTurned: Bool) throws(Picture.Failure) {
        self.work = work
        let loaded = try work.open()
        let (converted, keepsProfile) = try loaded.eightBit()
        switch work.type {
        case .jpeg, .png, .webp: output = work.type
        case .svg: output = .png
        default: output = converted.hasAlpha ? .png : .jpeg
        }
        isAsSent = output == work.type && converted === loaded && !isTurned
        if isInMemory {
            let memory = try converted.inMemory()
            kept = isTurned ? try memory.upright() : memory
        } else {
            kept = nil
            unread = converted
        }
        profile = keepsProfile ? converted.profile(bytesMax: ImageWork.profileBytesMax) : nil
    }

    /// A picture that can be read once from top to bottom.
    func next() throws(Picture.Failure) -> Picture {
        if let kept { return kept }
        if let first = unread {
            unread = nil
            return first
        }
        return try work.open().eightBit().picture
    }
}
