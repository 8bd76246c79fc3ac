import Cvips

/// One of libvips' images: a recipe whose pixels are made when they are asked for, unless it is `inMemory`.
final class Picture {
    /// Up to here the tables of a JPEG are optimised; 24 MiB at most.
    private static let optimalPixelsMax = 8_000_000

    private static let linesAtOnce: Int32 = 32

    private let image: UnsafeMutablePointer<VipsImage>

    private init(_ image: UnsafeMutablePointer<VipsImage>) { self.image = image }

    deinit { martlet_vips_release(image) }

    /// What libvips could not do, in its words.
    struct Failure: Error {
        let reason: String
        var isOutOfMemory: Bool { reason.contains("out of memory") }
        /// The output, not the input, is at fault.
        var isDiskTrouble: Bool {
            // What cannot be drawn cannot be written either, and both are said.
            !isUndrawable
                && ["No space left", "unable to write", "write error", "unable to open for write", "File too large"]
                    .contains { reason.contains($0) }
        }
        private var isUndrawable: Bool { reason.contains("SVG rendering failed") }

        init(disk reason: String) { self.reason = reason }

        /// Takes the reason from the library.
        init() {
            reason = String(cString: vips_error_buffer())
            vips_error_clear()
        }
    }

    private static func check(_ image: UnsafeMutablePointer<VipsImage>?) throws(Failure) -> Picture {
        guard let image else { throw Failure() }
        return Picture(image)
    }

    private static func check(_ code: Int32) throws(Failure) {
        guard code == 0 else { throw Failure() }
    }

    /// Starts the library, once in a process: only the loaders of the allow-list, one thread, nothing remembered.
    static func startLibrary() throws(MediaToolsError) { try started.get() }

    /// Two threads that start it at once would end the process.
    private static let started = Result<Void, MediaToolsError> { () throws(MediaToolsError) in try start() }

    /// Drawings are loaded only where somebody has asked for it.
    static func allowDrawings() { vips_operation_block_set("VipsForeignLoadSvg", 0) }

    private static func start() throws(MediaToolsError) {
        guard martlet_vips_start("media-child") == 0 else { throw .vips(Failure().reason) }
        vips_block_untrusted_set(1)
        vips_operation_block_set("VipsForeignLoad", 1)
        for loader in ["Jpeg", "Png", "Webp", "Nsgif", "Heif", "Tiff"] {
            vips_operation_block_set("VipsForeignLoad" + loader, 0)
        }
        guard martlet_vips_set_lines(linesAtOnce) == 0 else { throw .vips("no option for the tile height") }
        vips_concurrency_set(1)
        vips_cache_set_max(0)
        vips_cache_set_max_mem(0)
        vips_cache_set_max_files(0)
    }

    static func load(_ type: ContentType, path: String) throws(Failure) -> Picture {
        let loader =
            switch type {
            case .heic, .avif: "heifload"
            default: type.rawValue + "load"
            }
        return try check(martlet_vips_load(loader, path))
    }

    /// Drawn so large that its longer side has at least `Vector.sideMin` pixels.
    static func draw(_ vector: Vector) throws(Failure) -> Picture {
        let asSaid = try drawn(vector, scale: 1)
        let scale = Vector.scale(width: asSaid.width, height: asSaid.height)
        return scale == 1 ? asSaid : try drawn(vector, scale: scale)
    }

    private static func drawn(_ vector: Vector, scale: Double) throws(Failure) -> Picture {
        try check(vector.bytes.withUnsafeBytes { martlet_vips_draw($0.baseAddress, $0.count, scale) })
    }

    // MARK: Header

    var width: Int { Int(vips_image_get_width(image)) }
    var height: Int { Int(vips_image_get_height(image)) }
    var bands: Int { Int(vips_image_get_bands(image)) }
    var bytesPerSample: Int { Int(vips_format_sizeof(vips_image_get_format(image))) }
    var isEightBit: Bool { vips_image_get_format(image) == VIPS_FORMAT_UCHAR }
    var hasAlpha: Bool { vips_image_hasalpha(image) != 0 }
    var space: VipsInterpretation { vips_image_guess_interpretation(image) }
    /// EXIF's orientation, 1 to 8.
    var orientation: Int { Int(vips_image_get_orientation(image)) }
    var frames: Int { number("n-pages") ?? 1 }

