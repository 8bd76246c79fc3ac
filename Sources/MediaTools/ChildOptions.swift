/// What a media child may do beyond what it always does: the words between `media-child` and the roots.
struct ChildOptions: Equatable, Sendable {
    /// SVG is drawn, and what is kept is the drawing. Otherwise it is refused.
    var rasterizesSVG = false
    /// What a child reads scans in, by tesseract's names. Empty for a child that reads none.
    var scanLanguages: [String] = []

    private static let rasterizing = "--svg"
    private static let scanning = "--ocr="

    init() {}

    /// - Returns: Nil for a word that is neither an option nor a root, which are absolute.
    init?(_ words: some Sequence<String>, roots: inout [String]) {
        for word in words {
            if word == Self.rasterizing {
                rasterizesSVG = true
            } else if word.hasPrefix(Self.scanning) {
                scanLanguages = word.dropFirst(Self.scanning.count).split(separator: "+").map(String.init)
            } else if word.hasPrefix("/") {
                roots.append(word)
            } else {
                return nil
            }
        }
    }

    var words: [String] {
        (rasterizesSVG ? [Self.rasterizing] : [])
            + (scanLanguages.isEmpty ? [] : [Self.scanning + scanLanguages.joined(separator: "+")])
    }
}
