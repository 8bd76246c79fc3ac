import Foundation

/// What libvips' writers put into a file and leave out of it otherwise than we want.
enum Metadata {
    /// What one segment holds beside its marker, length, name and numbers (ICC.1, annex B.4).
    private static let segmentBytesMax = 65_519

    /// Puts a colour profile into a JPEG that has none, before everything but the JFIF header. False when the file
    /// cannot be rewritten.
    static func insert(profile: [UInt8], intoJPEG path: String) -> Bool {
        guard let jpeg = read(path), jpeg.count > 6 else { return false }
        // JFIF's own segment comes first when there is one.
        let hasHeader = jpeg[2] == 0xFF && jpeg[3] == 0xE0
        let at = hasHeader ? 4 + Int(jpeg[4]) << 8 + Int(jpeg[5]) : 2
        guard at <= jpeg.count else { return false }
        var result = Data(jpeg[..<at])
        let count = (profile.count + segmentBytesMax - 1) / segmentBytesMax
        for number in 0..<count {
            let part = profile.dropFirst(number * segmentBytesMax).prefix(segmentBytesMax)
            let length = part.count + 16
            result.append(contentsOf: [0xFF, 0xE2, UInt8(length >> 8), UInt8(length & 255)])
            result.append(contentsOf: Array("ICC_PROFILE\0".utf8) + [UInt8(number + 1), UInt8(count)])
            result.append(contentsOf: part)
        }
        result.append(jpeg[at...])
        return write(result, to: path)
    }

    /// Takes the EXIF and XMP chunks out of a WebP (RIFF container specification) and says so in its header. False when
    /// the file cannot be rewritten.
    static func remove(fromWebP path: String) -> Bool {
        guard let webp = read(path), webp.count >= 12 else { return false }
        var result = Data(webp[..<12])
        var index = 12
        while index + 8 <= webp.count {
            let name = webp[index..<(index + 4)]
            let length = (0..<4).reduce(0) { $0 | Int(webp[index + 4 + $1]) << ($1 * 8) }
            let end = min(index + 8 + length + length % 2, webp.count)
            if !["EXIF", "XMP "].contains(where: { name.elementsEqual($0.utf8) }) {
                let start = result.count
                result.append(webp[index..<end])
                // Bits 2 and 3 announce XMP and EXIF.
                if name.elementsEqual("VP8X".utf8), result.count > start + 8 { result[start + 8] &= ~0x0C }
            }
            index = end
        }
        for byte in 0..<4 { result[4 + byte] = UInt8(truncatingIfNeeded: (result.count - 8) >> (byte * 8)) }
        return result.count == webp.count || write(result, to: path)
    }

    private static func read(_ path: String) -> Data? { try? Data(contentsOf: URL(fileURLWithPath: path)) }

    private static func write(_ data: Data, to path: String) -> Bool {
        (try? data.write(to: URL(fileURLWithPath: path))) != nil
    }
}
