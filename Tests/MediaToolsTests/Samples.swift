import Foundation

@testable import MediaTools

/// Files made for a test, from nothing but bytes.
enum Samples {
    /// An uncompressed TIFF: the one format that holds every kind of pixel and needs no encoder.
    /// - Parameter photometric: 1 grey, 2 RGB, 5 CMYK.
    static func tiff(width: Int, height: Int, bands: Int = 3, bits: Int = 8, photometric: Int = 2) -> [UInt8] {
        let pixelBytes = width * height * bands * bits / 8
        var entries: [(tag: Int, type: Int, count: Int, value: Int)] = [
            (256, 4, 1, width), (257, 4, 1, height), (258, 3, bands, 0), (259, 3, 1, 1), (262, 3, 1, photometric),
            (273, 4, 1, 0), (277, 3, 1, bands), (278, 4, 1, height), (279, 4, 1, pixelBytes), (284, 3, 1, 1),
        ]
        if photometric == 2 && bands == 4 { entries.append((338, 3, 1, 2)) }
        let bitsAt = 8 + 2 + entries.count * 12 + 4
        if bands > 2 { entries[2].value = bitsAt } else { entries[2].value = bits }
        entries[5].value = bitsAt + bands * 2
        var bytes: [UInt8] = Array("II".utf8) + [42, 0] + little(8, 4) + little(entries.count, 2)
        for entry in entries {
            bytes += little(entry.tag, 2) + little(entry.type, 2) + little(entry.count, 4) + little(entry.value, 4)
        }
        bytes += little(0, 4)
        for _ in 0..<bands { bytes += little(bits, 2) }
        // A gradient, so that shrinking and turning leave something to see.
        for row in 0..<height {
            for column in 0..<width {
                for band in 0..<bands {
                    let value = band == 0 ? column * 255 / width : band == 1 ? row * 255 / height : 200
                    if bits == 16 { bytes.append(UInt8(value)) }
                    bytes.append(UInt8(value))
                }
            }
        }
        return bytes
    }

    static func little(_ value: Int, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
    }

    /// Any format we can write, by libvips from a TIFF.
    static func image(_ type: ContentType, width: Int, height: Int, bands: Int = 3, in scratch: Scratch) throws
        -> [UInt8]
    {
        let tiff = try scratch.file("sample.tiff", Self.tiff(width: width, height: height, bands: bands))
        let file = scratch.path + "/sample" + type.ext
        try Picture.load(.tiff, path: tiff).save(type, path: file, quality: 90, profile: nil)
        return Array(try Data(contentsOf: URL(fileURLWithPath: file)))
    }

    /// EXIF with an orientation, a camera's name and a place on earth.
    private static func exif(orientation: Int) -> [UInt8] {
        var exif: [UInt8] = Array("II".utf8) + [42, 0] + little(8, 4) + little(3, 2)
        let nameAt = 8 + 2 + 3 * 12 + 4
        let placeAt = nameAt + 14
        exif += little(0x0110, 2) + little(2, 2) + little(14, 4) + little(nameAt, 4)
        exif += little(0x0112, 2) + little(3, 2) + little(1, 4) + little(orientation, 4)
        exif += little(0x8825, 2) + little(4, 2) + little(1, 4) + little(placeAt, 4)
        exif += little(0, 4) + Array("SECRET-CAMERA\0".utf8)
        return exif + little(1, 2) + little(1, 2) + little(2, 2) + little(2, 4) + Array("N\0\0\0".utf8) + little(0, 4)
    }

    /// The image with EXIF, and for PNG with an author's name in a text.
    static func withExif(_ type: ContentType, _ image: [UInt8], orientation: Int, width: Int, height: Int) -> [UInt8] {
        let exif = exif(orientation: orientation)
        switch type {
        case .png:
            let texts = pngChunk("tEXt", Array("Author\0SECRET-CAMERA".utf8)) + pngChunk("eXIf", exif)
            return Array(image[..<33]) + texts + image[33...]
        case .webp:
            let flags: [UInt8] = [8, 0, 0, 0] + little(width - 1, 3) + little(height - 1, 3)
            let padded = exif + (exif.count % 2 == 0 ? [] : [0])
            let pixels = image[(image[12..<16].elementsEqual("VP8X".utf8) ? 30 : 12)...]
            let chunks: [UInt8] =
                Array("WEBPVP8X".utf8) + little(10, 4) + flags + pixels + Array("EXIF".utf8)
                + little(exif.count, 4) + padded
            return Array("RIFF".utf8) + little(chunks.count, 4) + chunks
        default:
            let segment: [UInt8] = Array("Exif\0\0".utf8) + exif
            let length = segment.count + 2
            return Array(image[..<2]) + [0xFF, 0xE1, UInt8(length >> 8), UInt8(length & 255)] + segment + image[2...]
        }
    }

