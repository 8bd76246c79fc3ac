/// Answers a request, on the loop of its connection. It must not block.
public typealias HTTPHandler = @Sendable (HTTPRequest) async throws -> HTTPResponse

/// Finds the handler by method and path.
///
/// A pattern is `/api/jobs/:id/comments`, or ends in `*name` for whatever follows. A segment written out wins over a
/// `:name`, and that over `*name`. A trailing slash makes no difference. HEAD falls to GET.
public struct Router: Sendable {
    private struct Route {
        let method: HTTPMethod
        let names: [String]
        let bodyMax: Int?
        /// The place in `Router.routes`.
        let number: Int32
        let handler: HTTPHandler
    }

    /// A segment that is written out, as bytes: comparing them costs a fraction of hashing them.
    private struct Fixed {
        let bytes: [UInt8]
        let node: Int
    }

    private struct Node {
        var fixed: [Fixed] = []
        var parameter: Int?
        var rest: Int?
        var routes: [Route] = []

        func child(_ segment: Slice<UnsafeBufferPointer<UInt8>>) -> Int? {
            for fixed in fixed where fixed.bytes.count == segment.count && fixed.bytes.elementsEqual(segment) {
                return fixed.node
            }
            return nil
        }
    }

    private var nodes = [Node()]

    /// What was registered, in order: method and pattern.
    public private(set) var routes: [(method: HTTPMethod, pattern: String)] = []

    public init() {}

    /// - Parameters:
    ///   - pattern: starts with a slash; each `:name` once.
    ///   - bodyMax: bytes of body that the handler may read, instead of the server's limit.
    public mutating func on(
        _ method: HTTPMethod, _ pattern: String, bodyMax: Int? = nil, _ handler: @escaping HTTPHandler
    ) {
        precondition(pattern.hasPrefix("/"), "the pattern \(pattern) does not start with a slash")
        var names: [String] = []
        var node = 0
        let segments = pattern.split(separator: "/").map(String.init)
        for (index, segment) in segments.enumerated() {
            if segment.hasPrefix(":") {
                names.append(String(segment.dropFirst()))
                let next = nodes[node].parameter ?? add()
                nodes[node].parameter = next
                node = next
            } else if segment.hasPrefix("*") {
                precondition(index == segments.count - 1, "\(segment) is not the last segment of \(pattern)")
                names.append(String(segment.dropFirst()))
                let next = nodes[node].rest ?? add()
                nodes[node].rest = next
                node = next
            } else {
                let bytes = Array(segment.utf8)
                if let next = nodes[node].fixed.first(where: { $0.bytes == bytes })?.node {
                    node = next
                } else {
                    let next = add()
                    nodes[node].fixed.append(Fixed(bytes: bytes, node: next))
                    node = next
                }
            }
        }
        precondition(Set(names).count == names.count, "a name is twice in \(pattern)")
        precondition(!nodes[node].routes.contains { $0.method == method }, "\(method) \(pattern) is registered twice")
        nodes[node].routes.append(
            Route(
                method: method, names: names, bodyMax: bodyMax, number: Int32(routes.count), handler: handler))
        routes.append((method: method, pattern: pattern))
    }

    /// - Throws: `HTTPError` 404 and 405 (with `Allow`), and whatever the handler throws.
    public func handle(_ request: HTTPRequest) async throws -> HTTPResponse {
        var path = request.path
        var values: [String] = []
        let node = path.withUTF8 { bytes in
            // A trailing slash, and only one: `/a//` is not `/a`. The root is nothing else.
            let end = bytes.last == Self.slash ? bytes.count - 1 : bytes.count
            return find(0, bytes, 0, end, &values)
        }
        guard let node else { throw HTTPError(404, "There is nothing at this path.") }
        let route = try route(node, request.method)
        request.head.route.store(route.number, ordering: .relaxed)
        // No asynchronous function stands between here and the handler: each costs a look-up of its executor.
        guard !values.isEmpty || route.bodyMax != nil else { return try await route.handler(request) }
        var request = request
        for (name, value) in zip(route.names, values) { request.parameters[name] = value }
        if let bodyMax = route.bodyMax { request.body.max = bodyMax }
        return try await route.handler(request)
    }

    private mutating func add() -> Int {
        nodes.append(Node())
        return nodes.count - 1
    }

    private static let slash = UInt8(ascii: "/")

    /// - Parameter start: where the slash before the next segment is; `end` when there is none.
    private func find(
        _ node: Int, _ path: UnsafeBufferPointer<UInt8>, _ start: Int, _ end: Int, _ values: inout [String]
    ) -> Int? {
        if start >= end { return nodes[node].routes.isEmpty ? nil : node }
        let first = start + 1
        let last = path[first..<end].firstIndex(of: Self.slash) ?? end
        guard path[start] == Self.slash, last > first else { return nil }
        if let next = nodes[node].child(path[first..<last]), let found = find(next, path, last, end, &values) {
            return found
        }
        let count = values.count
        if let next = nodes[node].parameter {
            values.append(String(decoding: path[first..<last], as: UTF8.self))
            if let found = find(next, path, last, end, &values) { return found }
            values.removeSubrange(count...)
        }
        if let next = nodes[node].rest {
            values.append(String(decoding: path[first..<end], as: UTF8.self))
            return next
        }
        return nil
    }

    private func route(_ node: Int, _ method: HTTPMethod) throws(HTTPError) -> Route {
        let routes = nodes[node].routes
        for route in routes where route.method == method { return route }
        if method == .head {
            for route in routes where route.method == .get { return route }
        }
        let present = Set(routes.map(\.method))
        let allowed = HTTPMethod.allowed.filter { present.contains($0) || ($0 == .head && present.contains(.get)) }
        throw HTTPError(
            405, "This path does not know the method \(method).",
            headers: ["Allow": allowed.map(\.rawValue).joined(separator: ", ")])
    }
}
