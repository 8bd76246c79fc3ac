import Foundation
import Resume
import Testing

@testable import MediaTools

/// What the child does, done here. One test at a time: libvips has one error buffer.
@Suite(.serialized) struct ProcessorTests {
    let scratch: Scratch
    let processor: MediaProcessor

    init() throws {
        scratch = try Scratch()
        processor = try MediaProcessor()
    }

    private func process(_ bytes: [UInt8], limits: MediaLimits = MediaLimits()) throws -> (MediaAnswer, String) {
        let request = try scratch.request(try scratch.file("input", bytes), limits: limits)
        return (processor.process(request), request.outputDirectory)
    }

    private func load(_ variant: MediaVariant, in folder: String) throws -> Picture {
        try Picture.load(variant.type, path: folder + "/" + variant.file)
    }

    @Test(
        "an image is kept in Strapi's sizes, each file as the answer says", arguments: [ContentType.jpeg, .png, .webp])
    func variants(type: ContentType) throws {
        let (answer, folder) = try process(Samples.image(type, width: 1280, height: 1022, in: scratch))
        let image = try #require(answer.image)
        #expect(image.source == type && image.width == 1280 && image.height == 1022 && image.frames == 1)
        #expect(image.variants.map(\.name) == [.thumbnail, .small, .medium, .large])
        for variant in [image.original] + image.variants {
            #expect(variant.type == type)
            let picture = try load(variant, in: folder)
            #expect(picture.width == variant.width && picture.height == variant.height)
            let data = try Data(contentsOf: URL(fileURLWithPath: folder + "/" + variant.file))
            #expect(data.count == variant.bytes && variant.bytes > 0)
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder).count == 5)
    }

    @Test(
        "the four public examples of Strapi's come out in its sizes",
        arguments: [
            (1920, 1080, "thumbnail 245x138, small 500x281, medium 750x422, large 1000x563"),
            (1280, 1022, "thumbnail 195x156, small 500x399, medium 750x599, large 1000x798"),
            (960, 600, "thumbnail 245x153, small 500x313, medium 750x469"), (459, 470, "thumbnail 152x156"),
        ])
    func examples(width: Int, height: Int, expected: String) throws {
        let (answer, folder) = try process(Samples.image(.png, width: width, height: height, in: scratch))
        let variants = try #require(answer.image).variants
        let sizes = try variants.map { variant in
            let picture = try load(variant, in: folder)
            return "\(variant.name) \(picture.width)x\(picture.height)"
        }
        #expect(sizes.joined(separator: ", ") == expected)
    }

    @Test(
        "an image in any of the eight orientations comes out upright, without its place and camera",
        arguments: [ContentType.jpeg, .webp, .png], 1...8)
    func orientations(type: ContentType, orientation: Int) throws {
        let plain = try Samples.image(type, width: 600, height: 400, in: scratch)
        let input = Samples.withExif(type, plain, orientation: orientation, width: 600, height: 400)
        let (answer, folder) = try process(input)
        let image = try #require(answer.image)
        let isSwapped = orientation >= 5
        #expect(image.width == (isSwapped ? 400 : 600) && image.height == (isSwapped ? 600 : 400))
        for variant in [image.original] + image.variants {
            let data = try Data(contentsOf: URL(fileURLWithPath: folder + "/" + variant.file))
            for secret in ["SECRET-CAMERA", "Exif", "EXIF", "eXIf"] {
                #expect(data.range(of: Data(secret.utf8)) == nil)
            }
            #expect(try load(variant, in: folder).orientation == 1)
        }
        #expect(image.original.width == image.width && image.original.height == image.height)
    }

    /// Where the sample's columns and rows, along which red and green grow, run once it is upright (EXIF 2.3, 4.6.4).
    private enum Way { case right, left, down, up }
    private static let ways: [(columns: Way, rows: Way)] = [
        (.right, .down), (.left, .down), (.left, .up), (.right, .up), (.down, .right), (.down, .left), (.up, .left),
        (.up, .right),
    ]

    @Test(
        "upright is turned the way that the orientation says, as another program sees the pixels",
        .enabled(if: vips != nil), arguments: 1...8)
    func turned(orientation: Int) throws {
        let plain = try Samples.image(.png, width: 600, height: 400, in: scratch)
        let input = Samples.withExif(.png, plain, orientation: orientation, width: 600, height: 400)
        let (answer, folder) = try process(input)
        let image = try #require(answer.image)
        let ways = Self.ways[orientation - 1]
        for variant in [image.original, try #require(image.variants.first)] {
            for (isRight, isLow) in [(false, false), (true, false), (false, true), (true, true)] {
                let place = [isRight ? variant.width - 6 : 5, isLow ? variant.height - 6 : 5].map(String.init)
                let words = try run(
                    try #require(vips), ["getpoint", folder + "/" + variant.file] + place)
                let values = String(decoding: words, as: UTF8.self).split(whereSeparator: \.isWhitespace)
                    .compactMap { Double($0) }
                try #require(values.count >= 3, "\(variant.name) at \(place)")
                func isHigh(_ way: Way) -> Bool {
                    switch way {
                    case .right: isRight
                    case .left: !isRight
                    case .down: isLow
                    case .up: !isLow
                    }
                }
                #expect((values[0] > 128) == isHigh(ways.columns), "red of \(variant.name) at \(place): \(values)")
                #expect((values[1] > 128) == isHigh(ways.rows), "green of \(variant.name) at \(place): \(values)")
            }
        }
    }

    @Test("CMYK and 16-bit pixels become 8-bit RGB, transparency becomes PNG, everything else JPEG")
    func pixels() throws {
        let cases: [(bands: Int, bits: Int, photometric: Int, type: ContentType, result: Int)] = [
            (4, 8, 5, .jpeg, 3), (3, 16, 2, .jpeg, 3), (4, 8, 2, .png, 4), (1, 8, 1, .jpeg, 1), (1, 16, 1, .jpeg, 1),
        ]
        for each in cases {
            let tiff = Samples.tiff(
                width: 300, height: 200, bands: each.bands, bits: each.bits, photometric: each.photometric)
            let (answer, folder) = try process(tiff)
            let image = try #require(answer.image)
            #expect(image.source == .tiff && image.original.type == each.type)
            let picture = try load(image.original, in: folder)
            #expect(picture.bands == each.result && picture.isEightBit)
        }
    }

    @Test("a colour profile stays in every file, byte for byte, when all other metadata goes")
    func profiles() throws {
        // Conversion from CMYK leaves the profile of what it converted to.
        let cmyk = Samples.tiff(width: 600, height: 400, bands: 4, photometric: 5)
        let (first, firstFolder) = try process(cmyk)
        let converted = try #require(first.image).original
        let profile = try #require(try load(converted, in: firstFolder).profile(bytesMax: 1 << 20))

        for type in [ContentType.png, .webp] {
            let file = scratch.path + "/profile" + type.ext
            let source = try load(converted, in: firstFolder)
            try source.save(type, path: file, quality: 80, profile: profile)
            let (answer, folder) = try process(Array(Data(contentsOf: URL(fileURLWithPath: file))))
            let image = try #require(answer.image)
            #expect(try load(image.variants[0], in: folder).profile(bytesMax: 1 << 20) == profile)
        }

        let file = URL(fileURLWithPath: firstFolder + "/" + converted.file)
        let jpeg = Samples.withExif(
            .jpeg, Array(try Data(contentsOf: file)), orientation: 6, width: 600, height: 400)
        let (answer, folder) = try process(jpeg)
        let image = try #require(answer.image)
        #expect(image.width == 400 && image.variants.count == 2)
        for variant in [image.original] + image.variants {
            #expect(try load(variant, in: folder).profile(bytesMax: 1 << 20) == profile)
        }
    }

    @Test("of an animation the first frame is kept, and all frames count against the limits")
    func animations() throws {
        let (answer, _) = try process(Samples.gif(width: 300, height: 200, frames: 42))
        let image = try #require(answer.image)
        #expect(image.frames == 42 && image.width == 300 && image.height == 200 && image.original.type == .jpeg)

        #expect(try process(Samples.gif(width: 10, height: 10, frames: 500)).0.image?.frames == 500)
        #expect(try process(Samples.gif(width: 10, height: 10, frames: 501)).0.rejection == .tooManyFrames)
        // 401 frames of 800x600, which made another system draw 800x240600, are a limit's business.
        var limits = MediaLimits()
        limits.framePixelsMax = 401 * 800 * 600
        let long = Samples.gif(width: 800, height: 600, frames: 401)
        #expect(try process(long, limits: limits).0.image?.height == 600)
        limits.framePixelsMax -= 1
        #expect(try process(long, limits: limits).0.rejection == .tooManyPixels)
    }

    @Test("a header that promises too much is refused before anything is decoded")
    func bombs() throws {
        for (width, height) in [(100_000, 100_000), (20_001, 10), (10, 20_001), (7_072, 7_072)] {
            let header = Samples.pngHeader(width: UInt32(width), height: UInt32(height))
            #expect(try process(header).0.rejection == .tooManyPixels, "\(width)x\(height)")
        }
        #expect(try process(Samples.gif(width: 65_535, height: 65_535, frames: 1)).0.rejection == .tooManyPixels)
        var limits = MediaLimits()
        limits.decodeBytesMax = 1 << 20
        let webp = try Samples.image(.webp, width: 400, height: 400, in: scratch)
        #expect(try process(webp, limits: limits).0.rejection == .tooMuchMemory)
    }

    @Test("an image too large for memory is read twice from top to bottom, with the same result")
    func streamed() throws {
        let jpeg = try Samples.image(.jpeg, width: 1200, height: 900, in: scratch)
        var limits = MediaLimits()
        limits.decodeBytesMax = 1200 * 900 * 3 - 1
        let streamed = try #require(try process(jpeg, limits: limits).0.image)
        #expect(try streamed == process(jpeg).0.image)
        let turned = Samples.withExif(.jpeg, jpeg, orientation: 6, width: 1200, height: 900)
        #expect(try process(turned, limits: limits).0.rejection == .tooMuchMemory)
    }

    @Test("an image cut short is truncated, not half grey")
    func truncated() throws {
        for type in [ContentType.jpeg, .png, .webp] {
            let whole = try Samples.image(type, width: 400, height: 300, in: scratch)
            let rejection = try process(Array(whole[..<(whole.count * 6 / 10)])).0.rejection
            #expect(rejection == .truncated || rejection == .notAnImage, "\(type): \(String(describing: rejection))")
        }
    }

    @Test("files of other kinds are refused, each with its reason")
    func types() throws {
        let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(1)</script></svg>"
        #expect(try process([]).0.rejection == .empty)
        for text in [
            "\u{FEFF}" + svg, "<!DOCTYPE html><html><script>x</script></html>", "#!/bin/sh\nexit 0\n",
            "PK\u{3}\u{4}", "\u{7F}ELF" + String(repeating: "\0", count: 2000),
        ] {
            #expect(try process(Array(text.utf8)).0.rejection == .unsupportedType, "\(text)")
        }
        #expect(try process(Array(svg.utf8)).0.rejection == .vectorImage)
        #expect(
            try process(Array("\u{89}PNG\r\n\u{1A}\nnothing".unicodeScalars.map { UInt8($0.value) })).0.rejection
                == .notAnImage)
        // Notepad's "Unicode" is text, though every other byte is nought.
        let wide = Data([0xFF, 0xFE]) + "Curriculum vitae\r\n".data(using: .utf16LittleEndian)!
        #expect(try process(Array(wide)).0.document?.type == .txt)
        var limits = MediaLimits()
        limits.fileBytesMax = 100
        let pdf = Samples.pdf(pages: ["x"])
        #expect(try process(pdf, limits: limits).0.rejection == .tooLarge)

        let jpeg = try scratch.file("a", try Samples.image(.jpeg, width: 10, height: 10, in: scratch))
        #expect(try processor.process(scratch.request(jpeg, kind: .cv)).rejection == .notACV)
        #expect(try processor.process(scratch.request(jpeg, kind: .image)).image != nil)
        let document = try scratch.file("b", pdf)
        #expect(try processor.process(scratch.request(document, kind: .image)).rejection == .notAnImage)
        #expect(try processor.process(scratch.request(document, kind: .cv)).document != nil)
        let missing = MediaRequest(kind: .any, path: scratch.path + "/none", outputDirectory: scratch.path)
        #expect(processor.process(missing) == .failed("the file cannot be opened"))
    }

    @Test("a PDF's text has the beginning of each page")
    func pdfText() throws {
        let (answer, _) = try process(Samples.pdf(pages: ["Curriculum", "", "Vitae"]))
        let document = try #require(answer.document)
        #expect(document.type == .pdf && document.pages == 3 && document.textOutcome == .extracted)
        #expect(document.pageOffsets.count == 3)
        let last = String(decoding: Array(document.text.utf8)[document.pageOffsets[2]...], as: UTF8.self)
        #expect(last.trimmingCharacters(in: .whitespacesAndNewlines) == "Vitae")
    }

    @Test("what a CV says is told where it is asked for, and only where there is text")
    func resume() throws {
        let file = try scratch.file("cv", Samples.pdf(pages: ["jane.doe@example.org"]))
        let month = Resume.Month(year: 2026, month: 1)
        let request = { (file: String, month: Resume.Month?) in
            MediaRequest(kind: .cv, path: file, outputDirectory: try scratch.folder(), resumeIn: month)
        }
        let asked = try #require(try processor.process(request(file, month)).document)
        #expect(asked.resume?.emails.map(\.value) == ["jane.doe@example.org"])
        #expect(try processor.process(request(file, nil)).document?.resume == nil)
        let scan = try scratch.file("scan", Samples.pdf(pages: [""]))
        #expect(try processor.process(request(scan, month)).document?.resume == nil)
        let data = try JSONEncoder().encode(MediaAnswer.document(asked))
        #expect(try JSONDecoder().decode(MediaAnswer.self, from: data) == .document(asked))
    }

    @Test("a PDF without text is a CV all the same; too many pages and damage are not")
    func pdfEdges() throws {
        #expect(try process(Samples.pdf(pages: [""])).0.document?.textOutcome == MediaDocument.Text.none)
        let full = Array(repeating: "", count: 200)
        #expect(try process(Samples.pdf(pages: full)).0.document?.pages == 200)
        #expect(try process(Samples.pdf(pages: full + [""])).0.rejection == .tooManyPages)
        #expect(try process(Array("%PDF-1.7\n".utf8)).0.rejection == .broken)

        var limits = MediaLimits()
        limits.textBytesMax = 4
        let cut = try #require(try process(Samples.pdf(pages: ["Curriculum", "Vitae"]), limits: limits).0.document)
        #expect(cut.textOutcome == .cut && cut.text == "Curr" && cut.pageOffsets == [0])
    }

    @Test("every reason has a sentence, and answers survive the wire")
    func wire() throws {
        for rejection in Rejection.allCases {
            #expect(rejection.sentence.hasSuffix("."))
            let data = try JSONEncoder().encode(MediaAnswer.rejected(rejection))
            #expect(try JSONDecoder().decode(MediaAnswer.self, from: data) == .rejected(rejection))
        }
    }
}

private let vips = reference("/usr/bin/vips", for: "the pixels of pictures that were turned")
