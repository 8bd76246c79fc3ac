import Foundation

/// An image's ICC profile on its way into what is made of it. It also lies in a file, from which libvips' WebP writer
/// takes it.
struct ColourProfile {
    let bytes: [UInt8]
    let file: String

    /// What one segment holds beside its marker, length, name and numbers (ICC.1, annex B.4).
    private static let segmentBytesMax = 65_519

    /// Nil when the file cannot be written.
    init?(bytes: [UInt8], folder: String) {
        self.bytes = bytes
        file = folder + "/profile.icc"
        guard FileManager.default.createFile(atPath: file, contents: Data(bytes)) else { return nil }
    }

    func removeFile() { unlink(file) }

    /// Puts the profile into a JPEG that has none, before everything but the JFIF header. False when the file cannot be
    /// rewritten.
    func insert(intoJPEG path: String) -> Bool {
        let url = URL(fileURLWithPath: path)
        guard let jpeg = try? Data(contentsOf: url), jpeg.count > 6 else { return false }
        // JFIF's own segment comes first when there is one.
        let hasHeader = jpeg[2] == 0xFF && jpeg[3] == 0xE0
        let at = hasHeader ? 4 + Int(jpeg[4]) << 8 + Int(jpeg[5]) : 2
        guard at <= jpeg.count else { return false }
        var result = Data(jpeg[..<at])
        let count = (bytes.count + Self.segmentBytesMax - 1) / Self.segmentBytesMax
        for number in 0..<count {
            let part = bytes.dropFirst(number * Self.segmentBytesMax).prefix(Self.segmentBytesMax)
            let length = part.count + 16
            result.append(contentsOf: [0xFF, 0xE2, UInt8(length >> 8), UInt8(length & 255)])
            result.append(contentsOf: Array("ICC_PROFILE\0".utf8) + [UInt8(number + 1), UInt8(count)])
            result.append(contentsOf: part)
        }
        result.append(jpeg[at...])
        return (try? result.write(to: url)) != nil
    }
}
