/// What an image says of itself, read before a pixel is decoded.
struct Header {
    let width: Int
    let height: Int
    let bands: Int
    let bytesPerSample: Int
    let frames: Int
    let orientation: Int
    /// A progressive JPEG.
    let isMultiscan: Bool
    let hasHalvedColours: Bool
    /// An Adam7 PNG.
    let isInterlaced: Bool

    init(_ picture: Picture) {
        width = picture.width
        height = picture.height
        bands = picture.bands
        bytesPerSample = picture.bytesPerSample
        frames = max(picture.frames, 1)
        orientation = picture.orientation
        isMultiscan = picture.number("jpeg-multiscan") ?? 0 != 0
        hasHalvedColours = picture.has("jpeg-chroma-subsample", "4:2:0")
        isInterlaced = picture.number("interlaced") ?? 0 != 0
    }

    /// Orientations 5 to 8 lie on their side.
    var uprightWidth: Int { orientation >= 5 ? height : width }
    var uprightHeight: Int { orientation >= 5 ? width : height }
    var isTurned: Bool { orientation > 1 }

    func check(_ limits: MediaLimits) throws(Rejection) {
        guard width > 0, height > 0 else { throw .notAnImage }
        guard width <= limits.sideMax, height <= limits.sideMax, width * height <= limits.pixelsMax else {
            throw .tooManyPixels
        }
        guard frames <= limits.framesMax else { throw .tooManyFrames }
        guard width * height * frames <= limits.framePixelsMax else { throw .tooManyPixels }
    }

    /// Whether all pixels are kept and everything is made from them. Otherwise the file is read twice, from top to
    /// bottom, which a turned image does not allow.
    /// - Throws: `tooMuchMemory` when neither is possible.
    func fitsInMemory(type: ContentType, limits: MediaLimits) throws(Rejection) -> Bool {
        let decoder = decoderBytes(type: type)
        // One byte a sample once it is converted.
        let kept = width * height * min(bands, 4)
        if decoder + kept <= limits.decodeBytesMax { return true }
        guard decoder <= limits.decodeBytesMax, !isTurned else { throw .tooMuchMemory }
        return false
    }

    /// What a failure to decode means. It may be want of memory, which libheif does not say, and how much it takes
    /// depends on whether the image is in tiles.
    func decodingFailure(type: ContentType) -> Rejection {
        switch type {
        case .svg: .unsafeImage
        case .heic, .avif: decoderBytes(type: type) > 128 << 20 ? .tooMuchMemory : .truncated
        default: .truncated
        }
    }

    /// What the format's library holds while it decodes.
    private func decoderBytes(type: ContentType) -> Int {
        let pixels = width * height
        let decoded = pixels * bands * bytesPerSample
        switch type {
        case .jpeg:
            // A progressive file is all coefficients, two bytes each, until its last byte.
            return !isMultiscan ? 0 : hasHalvedColours ? pixels * 3 : pixels * bands * 2
        case .png: return isInterlaced ? decoded : 0
        // Measured: the library's own planes, and the frame it draws them on.
        case .webp: return pixels * 10
        case .gif: return pixels * 6
        // Measured: the codec's planes, and their conversion to RGB.
        case .heic, .avif: return pixels * 7
        // The surface that it is drawn on.
        case .svg: return pixels * 4
        // One strip may be the whole image.
        default: return decoded
        }
    }
}
