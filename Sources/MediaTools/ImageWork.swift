import Foundation

/// Makes of one uploaded image what is kept of it. Everything is looked at in the header before a pixel is decoded.
struct ImageWork {
    /// Strapi's `sizeOptimization`.
    static let quality: Int32 = 80
    /// A profile larger than this is not a camera's or a screen's.
    static let profileBytesMax = 1 << 20
    /// A file larger than this is always written anew: it would stand in memory beside its pixels.
    static let sentBytesMax = 8 << 20

    enum Trouble: Error {
        case rejected(Rejection)
        case failed(String)
    }

    let path: String
    let type: ContentType
    let outputDirectory: String
    let limits: MediaLimits
    /// For SVG: what is drawn.
    var vector: Vector?

    /// Nothing but the header is read yet.
    func open() throws(Picture.Failure) -> Picture {
        if let vector { try Picture.draw(vector) } else { try Picture.load(type, path: path) }
    }

    func run() throws(Trouble) -> MediaImage {
        let header: Header
        do { header = Header(try open()) } catch {
            throw trouble(error, otherwise: .notAnImage)
        }
        let isInMemory: Bool
        do throws(Rejection) {
            try header.check(limits)
            isInMemory = try header.fitsInMemory(type: type, limits: limits)
        } catch {
            throw .rejected(error)
        }
        do throws(Picture.Failure) {
            let source = try Source(work: self, isInMemory: isInMemory, isTurned: header.isTurned)
            let anew = try write(source.next(), as: .original, source: source)
            let original = header.frames == 1 && source.isAsSent ? sentIfSmaller(anew, source: source) : anew
            let targets = VariantRule.targets(width: header.uprightWidth, height: header.uprightHeight)
            let variants = try writeVariants(targets, source: source)
            return MediaImage(
                source: type, width: header.uprightWidth, height: header.uprightHeight, frames: header.frames,
                original: original, variants: variants)
        } catch {
            removeWritten()
            throw trouble(error, otherwise: header.decodingFailure(type: type))
        }
    }

    /// Half a picture is no use to anybody.
    private func removeWritten() {
        for name in MediaVariant.Name.allCases {
            for type in [ContentType.jpeg, .png, .webp] {
                unlink(outputDirectory + "/" + name.rawValue + type.ext)
            }
        }
    }

    /// The largest is made from the image, the smaller ones from the next larger: a picture is shrunk once from its
    /// full size, not four times.
    private func writeVariants(
        _ targets: [VariantRule.Target], source: Source
    ) throws(Picture.Failure) -> [MediaVariant] {
        var variants: [MediaVariant] = []
        var larger: Picture?
        for target in targets.reversed() {
            let from: Picture
            if let larger { from = larger } else { from = try source.next() }
            let small = try from.resized(width: target.width, height: target.height).inMemory()
            variants.append(try write(small, as: target.name, source: source))
            larger = small
        }
        return variants.reversed()
    }

    private func write(
        _ picture: Picture, as name: MediaVariant.Name, source: Source
    ) throws(Picture.Failure) -> MediaVariant {
        let file = outputDirectory + "/" + name.rawValue + source.output.ext
        try picture.save(source.output, path: file, quality: Self.quality, profile: source.profile)
        let attributes = try? FileManager.default.attributesOfItem(atPath: file)
        return MediaVariant(
            name: name, type: source.output, width: picture.width, height: picture.height,
            bytes: (attributes?[.size] as? NSNumber)?.intValue ?? 0)
    }

    /// Writing anew makes a strongly compressed picture bigger, and worse. As Strapi keeps such a file as it is, this
    /// is the file without its metadata.
    private func sentIfSmaller(_ anew: MediaVariant, source: Source) -> MediaVariant {
        guard let sent = try? FileManager.default.attributesOfItem(atPath: path)[.size] as? NSNumber,
            sent.intValue <= Self.sentBytesMax,
            let bare = BareImage(keepsProfile: source.profile != nil).bytes(of: type, path: path),
            bare.count < anew.bytes,
            (try? Data(bare).write(to: URL(fileURLWithPath: outputDirectory + "/" + anew.file))) != nil
        else { return anew }
        return MediaVariant(
            name: anew.name, type: anew.type, width: anew.width, height: anew.height, bytes: bare.count)
    }

    private func trouble(_ failure: Picture.Failure, otherwise rejection: Rejection) -> Trouble {
        if failure.isDiskTrouble { return .failed(failure.reason) }
        return .rejected(failure.isOutOfMemory ? .tooMuchMemory : rejection)
    }
}
