import Core

/// What a query string says when its names are paths: `filters[name][$eq]=x`, as the library `qs` writes and reads it
/// and Strapi after it (contracts/01 §4). Brackets may come raw or percent-encoded, `+` is a space.
///
/// A pure reader of bytes that refuses before it allocates: every size that a client could choose has a limit.
/// - `a[b]=1` is an object, `a[0]=x&a[1]=y`, `a[]=x&a[]=y` and `a=x&a=y` are the list `x, y`.
/// - Indices are only an order: `a[7]=x` alone is a list of one.
/// - A name without `=` is null, with nothing behind it an empty text.
/// - What contradicts itself comes out as in `qs`: `a=1&a[b]=2` is `[1, {b: 2}]`, `a[0]=x&a[b]=y` is `{0: x, b: y}`,
///   `a[b]=2&a=1` is `{b: 2, 1: true}`. Nothing is ever dropped, so that nothing escapes a whitelist.
public indirect enum QueryTree: Sendable, Equatable {
    public struct Member: Sendable, Equatable {
        public let name: String
        public let value: QueryTree
    }

    case null
    case text(String)
    case list([QueryTree])
    /// In the order in which the names came; each once.
    case object([Member])

    public struct Limits: Sendable {
        /// The server takes targets of half of this.
        public var bytesMax = 16 * 1024
        /// Twice the longest list and a page of everything else.
        public var parametersMax = 300
        /// Of one name with its brackets, as it came.
        public var nameBytesMax = 1024
        /// Brackets behind a name; `qs` as Strapi sets it.
        public var depthMax = 20
        /// Elements of a list, their indices, and names in an object; `qs` as Strapi sets it.
        public var elementsMax = 100
        /// Values, lists and objects of the whole query.
        public var nodesMax = 1000

        public init() {}
    }

    /// - Throws: `invalid` with the path of what is wrong: malformed brackets or escapes, what is not UTF-8, NUL, and
    ///   more of anything than `limits` allow.
    public init(_ query: String, limits: Limits = Limits()) throws(AppError) {
        guard !query.isEmpty else {
            self = .object([])
            return
        }
        guard query.utf8.count <= limits.bytesMax else {
            throw AppError(.invalid, "The query is longer than \(limits.bytesMax) bytes.")
        }
        var query = query
        // Typed throws do not pass through `withUTF8`.
        let result = query.withUTF8 { bytes -> Result<QueryTree, AppError> in
            Result { () throws(AppError) in
                var builder = QueryTreeBuilder(limits: limits)
                try QueryTreeReader(limits: limits).read(bytes, into: &builder)
                return builder.tree()
            }
        }
        self = try result.get()
    }

    /// The value of a name in an object; nil where there is none.
    public subscript(name: String) -> QueryTree? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.name == name }?.value
    }

    public var members: [Member] {
        guard case .object(let members) = self else { return [] }
        return members
    }
}

/// Takes a query apart: parameters at `&`, name and value at `=`, the name at its brackets.
struct QueryTreeReader {
    let limits: QueryTree.Limits

    typealias Bytes = UnsafeBufferPointer<UInt8>

    func read(_ bytes: Bytes, into builder: inout QueryTreeBuilder) throws(AppError) {
        var parameters = 0
        var start = 0
        while start < bytes.count {
            let end = Self.index(of: UInt8(ascii: "&"), in: bytes, from: start)
            if end > start {
                parameters += 1
                guard parameters <= limits.parametersMax else {
                    throw AppError(.invalid, "The query has more than \(limits.parametersMax) parameters.")
                }
                try parameter(Bytes(rebasing: bytes[start..<end]), into: &builder)
            }
            start = end + 1
        }
    }

    private func parameter(_ part: Bytes, into builder: inout QueryTreeBuilder) throws(AppError) {
        let equals = Self.equals(part)
        guard equals <= limits.nameBytesMax else {
            throw AppError(.invalid, "The query has a name longer than \(limits.nameBytesMax) bytes.")
        }
        let name = try FormEncoding.decode(Bytes(rebasing: part[..<equals]))
        guard !name.isEmpty else { return }
        let path = try segments(name)
        var value: String?
        if equals < part.count {
            value = try text(try FormEncoding.decode(Bytes(rebasing: part[(equals + 1)...])), of: path)
        }
        try builder.insert(value, at: path)
    }

    /// The first, or the end. Written out, because it sees every byte, also of what is refused.
    private static func index(of byte: UInt8, in bytes: Bytes, from start: Int) -> Int {
        var index = start
        while index < bytes.count, bytes[index] != byte { index += 1 }
        return index
    }

    /// Where the name ends: at the first `=` behind a closing bracket, raw or encoded; without one at the first `=`. In
    /// `a[b=c]=d` the first belongs to the name.
    private static func equals(_ part: Bytes) -> Int {
        let first = index(of: UInt8(ascii: "="), in: part, from: 0)
        var equals = first
        while equals < part.count {
            if equals >= 1, part[equals - 1] == UInt8(ascii: "]") { return equals }
            if equals >= 3, part[equals - 3] == UInt8(ascii: "%"), part[equals - 2] == UInt8(ascii: "5"),
                part[equals - 1] | 0x20 == UInt8(ascii: "d")
            {
                return equals
            }
            equals = index(of: UInt8(ascii: "="), in: part, from: equals + 1)
        }
        return first
    }

    /// `a[b][0]` as `a`, `b`, `0`; an empty one stands for `[]`.
    private func segments(_ name: [UInt8]) throws(AppError) -> [String] {
        let open = UInt8(ascii: "[")
        let close = UInt8(ascii: "]")
        var path: [String] = []
        var start = name.firstIndex(of: open) ?? name.endIndex
        if start > 0 { path.append(try text(name[..<start], of: path)) }
        while start < name.endIndex {
            guard path.count <= limits.depthMax else {
                throw .query(path, "The query is nested deeper than \(limits.depthMax).")
            }
            let inside = name[(start + 1)...]
            guard name[start] == open, let end = inside.firstIndex(of: close), !inside[..<end].contains(open) else {
                throw .query(path, "The brackets of a name in the query do not match.")
            }
            path.append(try text(inside[..<end], of: path))
            start = end + 1
        }
        guard path.first?.isEmpty == false else {
            throw .query([], "A name in the query begins with empty brackets.")
        }
        return path
    }

    private func text(_ bytes: some Collection<UInt8>, of path: [String]) throws(AppError) -> String {
        guard let text = String(validating: bytes, as: UTF8.self), !bytes.contains(0) else {
            throw .query(path, "The query is not UTF-8, or has a NUL.")
        }
        return text
    }
}

extension AppError {
    /// Segments of a path as an error repeats them, and their length: what a client sent is not sent back without
    /// bounds.
    private static let repeatedMax = 24
    private static let repeatedLengthMax = 80

    /// Something wrong with the query, at a path of it.
    public static func query(_ path: [String], _ message: String) -> AppError {
        let path = path.prefix(repeatedMax).map { String($0.prefix(repeatedLengthMax)) }
        return AppError(.invalid, message, issues: [Issue(path: path, message: message)])
    }
}
