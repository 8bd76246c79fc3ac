import Foundation
import Testing

@testable import MediaTools

/// One test at a time: libvips has one error buffer.
@Suite(.serialized) struct BareImageTests {
    let scratch: Scratch
    let processor: MediaProcessor

    init() throws {
        scratch = try Scratch()
        processor = try MediaProcessor()
    }

    private func jpeg(quality: Int32) throws -> [UInt8] {
        let tiff = try scratch.file("sample.tiff", Samples.tiff(width: 600, height: 400))
        let file = scratch.path + "/sample.jpg"
        try Picture.load(.tiff, path: tiff).save(.jpeg, path: file, quality: quality, profile: nil)
        return Array(try Data(contentsOf: URL(fileURLWithPath: file)))
    }

    /// The image itself, as it is kept.
    private func kept(_ bytes: [UInt8]) throws -> (image: MediaImage, bytes: [UInt8]) {
        let request = try scratch.request(try scratch.file("input", bytes))
        let image = try #require(processor.process(request).image)
        let file = request.outputDirectory + "/" + image.original.file
        return (image, Array(try Data(contentsOf: URL(fileURLWithPath: file))))
    }

    @Test("a picture that writing anew would make bigger is kept as it was sent, without metadata and what follows it")
    func smaller() throws {
        let plain = try jpeg(quality: 30)
        let sent = Samples.withExif(.jpeg, plain, orientation: 1, width: 600, height: 400)
        for file in [plain, sent, sent + Array("<script>alert(1)</script>".utf8)] {
            let (image, bytes) = try kept(file)
            #expect(bytes == plain && image.original.bytes == plain.count)
            #expect(image.width == 600 && image.variants.count == 2)
        }
    }

    @Test("one that lies on its side, or that becomes smaller, is written anew")
    func anew() throws {
        let plain = try jpeg(quality: 30)
        let turned = try kept(Samples.withExif(.jpeg, plain, orientation: 6, width: 600, height: 400))
        #expect(turned.image.original.width == 400 && turned.bytes != plain)
        let fine = try jpeg(quality: 98)
        #expect(try kept(fine).bytes.count < fine.count)
    }

    @Test("all metadata goes, and the picture stays the same", arguments: [ContentType.jpeg, .png, .webp])
    func bare(type: ContentType) throws {
        let plain = try Samples.image(type, width: 300, height: 200, in: scratch)
        let sent = Samples.withExif(type, plain, orientation: 1, width: 300, height: 200)
        let bare = try #require(BareImage(keepsProfile: false).bytes(of: type, sent + [1, 2, 3]))
        for secret in ["SECRET-CAMERA", "Exif", "EXIF", "eXIf"] {
            #expect(Data(bare).range(of: Data(secret.utf8)) == nil)
        }
        let file = try scratch.file("bare", bare)
        let picture = try Picture.load(type, path: file).inMemory()
        #expect(picture.width == 300 && picture.height == 200 && picture.orientation <= 1)
        #expect(BareImage(keepsProfile: false).bytes(of: type, bare) == bare)
    }

    @Test("what is cut is taken apart without harm", arguments: [ContentType.jpeg, .png, .webp])
    func cut(type: ContentType) throws {
        let plain = try Samples.image(type, width: 60, height: 40, in: scratch)
        let sent = Samples.withExif(type, plain, orientation: 1, width: 60, height: 40)
        let tool = BareImage(keepsProfile: true)
        for count in 0..<sent.count {
            let bare = tool.bytes(of: type, Array(sent[..<count]))
            #expect(bare.map { $0.count <= count } ?? true)
        }
        #expect(tool.bytes(of: .pdf, sent) == nil)
    }
}
