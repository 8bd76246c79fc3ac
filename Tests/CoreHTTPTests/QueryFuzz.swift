import Seeded
import Testing

@testable import CoreHTTP

@Suite("Queries, by chance") struct QueryFuzz {
    private static let pieces = [
        "a", "b", "0", "1", "99", "[", "]", "[]", "[0]", "[1]", "[a]", "[b]", "=", "&", "&a", "&a[", "%", "%5B", "%5D",
        "%41", "%00", "+", ".", "$", "é", "\u{0}", "",
    ]

    @Test("no query breaks it: any gives a tree within the limits or an error, encoded brackets the same")
    func query() throws {
        var limits = QueryTree.Limits()
        limits.nodesMax = 40
        limits.depthMax = 5
        var taken = 0
        let rounds = try Fuzz("query", rounds: 20_000).run { fuzz in
            let query = fuzz.text(of: Self.pieces, max: 40)
            fuzz.input = Array(query.utf8)
            guard let tree = try? QueryTree(query, limits: limits) else { return }
            taken += 1
            // The root is counted, and each value that a name was made of is not.
            try fuzz.check(tree.size <= limits.nodesMax * 2, "\(tree.size) values")
            try fuzz.check(tree.depth <= limits.depthMax * 2 + 3, "\(tree.depth) deep")
            let encoded = query.replacing("[", with: "%5B").replacing("]", with: "%5d")
            try fuzz.checkEqual(try QueryTree(encoded, limits: limits), tree, "with its brackets encoded")
        }
        #expect(rounds < 20_000 || taken > 1_000)
    }

    /// What `qs` would write: names without digits alone, which would be places in a list.
    private static func tree(_ fuzz: inout FuzzCase, depth: Int) -> QueryTree {
        let texts = ["", "x", "é", "&", "=", "+", "[", "]", "%41", " ", "0"]
        switch fuzz.number(0...(depth < 4 ? 5 : 2)) {
        case 0: return .text(fuzz.text(of: texts, max: 4))
        case 1: return .text("x" + fuzz.text(of: texts, max: 2))
        case 2: return .null
        case 3: return .list((0..<fuzz.number(1...3)).map { _ in tree(&fuzz, depth: depth + 1) })
        default: return object(&fuzz, depth: depth)
        }
    }

    private static func object(_ fuzz: inout FuzzCase, depth: Int) -> QueryTree {
        let names = ["a", "b", "$eq", "é", "n 0", "&", "=", "__proto__"].shuffled(using: &fuzz.random)
        let count = fuzz.number(1...3)
        return .object(names.prefix(count).map { QueryTree.Member(name: $0, value: tree(&fuzz, depth: depth + 1)) })
    }

    private static func encoded(_ text: String) -> String {
        text.utf8.map { byte in
            if (0x61...0x7A).contains(byte) || (0x30...0x39).contains(byte) { return String(Unicode.Scalar(byte)) }
            return "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }.joined()
    }

    private static func parameters(_ tree: QueryTree, _ path: String) -> [String] {
        switch tree {
        case .null: [path]
        case .text(let text): [path + "=" + encoded(text)]
        case .list(let items): items.enumerated().flatMap { parameters($1, "\(path)[\($0)]") }
        case .object(let members):
            members.flatMap { parameters($0.value, path.isEmpty ? encoded($0.name) : "\(path)[\(encoded($0.name))]") }
        }
    }

    @Test("a tree that is written as a query is read as it was")
    func tree() throws {
        try Fuzz("tree", rounds: 4_000).run { fuzz in
            let tree = Self.object(&fuzz, depth: 0)
            let query = Self.parameters(tree, "").joined(separator: "&")
            fuzz.input = Array(query.utf8)
            try fuzz.checkEqual(try QueryTree(query).drawn, tree.drawn, "the tree")
        }
    }
}
