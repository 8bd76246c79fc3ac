import EventLoop

/// What a server has done since it began. Each loop counts for itself, without locks; `HTTPServer.measurements` adds
/// them up.
public struct HTTPMeasurements: Sendable {
    /// The answers of one route.
    public struct Route: Sendable {
        /// By the first digit of the status; at 0 are those whose client left before the end.
        public internal(set) var classes = [Int](repeating: 0, count: 6)
        /// From the request's head to the end of the answer.
        public internal(set) var durations = DurationCounts()
    }

    /// By the place of the route in `Router.routes`. Those behind the last that was asked for are missing.
    public internal(set) var routes: [Route] = []
    /// What no route answered: unknown paths and methods, and what was no request.
    public internal(set) var unrouted = Route()
    public internal(set) var requestsActive = 0
    public internal(set) var connectionsOpen = 0
    public internal(set) var connectionsAccepted = 0
    /// As they came and went, heads included; without what an upgraded connection carries.
    public internal(set) var receivedBytes = 0
    public internal(set) var sentBytes = 0

    mutating func ended(_ route: Int, status: Int, nanoseconds: UInt64) {
        let kind = min(max(status / 100, 0), 5)
        guard route >= 0 else {
            unrouted.classes[kind] += 1
            return unrouted.durations.record(nanoseconds: nanoseconds)
        }
        while routes.count <= route { routes.append(Route()) }
        routes[route].classes[kind] += 1
        routes[route].durations.record(nanoseconds: nanoseconds)
    }

    /// Told without having been a request.
    mutating func refused(status: Int) { unrouted.classes[min(max(status / 100, 0), 5)] += 1 }

    mutating func add(_ other: HTTPMeasurements) {
        while routes.count < other.routes.count { routes.append(Route()) }
        for (index, route) in other.routes.enumerated() { routes[index].add(route) }
        unrouted.add(other.unrouted)
        requestsActive += other.requestsActive
        connectionsOpen += other.connectionsOpen
        connectionsAccepted += other.connectionsAccepted
        receivedBytes += other.receivedBytes
        sentBytes += other.sentBytes
    }
}

extension HTTPMeasurements.Route {
    mutating func add(_ other: Self) {
        for index in classes.indices { classes[index] += other.classes[index] }
        durations.add(other.durations)
    }
}

extension HTTPLoop {
    func noteBegin(_ connection: HTTPConnection) {
        connection.beganAt = EventLoop.nanoseconds
        connection.status = 0
        connection.route = -1
        measured.requestsActive += 1
    }

    /// The answer has gone out, or nobody is left to take it.
    func noteEnd(_ connection: HTTPConnection) {
        guard connection.beganAt > 0 else { return }
        let took = EventLoop.nanoseconds &- connection.beganAt
        connection.beganAt = 0
        if let span = connection.span {
            connection.span = nil
            tracing?.end(span, route: Int(connection.route), status: connection.status)
        }
        measured.requestsActive -= 1
        measured.ended(Int(connection.route), status: connection.status, nanoseconds: took)
    }

    var measurements: HTTPMeasurements {
        var all = measured
        all.connectionsOpen = open
        all.connectionsAccepted = accepted
        return all
    }
}

extension HTTPServer {
    /// All loops together.
    public var measurements: HTTPMeasurements {
        get async {
            var all = HTTPMeasurements()
            for loop in loops { all.add(await loop.measurements) }
            return all
        }
    }
}
