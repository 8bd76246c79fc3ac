import Core

/// Puts values at their paths. Nodes lie in one array and name each other by index, so that a value that turns into a
/// list, or a list that turns into an object, is changed in place and counted once.
struct QueryTreeBuilder {
    /// In a list the place decides the order; `index` is what the query said, nil for `[]`.
    private struct Element {
        let place: Int
        let index: Int?
        let node: Int
    }

    private enum Node {
        case empty
        case null
        case text(String)
        case list([Element])
        case object([(name: String, node: Int)])
    }

    private let limits: QueryTree.Limits
    private var nodes: [Node] = [.object([])]

    init(limits: QueryTree.Limits) { self.limits = limits }

    /// - Parameter path: not empty, and the first of it a name.
    mutating func insert(_ value: String?, at path: [String]) throws(AppError) {
        var node = 0
        for (depth, segment) in path.enumerated() {
            let isLast = depth == path.count - 1
            node =
                switch depth == 0 ? nil : try index(segment, path) {
                case nil: try member(segment, of: node, path)
                case .next where isLast: try append(to: node, path)
                // `a[][b]` is the first of the list, as in qs.
                case .next: try element(0, of: node, isLast: false, path)
                case .at(let index): try element(index, of: node, isLast: isLast, path)
                }
        }
        try put(value, in: node, path)
    }

    func tree() -> QueryTree { tree(0) }

    /// As deep as the deepest name; that has a limit.
    private func tree(_ node: Int) -> QueryTree {
        switch nodes[node] {
        case .empty, .null: .null
        case .text(let text): .text(text)
        case .list(let elements): .list(elements.sorted { $0.place < $1.place }.map { tree($0.node) })
        case .object(let members): .object(members.map { QueryTree.Member(name: $0.name, value: tree($0.node)) })
        }
    }

    // MARK: Where

    private enum Index {
        case next
        case at(Int)
    }

    /// Nil for a name. `01` and `-1` are names, as in qs; a number beyond the limit is refused, where qs takes it as a
    /// name: a list of that length is what was meant.
    private func index(_ segment: String, _ path: [String]) throws(AppError) -> Index? {
        guard !segment.isEmpty else { return .next }
        guard segment.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            segment.utf8.first != UInt8(ascii: "0") || segment.utf8.count == 1
        else { return nil }
        guard segment.utf8.count <= 4, let index = Int(segment), index < limits.elementsMax else {
            throw .query(path, "The query has a list of more than \(limits.elementsMax).")
        }
        return .at(index)
    }

    /// The node of a name, made when it is not there.
    private mutating func member(_ name: String, of node: Int, _ path: [String]) throws(AppError) -> Int {
        switch nodes[node] {
        case .object(var members):
            if let present = members.first(where: { $0.name == name }) { return present.node }
            try count(members.count, path)
            let new = try add(path)
            members.append((name: name, node: new))
            nodes[node] = .object(members)
            return new
        case .empty:
            nodes[node] = .object([])
        case .null, .text:
            // A value that gets a member: both become elements of a list.
            let object = try append(to: node, path)
            nodes[object] = .object([])
            return try member(name, of: object, path)
        case .list(let elements):
            nodes[node] = .object(
                elements.sorted { $0.place < $1.place }.enumerated().map { (name: String($0), node: $1.node) })
        }
        return try member(name, of: node, path)
    }

    /// The node of an index.
    private mutating func element(
        _ index: Int, of node: Int, isLast: Bool, _ path: [String]
    ) throws(AppError) -> Int {
        guard case .list(let elements) = try list(node, path) else {
            return try member(String(index), of: node, path)
        }
        if let present = elements.first(where: { $0.place == index }) {
            switch nodes[present.node] {
            case .list where isLast && present.index != nil: return present.node
            case .list, .object: if !isLast { return present.node }
            case .empty, .null, .text: if isLast, present.index != nil { return present.node }
            }
            return try append(to: node, path)
        }
        try count(elements.count, path)
        let new = try add(path)
        nodes[node] = .list(elements + [Element(place: index, index: index, node: new)])
        return new
    }

    /// A new node at the end of a list, or of an object under the next number.
    private mutating func append(to node: Int, _ path: [String]) throws(AppError) -> Int {
        guard case .list(let elements) = try list(node, path) else {
            var number = 0
            if case .object(let members) = nodes[node] {
                while members.contains(where: { $0.name == String(number) }) { number += 1 }
            }
            return try member(String(number), of: node, path)
        }
        try count(elements.count, path)
        let new = try add(path)
        let place = (elements.map(\.place).max() ?? -1) + 1
        nodes[node] = .list(elements + [Element(place: place, index: nil, node: new)])
        return new
    }

    /// The node as a list, unless it is an object.
    private mutating func list(_ node: Int, _ path: [String]) throws(AppError) -> Node {
        switch nodes[node] {
        case .list, .object: break
        case .empty: nodes[node] = .list([])
        case .null, .text:
            let first = try add(path)
            nodes[first] = nodes[node]
            nodes[node] = .list([Element(place: 0, index: nil, node: first)])
        }
        return nodes[node]
    }

    // MARK: What

    private mutating func put(_ value: String?, in node: Int, _ path: [String]) throws(AppError) {
        let leaf: Node = if let value { .text(value) } else { .null }
        switch nodes[node] {
        case .empty: nodes[node] = leaf
        case .null, .text, .list: nodes[try append(to: node, path)] = leaf
        case .object:
            // `a[b]=2&a=1`: qs makes the value a name. One that is there already keeps its value beside the new.
            let named = try member(value ?? "", of: node, path)
            if case .empty = nodes[named] { nodes[named] = .text("true") }
        }
    }

    private mutating func add(_ path: [String]) throws(AppError) -> Int {
        guard nodes.count < limits.nodesMax else {
            throw .query(path, "The query has more than \(limits.nodesMax) values.")
        }
        nodes.append(.empty)
        return nodes.count - 1
    }

    private func count(_ count: Int, _ path: [String]) throws(AppError) {
        guard count < limits.elementsMax else {
            throw .query(path, "The query has a list of more than \(limits.elementsMax).")
        }
    }
}
