import Foundation

/// Text of one byte a character, as Windows' programs write it.
struct CodePage: Equatable {
    static let windows1252 = CodePage(1252)

    /// For 0x80 to 0xFF.
    private let upper: [Unicode.Scalar]

    /// - Parameter number: Windows'; what is not known is read as 1252.
    init(_ number: Int) {
        let encoding: String.Encoding =
            switch number {
            case 1250: .windowsCP1250
            case 1251: .windowsCP1251
            case 1253: .windowsCP1253
            case 1254: .windowsCP1254
            case 10000: .macOSRoman
            default: .windowsCP1252
            }
        upper = (UInt8(0x80)...0xFF).map { byte in
            String(bytes: [byte], encoding: encoding)?.unicodeScalars.first ?? "\u{FFFD}"
        }
    }

    /// By the number that RTF has for the character set of a font.
    init?(charset: Int) {
        let pages = [0: 1252, 1: 1252, 77: 10000, 161: 1253, 162: 1254, 204: 1251, 238: 1250]
        guard let page = pages[charset] else { return nil }
        self.init(page)
    }

    func scalar(_ byte: UInt8) -> Unicode.Scalar { byte < 0x80 ? Unicode.Scalar(byte) : upper[Int(byte) - 0x80] }

    func text(_ bytes: some Sequence<UInt8>) -> String {
        var text = String.UnicodeScalarView()
        for byte in bytes { text.append(scalar(byte)) }
        return String(text)
    }
}
