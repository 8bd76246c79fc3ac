import Foundation

/// An image as it was sent but for its metadata: what the picture is made of, copied piece by piece, and nothing else,
/// nor what somebody put behind its end. Nil for what is not built as it should be.
struct BareImage {
    /// Whether the colour profile stays.
    let keepsProfile: Bool

    func bytes(of type: ContentType, path: String) -> [UInt8]? {
        guard let file = try? Data(contentsOf: URL(fileURLWithPath: path)) else { return nil }
        return bytes(of: type, Array(file))
    }

    func bytes(of type: ContentType, _ file: [UInt8]) -> [UInt8]? {
        switch type {
        case .jpeg: jpeg(file)
        case .png: png(file)
        case .webp: webp(file)
        default: nil
        }
    }

    // MARK: JPEG (ITU-T T.81, annex B)

    private func jpeg(_ file: [UInt8]) -> [UInt8]? {
        guard file.starts(with: [0xFF, 0xD8]) else { return nil }
        var bare: [UInt8] = [0xFF, 0xD8]
        var index = 2
        while index + 1 < file.count {
            guard file[index] == 0xFF else { return nil }
            let marker = file[index + 1]
            switch marker {
            case 0xFF: index += 1
            case 0xD9: return bare + [0xFF, 0xD9]
            case 0x01, 0xD0...0xD7: index += 2
            default:
                guard index + 3 < file.count else { return nil }
                let end = index + 2 + Int(file[index + 2]) << 8 + Int(file[index + 3])
                guard end >= index + 4, end <= file.count else { return nil }
                switch keeps(marker, file[(index + 4)..<end]) {
                case nil: return nil
                case false?: break
                case true?: bare += file[index..<end]
                }
                index = end
                if marker == 0xDA {
                    index = Self.endOfScan(file, from: end)
                    bare += file[end..<index]
                }
            }
        }
        return nil
    }

    /// Nil for a kind of file that no decoder of ours reads.
    private func keeps(_ marker: UInt8, _ content: ArraySlice<UInt8>) -> Bool? {
        switch marker {
        // Frames, tables, scans.
        case 0xC0...0xC2, 0xC4, 0xDA, 0xDB, 0xDD: true
        // The JFIF header, unless it carries a small picture; what Adobe says of the colours; the profile.
        case 0xE0: content.starts(with: Array("JFIF\0".utf8)) && content.count == 14
        case 0xE2: keepsProfile && content.starts(with: Array("ICC_PROFILE\0".utf8))
        case 0xEE: content.starts(with: Array("Adobe".utf8))
        case 0xE1...0xEF, 0xFE: false
        default: nil
        }
    }

    /// Where the coded pixels end: at a marker that is neither a stuffed byte nor a restart.
    private static func endOfScan(_ file: [UInt8], from start: Int) -> Int {
        var index = start
        while index + 1 < file.count {
            if file[index] == 0xFF, file[index + 1] != 0, !(0xD0...0xD7).contains(file[index + 1]) { return index }
            index += 1
        }
        return file.count
    }

    // MARK: PNG (third edition, section 11)

    private static let pngChunks: Set<String> = [
        "IHDR", "PLTE", "IDAT", "IEND", "tRNS", "cHRM", "gAMA", "sBIT", "sRGB", "bKGD",
    ]

    private func png(_ file: [UInt8]) -> [UInt8]? {
        guard file.count > 8 else { return nil }
        var bare = Array(file[..<8])
        var index = 8
        while index + 12 <= file.count {
            let length = file[index..<(index + 4)].reduce(0) { $0 << 8 | Int($1) }
            let end = index + 12 + length
            guard end <= file.count else { return nil }
            let name = String(decoding: file[(index + 4)..<(index + 8)], as: UTF8.self)
            if Self.pngChunks.contains(name) || (name == "iCCP" && keepsProfile) {
                bare += file[index..<end]
            } else if name.first?.isUppercase ?? true {
                // Without a critical chunk the picture would be another one.
                return nil
            }
            if name == "IEND" { return bare }
            index = end
        }
        return nil
    }

    // MARK: WebP (RFC 9649)

    private func webp(_ file: [UInt8]) -> [UInt8]? {
        guard file.count >= 12 else { return nil }
        let whole = min(file.count, 8 + Self.little(file[4..<8]))
        var bare = Array(file[..<12])
        var index = 12
        while index + 8 <= whole {
            let length = Self.little(file[(index + 4)..<(index + 8)])
            let end = index + 8 + length + length % 2
            guard end <= whole else { return nil }
            switch String(decoding: file[index..<(index + 4)], as: UTF8.self) {
            case "VP8X":
                guard length == 10 else { return nil }
                bare += file[index..<end]
                // Bits 2, 3 and 5 announce XMP, EXIF and the profile.
                bare[bare.count - 10] &= keepsProfile ? ~0x0C : ~0x2C
            case "VP8 ", "VP8L", "ALPH": bare += file[index..<end]
            case "ICCP": if keepsProfile { bare += file[index..<end] }
            case "ANIM", "ANMF": return nil
            default: break
            }
            index = end
        }
        for byte in 0..<4 { bare[4 + byte] = UInt8(truncatingIfNeeded: (bare.count - 8) >> (byte * 8)) }
        return bare
    }

    private static func little(_ bytes: ArraySlice<UInt8>) -> Int {
        bytes.reversed().reduce(0) { $0 << 8 | Int($1) }
    }
}
