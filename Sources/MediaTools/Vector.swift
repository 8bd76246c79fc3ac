/// An SVG that may be drawn: no entities, nothing from elsewhere, no more drawn than a few pages hold.
///
/// librsvg gets the bytes without an address, so it opens no file and asks no server whatever is in them, and it runs
/// no script. This says beforehand what it would leave out, and what it would draw for minutes.
final class Vector {
    /// Logos have some ten kilobytes.
    static let bytesMax = 2 << 20
    static let elementsMax = 100_000
    /// Elements drawn, each as often as it is referred to. librsvg's own limit is ten times as high: on a busy machine
    /// that is a minute.
    static let drawnMax = 50_000
    /// A step of a filter, which looks at every pixel, counts as so many elements.
    static let filterCost = 500
    /// Of a side or a view box. libvips counts in 32 bits and takes what does not fit for a single pixel.
    static let lengthMax = 1_000_000.0
    /// References that lead on to references.
    private static let chainMax = 500
    /// A drawing has no size of its own. The longer side has at least that of the largest variant.
    static let sideMin = 1000

    let bytes: [UInt8]

    /// - Throws: `notAnImage` for what is not well-formed, `tooManyPixels`, `unsafeImage`.
    init(_ bytes: [UInt8]) throws(Rejection) {
        guard bytes.count <= Self.bytesMax else { throw .unsafeImage }
        self.bytes = bytes
        let check = try Check()
        try check.read(bytes)
    }

    /// How much larger than it says it is drawn.
    static func scale(width: Int, height: Int) -> Double {
        max(1, Double(sideMin) / Double(max(width, height, 1)))
    }

    /// Reads it once, and counts.
    private final class Check {
        /// An element with a name, or the whole: what is drawn where it is referred to.
        private struct Group {
            var elements = 0
            var references: [Substring] = []
            var parts: [Int] = []
            var total: Int?
            var isOpen = false
        }

        private static let space = "http://www.w3.org/2000/svg"

        private let reader: XMLReader
        private var groups = [Group()]
        private var names: [Substring: Int] = [:]
        /// For each element around us, the group that it belongs to.
        private var path = [0]
        private var elements = 0
        private var styles = 0
        private var style: [UInt8] = []
        private var isUnsafe = false
        private var isTooLong = false
        private var isDrawing = false

        init() throws(Rejection) { reader = try XMLReader(allowsDocumentType: true) }

        func read(_ bytes: [UInt8]) throws(Rejection) {
            reader.onStart = { [unowned self] name, attributes in start(name, attributes) }
            reader.onEnd = { [unowned self] name in end(name) }
            reader.onText = { [unowned self] text in if styles > 0 { style += text } }
            let trouble = bytes.withUnsafeBytes { bytes -> Rejection? in
                do throws(Rejection) {
                    try reader.feed(bytes, isLast: true)
                    return nil
                } catch {
                    return error
                }
            }
            if let trouble { throw trouble == .broken ? .notAnImage : .unsafeImage }
            guard isDrawing else { throw .notAnImage }
            guard !isTooLong else { throw .tooManyPixels }
            guard !isUnsafe, drawn(0, depth: 0) <= Vector.drawnMax else { throw .unsafeImage }
        }

        private func start(_ name: XMLReader.Name, _ attributes: XMLReader.Attributes) {
            elements += 1
            guard elements <= Vector.elementsMax else {
                isUnsafe = true
                return
            }
            if elements == 1 {
                isDrawing = name.local == "svg"
                isTooLong = ["width", "height", "viewBox"].contains { Self.isTooLong(attributes[$0] ?? "") }
            }
            let outer = path.last ?? 0
            groups[outer].elements += name.local.hasPrefix("fe") ? Vector.filterCost : 1
            var group = outer
            if let id = attributes["id"] {
                groups.append(Group())
                group = groups.count - 1
                groups[outer].parts.append(group)
                names[Substring(id)] = names[Substring(id)] ?? group
            }
            path.append(group)
            if name.local == "style" { styles += 1 }
            attributes.forEach { attribute, value in
                if attribute.local == "href" {
                    // Where a link leads is nothing that is drawn, and neither is a page of another kind within.
                    if name.local != "a", name.space.isEmpty || name.space == Self.space { refer(value, from: group) }
                } else {
                    lookForAddresses(value, in: group)
                }
            }
        }

        /// Whether there is a number in it beyond `lengthMax`, whatever its unit.
        private static func isTooLong(_ text: String) -> Bool {
            text.split { $0.isWhitespace || $0 == "," }.contains { part in
                let number = part.prefix { $0.isNumber || ".+-eE".contains($0) }
                // "em" is a unit that begins like an exponent.
                let length = Double(number) ?? Double(number.prefix { $0 != "e" && $0 != "E" }) ?? 0
                return abs(length) > Vector.lengthMax
            }
        }

        private func end(_ name: XMLReader.Name) {
            if path.count > 1 { path.removeLast() }
            guard name.local == "style", styles > 0 else { return }
            styles -= 1
            let text = String(decoding: style, as: UTF8.self)
            style = []
            if text.contains("@import") { isUnsafe = true }
            lookForAddresses(text, in: path.last ?? 0)
        }

        /// `url(…)` in a style, and in the attributes that stand for one.
        private func lookForAddresses(_ text: String, in group: Int) {
            guard text.utf8.contains(UInt8(ascii: "(")) else { return }
            for part in text.split(separator: "url(", omittingEmptySubsequences: false).dropFirst() {
                let address = part.prefix { $0 != ")" }
                refer(address.filter { !$0.isWhitespace && $0 != "'" && $0 != "\"" }, from: group)
            }
        }

        /// Within the drawing, or a picture that is written out in it, of the two kinds that every reader knows.
        private func refer(_ address: String, from group: Int) {
            let address = address.trimmingPrefix(while: \.isWhitespace)
            if address.first == "#" {
                groups[group].references.append(address.dropFirst())
            } else if !address.isEmpty {
                let start = address.prefix(16).lowercased()
                if !["data:image/png;", "data:image/jpeg;", "data:image/jpg;"].contains(where: start.hasPrefix) {
                    isUnsafe = true
                }
            }
        }

        /// Elements drawn for a group with all that it refers to; beyond `drawnMax` it stops counting.
        private func drawn(_ index: Int, depth: Int) -> Int {
            if let total = groups[index].total { return total }
            // Whoever refers to what it is part of is not drawn.
            guard !groups[index].isOpen else { return 0 }
            guard depth <= Vector.chainMax else { return Vector.drawnMax + 1 }
            groups[index].isOpen = true
            var total = groups[index].elements
            for part in groups[index].parts + groups[index].references.compactMap({ names[$0] }) {
                guard total <= Vector.drawnMax else { break }
                total += drawn(part, depth: depth + 1)
            }
            groups[index].isOpen = false
            groups[index].total = total
            return total
        }
    }
}
