/// Header fields in order, their names compared without case (RFC 9110 §5).
///
/// Fields of a request are ranges of the bytes that came; a String is made of a field only when somebody asks for it.
public struct HTTPHeaders: Sendable, Equatable, Sequence, ExpressibleByDictionaryLiteral, CustomStringConvertible {
    public typealias Element = (name: String, value: String)

    private var received: RequestHead?
    private var fields: [Element]

    public init() { fields = [] }

    public init(dictionaryLiteral elements: (String, String)...) {
        fields = elements.map { (name: $0.0, value: $0.1) }
    }

    public init(_ fields: [Element]) { self.fields = fields }

    init(received: RequestHead) {
        self.received = received
        fields = []
    }

    public var count: Int { received?.fields.count ?? fields.count }
    public var isEmpty: Bool { count == 0 }

    /// The first field of this name.
    public subscript(name: String) -> String? {
        if let received {
            return received.first(name).map { received.value($0) }
        }
        return fields.first { Self.same($0.name, name) }?.value
    }

    /// The values of every field of this name, in order.
    public func all(_ name: String) -> [String] {
        if let received {
            return received.fields.filter { received.isNamed($0, name) }.map { received.value($0) }
        }
        return fields.filter { Self.same($0.name, name) }.map(\.value)
    }

    public func contains(_ name: String) -> Bool {
        if let received { return received.first(name) != nil }
        return fields.contains { Self.same($0.name, name) }
    }

    /// Whether a comma-separated field has this element, without case: `Connection: keep-alive, Upgrade`.
    public func hasElement(_ name: String, _ element: String) -> Bool {
        all(name).contains { value in
            value.utf8.split(separator: UInt8(ascii: ",")).contains { part in
                Self.same(trimmed(part), element.utf8)
            }
        }
    }

    public mutating func add(_ name: String, _ value: String) {
        materialize()
        fields.append((name: name, value: value))
    }

    /// Replaces every field of this name by one.
    public mutating func set(_ name: String, _ value: String) {
        remove(name)
        fields.append((name: name, value: value))
    }

    public mutating func remove(_ name: String) {
        materialize()
        fields.removeAll { Self.same($0.name, name) }
    }

    /// A loop over the sequence makes an array first; this does not.
    @inline(__always)
    func forEachField(_ body: (String, String) -> Void) {
        if let received {
            for field in received.fields { body(received.name(field), received.value(field)) }
        } else {
            for field in fields { body(field.name, field.value) }
        }
    }

    public func makeIterator() -> IndexingIterator<[Element]> { list.makeIterator() }

    public static func == (left: HTTPHeaders, right: HTTPHeaders) -> Bool {
        left.list.elementsEqual(right.list) { same($0.name, $1.name) && $0.value == $1.value }
    }

    public var description: String {
        list.map { "\($0.name): \($0.value)" }.joined(separator: "\n")
    }

    private var list: [Element] {
        guard let received else { return fields }
        return received.fields.map { (name: received.name($0), value: received.value($0)) }
    }

    private mutating func materialize() {
        guard received != nil else { return }
        fields = list
        received = nil
    }

    private static func same(_ left: String, _ right: String) -> Bool {
        same(left.utf8, right.utf8)
    }

    private static func same(_ left: some Collection<UInt8>, _ right: some Collection<UInt8>) -> Bool {
        left.count == right.count && left.elementsEqual(right) { lowercase($0) == lowercase($1) }
    }

    private func trimmed(_ part: Substring.UTF8View.SubSequence) -> Substring.UTF8View.SubSequence {
        var part = part.drop { $0 == 0x20 || $0 == 0x09 }
        while let last = part.last, last == 0x20 || last == 0x09 { part = part.dropLast() }
        return part
    }
}

/// ASCII only, as header names are.
@inline(__always)
func lowercase(_ byte: UInt8) -> UInt8 {
    byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte
}
