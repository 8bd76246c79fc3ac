/// What a `Builder` writes to. Calls are always well nested.
protocol Sink {
    mutating func open(_ container: Container)
    mutating func close(_ container: Container)
    mutating func open(_ leaf: Leaf)
    mutating func close(_ leaf: Leaf)
    mutating func open(_ inline: Inline)
    mutating func close(_ inline: Inline)
    mutating func text(_ bytes: ArraySlice<UInt8>)
    mutating func lineBreak()
    mutating func rule()
}

/// A block of lines, with no block inside it.
enum Leaf: Equatable {
    /// Directly in a list item.
    case direct
    case paragraph
    case heading(Int)
    /// Its number, so that two side by side stay two.
    case preformatted(Int)

    var name: String? {
        switch self {
        case .direct: nil
        case .paragraph: "p"
        case .heading(let level): "h\(level)"
        case .preformatted: "pre"
        }
    }
}

/// HTML of the allow-list. Everything it writes is a literal of ours or escaped.
struct HTMLSink: Sink {
    private(set) var bytes: [UInt8] = []

    func result(bytesMax: Int) throws(SafeHTML.Failure) -> String {
        guard bytes.count <= bytesMax else { throw .tooLarge }
        return String(decoding: bytes, as: UTF8.self)
    }

    mutating func open(_ container: Container) { tag(container.kind.rawValue) }
    mutating func close(_ container: Container) { tag("/" + container.kind.rawValue) }
    mutating func open(_ leaf: Leaf) { if let name = leaf.name { tag(name) } }
    mutating func close(_ leaf: Leaf) { if let name = leaf.name { tag("/" + name) } }
    mutating func lineBreak() { tag("br") }
    mutating func rule() { tag("hr") }
    mutating func close(_ inline: Inline) { tag("/" + inline.name) }

    mutating func open(_ inline: Inline) {
        guard case .link(let address) = inline else { return tag(inline.name) }
        bytes.append(contentsOf: #"<a href=""#.utf8)
        text(Array(address.utf8)[...])
        bytes.append(contentsOf: #"" rel="noopener nofollow ugc">"#.utf8)
    }

    /// Also right within an attribute.
    mutating func text(_ text: ArraySlice<UInt8>) {
        for byte in text {
            switch byte {
            case UInt8(ascii: "&"): bytes.append(contentsOf: "&amp;".utf8)
            case UInt8(ascii: "<"): bytes.append(contentsOf: "&lt;".utf8)
            case UInt8(ascii: ">"): bytes.append(contentsOf: "&gt;".utf8)
            case UInt8(ascii: "\""): bytes.append(contentsOf: "&quot;".utf8)
            default: bytes.append(byte)
            }
        }
    }

    private mutating func tag(_ name: String) {
        bytes.append(UInt8(ascii: "<"))
        bytes.append(contentsOf: name.utf8)
        bytes.append(UInt8(ascii: ">"))
    }
}

/// Plain text with an empty line between paragraphs and a mark before each list item.
struct TextSink: Sink {
    private var bytes: [UInt8] = []
    /// How many items each open list has had; nil for a list without numbers.
    private var lists: [Int?] = []
    private var itemCount = 0
    private var isAfterMark = false

    init() {}

    func result() -> String { String(decoding: bytes, as: UTF8.self) }

    mutating func open(_ container: Container) {
        switch container.kind {
        case .ul: lists.append(nil)
        case .ol: lists.append(0)
        case .blockquote: break
        case .li: openItem()
        }
        if container.isList && lists.count == 1 { newLine(blank: true) }
    }

    mutating func close(_ container: Container) {
        if container.isList { lists.removeLast() }
        if container.kind == .li { itemCount -= 1 }
        isAfterMark = false
    }

    mutating func open(_ leaf: Leaf) {
        if !isAfterMark { newLine(blank: itemCount == 0) }
        isAfterMark = false
    }

    mutating func close(_ leaf: Leaf) {}
    mutating func open(_ inline: Inline) {}
    mutating func close(_ inline: Inline) {}
    mutating func text(_ text: ArraySlice<UInt8>) { bytes.append(contentsOf: text) }
    mutating func lineBreak() { newLine(blank: false) }
    mutating func rule() { isAfterMark = false }

    private mutating func openItem() {
        if !isAfterMark { newLine(blank: false) }
        itemCount += 1
        if let count = lists.last ?? nil {
            lists[lists.count - 1] = count + 1
            bytes.append(contentsOf: "\(count + 1). ".utf8)
        } else {
            bytes.append(contentsOf: "• ".utf8)
        }
        isAfterMark = true
    }

    /// Goes to the start of a line, indented for the items it is in.
    private mutating func newLine(blank: Bool) {
        guard !bytes.isEmpty else { return }
        while bytes.last == UInt8(ascii: " ") { bytes.removeLast() }
        if blank {
            while bytes.suffix(2) != [10, 10] { bytes.append(10) }
        } else if bytes.last != 10 || itemCount == 0 && lists.isEmpty {
            bytes.append(10)
        }
        bytes.append(contentsOf: repeatElement(UInt8(ascii: " "), count: itemCount * 2))
    }
}