    /// A PNG's header with nothing after it.
    static func pngHeader(width: UInt32, height: UInt32) -> [UInt8] {
        var header: [UInt8] = []
        for side in [width, height] { withUnsafeBytes(of: side.bigEndian) { header += Array($0) } }
        header += [8, 6, 0, 0, 0]
        return [0x89] + Array("PNG\r\n".utf8) + [0x1A, 10] + pngChunk("IHDR", header) + pngChunk("IDAT", [])
    }

    private static func pngChunk(_ name: String, _ body: [UInt8]) -> [UInt8] {
        let content = Array(name.utf8) + body
        var chunk: [UInt8] = []
        withUnsafeBytes(of: UInt32(body.count).bigEndian) { chunk += Array($0) }
        chunk += content
        withUnsafeBytes(of: crc32(content).bigEndian) { chunk += Array($0) }
        return chunk
    }

    private static func crc32(_ bytes: [UInt8]) -> UInt32 {
        var crc: UInt32 = .max
        for byte in bytes {
            crc ^= UInt32(byte)
            for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0xEDB8_8320 : crc >> 1 }
        }
        return ~crc
    }

    /// An animation: a white frame, then frames of one pixel. A frame of over a million pixels has no data.
    static func gif(width: Int, height: Int, frames: Int) -> [UInt8] {
        var bytes: [UInt8] = Array("GIF89a".utf8) + little(width, 2) + little(height, 2) + [0x80, 0, 0]
        bytes += [255, 255, 255, 0, 0, 0]
        bytes += [0x2C, 0, 0, 0, 0] + little(width, 2) + little(height, 2) + [0, 7]
        // Codes of eight bits, and the table begun anew before they need nine.
        var left = width * height > 1_000_000 ? 0 : width * height
        while left > 0 {
            let count = min(left, 120)
            bytes += [UInt8(count + 1), 0x80] + [UInt8](repeating: 0, count: count)
            left -= count
        }
        bytes += [1, 0x81, 0]
        for _ in 1..<max(frames, 2) where frames > 1 {
            bytes += [0x2C, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0]
        }
        return bytes + [0x3B]
    }

    /// A PDF that takes some seconds to read: a page of ten million bytes of strokes.
    static func slowPDF() -> [UInt8] {
        pdf(pages: ["x"], drawing: String(repeating: " 0 0 m 1 1 l S", count: 1_250_000))
    }

    /// A PDF with these pages, each a line of text.
    static func pdf(pages: [String], drawing: String = "", font: String = "Helvetica") -> [UInt8] {
        let kids = pages.indices.map { "\(4 + $0 * 2) 0 R" }.joined(separator: " ")
        var objects = [
            "<< /Type /Catalog /Pages 2 0 R >>",
            "<< /Type /Pages /Count \(pages.count) /Kids [\(kids)] >>",
            "<< /Type /Font /Subtype /Type1 /BaseFont /\(font) >>",
        ]
        for (index, text) in pages.enumerated() {
            objects.append(
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Resources << /Font << /F1 3 0 R >> >> "
                    + "/Contents \(5 + index * 2) 0 R >>")
            let stream = text.isEmpty ? "" : "BT /F1 12 Tf 20 100 Td (\(text)) Tj ET" + drawing
            objects.append("<< /Length \(stream.utf8.count) >>\nstream\n\(stream)\nendstream")
        }
        var pdf = "%PDF-1.4\n"
        var offsets: [Int] = []
        for (index, object) in objects.enumerated() {
            offsets.append(pdf.utf8.count)
            pdf += "\(index + 1) 0 obj\n\(object)\nendobj\n"
        }
        let table = pdf.utf8.count
        pdf += "xref\n0 \(objects.count + 1)\n0000000000 65535 f \n"
        for offset in offsets { pdf += String(repeating: "0", count: 10 - "\(offset)".count) + "\(offset) 00000 n \n" }
        pdf += "trailer\n<< /Size \(objects.count + 1) /Root 1 0 R >>\nstartxref\n\(table)\n%%EOF\n"
        return Array(pdf.utf8)
    }
}
