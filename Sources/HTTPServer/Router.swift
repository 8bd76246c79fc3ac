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
        let handler: HTTPHandler
    }

    private struct Node {
        var fixed: [String: Int] = [:]
        var parameter: Int?
        var rest: Int?
        var routes: [Route] = []
    }

    private var nodes = [Node()]
    /// Paths without parameters, found at once.
    private var whole: [String: Int] = [:]

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
                let next = nodes[node].fixed[segment] ?? add()
                nodes[node].fixed[segment] = next
                node = next
            }
        }
        precondition(Set(names).count == names.count, "a name is twice in \(pattern)")
        precondition(!nodes[node].routes.contains { $0.method == method }, "\(method) \(pattern) is registered twice")
        nodes[node].routes.append(Route(method: method, names: names, bodyMax: bodyMax, handler: handler))
        if names.isEmpty { whole["/" + segments.joined(separator: "/")] = node }
        routes.append((method: method, pattern: pattern))
    }

    /// - Throws: `HTTPError` 404 and 405 (with `Allow`), and whatever the handler throws.
    public func handle(_ request: HTTPRequest) async throws -> HTTPResponse {
        if let node = whole[request.path] {
            return try await run(try route(node, request.method), request, values: [])
        }
        let segments = request.path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        // A trailing slash, and only one: `/a//` is not `/a`.
        let trimmed = segments.last?.isEmpty == true ? segments.dropLast() : segments
        var values: [Substring] = []
        guard let node = find(0, trimmed, &values) else {
            throw HTTPError(404, "There is nothing at this path.")
        }
        return try await run(try route(node, request.method), request, values: values)
    }

    private mutating func add() -> Int {
        nodes.append(Node())
        return nodes.count - 1
    }

    private func find(_ node: Int, _ segments: ArraySlice<Substring>, _ values: inout [Substring]) -> Int? {
        guard let segment = segments.first else {
            return nodes[node].routes.isEmpty ? nil : node
        }
        if let next = nodes[node].fixed[String(segment)], let found = find(next, segments.dropFirst(), &values) {
            return found
        }
        guard !segment.isEmpty else { return nil }
        let count = values.count
        if let next = nodes[node].parameter {
            values.append(segment)
            if let found = find(next, segments.dropFirst(), &values) { return found }
            values.removeSubrange(count...)
        }
        if let next = nodes[node].rest, let last = segments.last {
            values.append(segment.base[segment.startIndex..<last.endIndex])
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

    private func run(_ route: Route, _ request: HTTPRequest, values: [Substring]) async throws -> HTTPResponse {
        guard !values.isEmpty || route.bodyMax != nil else { return try await route.handler(request) }
        var request = request
        for (name, value) in zip(route.names, values) { request.parameters[name] = String(value) }
        if let bodyMax = route.bodyMax { request.body.max = bodyMax }
        return try await route.handler(request)
    }
}
