/// Bytes that grow. An array looks at each append whether somebody else holds it; of this there is one owner, and an
/// append of a byte is a comparison and a store.
struct ByteBuffer: ~Copyable {
    private var base: UnsafeMutablePointer<UInt8>
    private var capacity: Int
    private var count = 0

    init(capacity: Int) {
        self.capacity = max(capacity, 64)
        base = .allocate(capacity: self.capacity)
    }

    deinit { base.deallocate() }

    @inline(__always)
    mutating func append(_ byte: UInt8) {
        if count == capacity { grow(by: 1) }
        base[count] = byte
        count += 1
    }

    @inline(__always)
    mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard let source = bytes.baseAddress else { return }
        if capacity - count < bytes.count { grow(by: bytes.count) }
        (base + count).update(from: source, count: bytes.count)
        count += bytes.count
    }

    @inline(__always)
    mutating func append(_ text: StaticString) {
        text.withUTF8Buffer { append($0) }
    }

    mutating func append(_ text: String) {
        var text = text
        text.withUTF8 { append($0) }
    }

    /// Room for `size` bytes, of which `write` says how many it wrote.
    @inline(__always)
    mutating func append(upTo size: Int, _ write: (UnsafeMutableBufferPointer<UInt8>) -> Int) {
        if capacity - count < size { grow(by: size) }
        count += write(UnsafeMutableBufferPointer(start: base + count, count: size))
    }

    func array() -> [UInt8] { Array(UnsafeBufferPointer(start: base, count: count)) }

    @inline(never)
    private mutating func grow(by size: Int) {
        capacity = max(capacity * 2, count + size)
        let larger = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity)
        larger.update(from: base, count: count)
        base.deallocate()
        base = larger
    }
}
