/// What the walk must tell the builder when an element ends.
enum Entry: Equatable {
    case skipped, transparent, block, cell, paragraph, leaf, inline
    /// How many containers it put up: two when a list stood in a list without an item.
    case containers(Int)
}

/// Turns the events of any tree into one canonical form: containers hold containers and leaves, leaves hold lines.
/// Blocks are never inside formatting, spaces are single, nothing is empty. Whatever nesting came in, what goes out
/// parses to itself, in every parser: that is what keeps a second parser from seeing something else in it.
///
/// Tags are written only when text needs them. `wanted…` is where the walk stands, `open…` what has been written.
struct Builder<Output: Sink> {
    var sink: Output
    let limits: SafeHTML.Limits

    private var wantedContainers: [Container] = []
    private var openContainers: [Container] = []
    private var wantedLeaves: [Leaf] = []
    private var paragraphDepth = 0
    private var openLeaf: Leaf?
    private var wantedInlines: [Inline] = []
    private var openInlines: [Inline] = []
    private var idCount = 0

    /// Of the open leaf: whether there is text in it, and what comes before the next text.
    private var hasText = false
    private var hasSpace = false
    private var lineBreaks = 0
    private var blanks: [UInt8] = []

    /// A row of line breaks is a gap, however long.
    private static var lineBreaksMax: Int { 2 }

    init(sink: Output, limits: SafeHTML.Limits) {
        self.sink = sink
        self.limits = limits
    }

    mutating func finish() -> Output {
        closeLeaf()
        while let container = openContainers.popLast() { sink.close(container) }
        return sink
    }

    // MARK: Elements

    mutating func enter(_ element: Element) -> Entry {
        switch element {
        case .dropped: return .skipped
        case .unwrapped: return .transparent
        case .inline(let inline): return enter(inline: inline)
        case .container(let kind): return enter(container: kind)
        case .lineBreak:
            lineBreak()
            return .skipped
        case .rule:
            rule()
            return .skipped
        case .cell:
            space()
            return .cell
        case .block:
            softBreak()
            return .block
        case .paragraph:
            softBreak()
            paragraphDepth += 1
            return .paragraph
        case .heading(let level): return enter(leaf: .heading(level))
        case .preformatted:
            idCount += 1
            return enter(leaf: .preformatted(idCount))
        }
    }

    mutating func leave(_ entry: Entry) {
        switch entry {
        case .skipped, .transparent: break
        case .inline: wantedInlines.removeLast()
        case .cell: space()
        case .block: softBreak()
        case .paragraph:
            softBreak()
            paragraphDepth -= 1
        case .leaf:
            softBreak()
            wantedLeaves.removeLast()
        case .containers(let count):
            softBreak()
            wantedContainers.removeLast(count)
        }
    }

    private mutating func enter(leaf: Leaf) -> Entry {
        softBreak()
        // The outermost heading or preformatted text gives the leaf; the others within it only part lines.
        guard wantedLeaves.isEmpty else { return .block }
        wantedLeaves.append(leaf)
        blanks = []
        return .leaf
    }

    private mutating func enter(inline: Inline) -> Entry {
        if case .link(let address) = inline, address.utf8.count > limits.linkBytesMax { return .transparent }
        guard !wantedInlines.contains(where: { $0.name == inline.name }) else { return .transparent }
        wantedInlines.append(inline)
        return .inline
    }

    private mutating func enter(container kind: Container.Kind) -> Entry {
        softBreak()
        let inList = wantedContainers.last?.isList ?? false
        idCount += 1
        let container = Container(kind: kind, id: idCount)
        if kind == .li {
            guard inList else { return .block }
            wantedContainers.append(container)
            return .containers(1)
        }
        // A list always has room for its items, so that a second pass finds the same containers fit.
        let needed = (inList ? 1 : 0) + (container.isList ? 2 : 1)
        guard wantedContainers.count + needed <= limits.nestingMax else { return .block }
        if let list = wantedContainers.last, inList { wantedContainers.append(Container(kind: .li, id: -list.id)) }
        wantedContainers.append(container)
        return .containers(inList ? 2 : 1)
    }

    // MARK: Text