    func number(_ name: String) -> Int? {
        let number = martlet_vips_number(image, name, Int32.min)
        return number == Int32.min ? nil : Int(number)
    }

    func has(_ name: String, _ value: String) -> Bool { martlet_vips_text_is(image, name, value) != 0 }

    /// The embedded colour profile, when it fits the pixels and is not larger than `bytesMax`.
    func profile(bytesMax: Int) -> [UInt8]? {
        var data: UnsafeRawPointer?
        var count = 0
        guard vips_image_get_typeof(image, VIPS_META_ICC_NAME) != 0,
            vips_image_get_blob(image, VIPS_META_ICC_NAME, &data, &count) == 0
        else {
            vips_error_clear()
            return nil
        }
        guard let data, count > 0, count <= bytesMax, vips_icc_is_compatible_profile(image, data, count) != 0 else {
            return nil
        }
        return Array(UnsafeRawBufferPointer(start: data, count: count))
    }

    // MARK: Recipes

    /// 8 bits a sample, grey or sRGB-like, and whether the embedded profile still tells what the numbers mean.
    func eightBit() throws(Failure) -> (picture: Picture, keepsProfile: Bool) {
        switch space {
        case VIPS_INTERPRETATION_CMYK:
            return (try Self.check(martlet_vips_cmyk_to_srgb(image)), true)
        case VIPS_INTERPRETATION_sRGB, VIPS_INTERPRETATION_RGB:
            return (isEightBit ? self : try colourspace(VIPS_INTERPRETATION_sRGB), true)
        case VIPS_INTERPRETATION_B_W:
            return (isEightBit ? self : try colourspace(VIPS_INTERPRETATION_B_W), true)
        case VIPS_INTERPRETATION_RGB16: return (try colourspace(VIPS_INTERPRETATION_sRGB), true)
        case VIPS_INTERPRETATION_GREY16: return (try colourspace(VIPS_INTERPRETATION_B_W), true)
        default: return (try colourspace(VIPS_INTERPRETATION_sRGB), false)
        }
    }

    private func colourspace(_ space: VipsInterpretation) throws(Failure) -> Picture {
        let converted = try Self.check(martlet_vips_colourspace(image, space))
        return converted.isEightBit ? converted : try Self.check(martlet_vips_cast_uchar(converted.image))
    }

    func upright() throws(Failure) -> Picture { try Self.check(martlet_vips_upright(image)) }

    func resized(width: Int, height: Int) throws(Failure) -> Picture {
        try Self.check(martlet_vips_resize(image, Int32(width), Int32(height)))
    }

    /// All pixels made now, and what they were made from let go.
    func inMemory() throws(Failure) -> Picture { try Self.check(vips_image_copy_memory(image)) }

    /// Without metadata but for the colour profile.
    func save(_ type: ContentType, path: String, quality: Int32, profile: [UInt8]?) throws(Failure) {
        let bare = try Self.check(martlet_vips_bare(image, profile == nil ? 0 : 1))
        switch type {
        case .png: try Self.check(martlet_vips_save_png(bare.image, path))
        case .webp:
            try Self.check(martlet_vips_save_webp(bare.image, path, quality))
            guard Metadata.remove(fromWebP: path) else { throw Failure(disk: "unable to write without metadata") }
        default:
            let isSmall: Int32 = width * height <= Self.optimalPixelsMax ? 1 : 0
            try Self.check(martlet_vips_save_jpeg(bare.image, path, quality, isSmall))
            guard let profile, !Metadata.insert(profile: profile, intoJPEG: path) else { return }
            throw Failure(disk: "unable to write the colour profile")
        }
    }
}
