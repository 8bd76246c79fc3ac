import Foundation

/// Text that is only text: UTF-8 or UTF-16 when it says so, else UTF-8 if it is, else Windows' Latin.
struct PlainText {
    let file: [UInt8]

    func read(bytesMax: Int) -> TextBuilder {
        var text = TextBuilder(bytesMax: bytesMax)
        text.beginPage()
        var wasReturn = false
        for scalar in decoded().unicodeScalars {
            if text.isCut { break }
            switch scalar {
            case "\u{FEFF}": continue
            case "\n": if !wasReturn { text.newline() }
            case "\r": text.newline()
            case "\u{0C}": text.breakPage()
            default: text.append(scalar)
            }
            wasReturn = scalar == "\r"
        }
        return text
    }

    private func decoded() -> String {
        if file.starts(with: [0xFF, 0xFE]) { return wide { UInt16($0) | UInt16($1) << 8 } }
        if file.starts(with: [0xFE, 0xFF]) { return wide { UInt16($0) << 8 | UInt16($1) } }
        return String(validating: file, as: UTF8.self) ?? CodePage.windows1252.text(file)
    }

    private func wide(_ unit: (UInt8, UInt8) -> UInt16) -> String {
        let units = stride(from: 2, to: file.count - 1, by: 2).map { unit(file[$0], file[$0 + 1]) }
        return String(decoding: units, as: UTF16.self)
    }
}
