import Cgumbo

/// A parsed fragment. It owns gumbo's memory and the text that the tree points into.
final class Document {
    /// Ten times what 256 kB of honest HTML takes.
    static let memoryBytesMax = 64 << 20

    private let arena: UnsafeMutablePointer<martlet_gumbo_arena>
    private let source: UnsafeMutableBufferPointer<CChar>
    private let root: UnsafeMutablePointer<GumboNode>

    convenience init(_ html: String, limits: SafeHTML.Limits) throws(SafeHTML.Failure) {
        guard html.utf8.count <= limits.bytesMax else { throw .tooLarge }
        try checkTags(Array(html.utf8), tagsMax: limits.tagsMax)
        try self.init(html, memoryBytesMax: Self.memoryBytesMax)
    }

    init(_ html: String, memoryBytesMax: Int) throws(SafeHTML.Failure) {
        guard let arena = martlet_gumbo_arena_new(memoryBytesMax) else { throw .tooComplex }
        let bytes = html.utf8.map { CChar(bitPattern: $0) }
        let source = UnsafeMutableBufferPointer<CChar>.allocate(capacity: bytes.count + 1)
        _ = source.initialize(from: bytes + [0])
        guard let root = martlet_gumbo_parse(arena, source.baseAddress, bytes.count) else {
            martlet_gumbo_arena_free(arena)
            source.deallocate()
            throw .tooComplex
        }
        self.arena = arena
        self.source = source
        self.root = root
    }

    deinit {
        martlet_gumbo_arena_free(arena)
        source.deallocate()
    }

    /// All text there is, in order.
    var plainText: String {
        var bytes: [UInt8] = []
        for child in Children(root.pointee.v.element.children) where Self.isText(child) {
            bytes.append(contentsOf: Self.text(of: child))
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Tells `builder` of everything in document order. With a stack of its own: a tree may be as deep as it has tags.
    func walk(into builder: inout Builder<some Sink>) {
        var open = [(Children(root.pointee.v.element.children), Entry.transparent)]
        while let (children, entry) = open.last {
            guard let child = children.next() else {
                builder.leave(entry)
                open.removeLast()
                continue
            }
            if Self.isText(child) {
                builder.text(Self.text(of: child)[...])
            } else if child.pointee.type == GUMBO_NODE_ELEMENT {
                let element = child.pointee.v.element
                let entry = builder.enter(Element(element))
                if entry != .skipped { open.append((Children(element.children), entry)) }
            }
        }
    }

    private static func isText(_ node: UnsafeMutablePointer<GumboNode>) -> Bool {
        let type = node.pointee.type
        return type == GUMBO_NODE_TEXT || type == GUMBO_NODE_WHITESPACE || type == GUMBO_NODE_CDATA
    }

    private static func text(of node: UnsafeMutablePointer<GumboNode>) -> [UInt8] {
        guard let text = node.pointee.v.text.text else { return [] }
        return text.withMemoryRebound(to: UInt8.self, capacity: 1) { bytes in
            var count = 0
            while bytes[count] != 0 { count += 1 }
            return Array(UnsafeBufferPointer(start: bytes, count: count))
        }
    }
}

/// The nodes of one element, from first to last.
private final class Children: Sequence, IteratorProtocol {
    private let vector: GumboVector
    private var index = 0

    init(_ vector: GumboVector) { self.vector = vector }

    func next() -> UnsafeMutablePointer<GumboNode>? {
        while index < Int(vector.length) {
            defer { index += 1 }
            if let node = vector.data[index] { return node.assumingMemoryBound(to: GumboNode.self) }
        }
        return nil
    }
}