    mutating func text(_ raw: ArraySlice<UInt8>) {
        let text = withoutControls(raw)
        if case .preformatted = wantedLeaf { return preformatted(text) }
        guard !isBlank(text[...]) else { return space() }
        var index = 0
        while index < text.count {
            if isSpace(text[index]) {
                space()
                index += 1
                continue
            }
            let end = text[index...].firstIndex(where: isSpace) ?? text.count
            openAll()
            sink.text(text[index..<end])
            hasText = true
            index = end
        }
    }

    private mutating func preformatted(_ text: [UInt8]) {
        var index = 0
        while index < text.count {
            if isSpace(text[index]) {
                blanks.append(text[index])
                index += 1
                continue
            }
            let end = text[index...].firstIndex(where: isSpace) ?? text.count
            openAll()
            sink.text(text[index..<end])
            hasText = true
            index = end
        }
    }

    private mutating func space() {
        if hasText && lineBreaks == 0 { hasSpace = true }
    }

    mutating func lineBreak() {
        if case .preformatted = wantedLeaf {
            blanks.append(10)
        } else if hasText {
            lineBreaks = min(lineBreaks + 1, Self.lineBreaksMax)
            hasSpace = false
        }
    }

    private mutating func rule() {
        closeLeaf()
        openTarget()
        sink.rule()
    }

    /// A block begins or ends here: what follows is not on the same line.
    mutating func softBreak() {
        switch openLeaf {
        case nil: break
        case .direct:
            if hasText && lineBreaks == 0 { lineBreak() }
        case .preformatted:
            if hasText && !blanks.contains(10) { blanks.append(10) }
        case .paragraph, .heading: closeLeaf()
        }
    }

    // MARK: Writing

    private var target: [Container] {
        guard let list = wantedContainers.last, list.isList else { return wantedContainers }
        return wantedContainers + [Container(kind: .li, id: -list.id)]
    }

    private var wantedLeaf: Leaf {
        if let leaf = wantedLeaves.first { return leaf }
        let inItem = wantedContainers.last.map { $0.kind != .blockquote } ?? false
        return paragraphDepth == 0 && inItem ? .direct : .paragraph
    }

    /// Opens what the next text stands in, and writes what is due before it.
    private mutating func openAll() {
        let leaf = wantedLeaf
        if openLeaf != leaf || openContainers != target {
            // The blanks before the first word of a preformatted text were gathered before it was opened.
            let indent = openLeaf == leaf ? [] : blanks
            closeLeaf()
            openTarget()
            sink.open(leaf)
            openLeaf = leaf
            if case .preformatted = leaf { blanks = indent } else { blanks = [] }
        }
        writeGap()
        closeInlines(keeping: commonInlines)
        for inline in wantedInlines[openInlines.count...] {
            sink.open(inline)
            openInlines.append(inline)
        }
    }

    private mutating func writeGap() {
        if !hasText, let lineEnd = blanks.lastIndex(of: 10) { blanks.removeFirst(lineEnd + 1) }
        guard lineBreaks > 0 || hasSpace || !blanks.isEmpty else { return }
        closeInlines(keeping: commonInlines)
        for _ in 0..<lineBreaks { sink.lineBreak() }
        if hasSpace { sink.text([UInt8(ascii: " ")]) }
        sink.text(blanks[...])
        lineBreaks = 0
        hasSpace = false
        blanks = []
    }

    private var commonInlines: Int {
        zip(openInlines, wantedInlines).prefix { $0 == $1 }.count
    }

    private mutating func closeInlines(keeping count: Int) {
        while openInlines.count > count, let inline = openInlines.popLast() { sink.close(inline) }
    }

    private mutating func closeLeaf() {
        guard let leaf = openLeaf else { return }
        closeInlines(keeping: 0)
        sink.close(leaf)
        openLeaf = nil
        hasText = false
        hasSpace = false
        lineBreaks = 0
        blanks = []
    }

    private mutating func openTarget() {
        let target = target
        let common = zip(openContainers, target).prefix { $0 == $1 }.count
        while openContainers.count > common, let container = openContainers.popLast() { sink.close(container) }
        for container in target[common...] {
            sink.open(container)
            openContainers.append(container)
        }
    }
}
