import HTTPServer
import Postgres

extension Metrics {
    /// Shows what a server counts, by route: its pattern, never a path that somebody asked for.
    /// - Parameter routes: of the router that answers.
    public func show(_ server: HTTPServer, routes: [(method: HTTPMethod, pattern: String)]) {
        collect { Self.families(await server.measurements, routes) }
    }

    private static func families(
        _ measured: HTTPMeasurements, _ routes: [(method: HTTPMethod, pattern: String)]
    ) -> [MetricFamily] {
        var requests = MetricFamily(
            "martlet_http_requests_total", "Requests by route and class of status; aborted: the client left.", .counter)
        var seconds = MetricFamily(
            "martlet_http_request_seconds", "From a request's head to the end of its answer.", .histogram)
        func add(_ route: HTTPMeasurements.Route, _ method: String, _ pattern: String) {
            // A route that was asked has all classes, so that the first failure is a step and not a beginning.
            for (index, count) in route.classes.enumerated() where index != 1 || count > 0 {
                let name = index == 0 ? "aborted" : "\(index)xx"
                requests.add(count, ["method": method, "route": pattern, "class": name])
            }
            seconds.add(route.durations, ["method": method, "route": pattern])
        }
        for (route, (method, pattern)) in zip(measured.routes, routes) where route.classes.contains(where: { $0 > 0 }) {
            add(route, method.rawValue, pattern)
        }
        add(measured.unrouted, "any", "none")
        var all = [requests, seconds]
        func one(_ name: String, _ help: String, _ kind: MetricFamily.Kind, _ value: Int) {
            var family = MetricFamily(name, help, kind)
            family.add(value)
            all.append(family)
        }
        one("martlet_http_requests_active", "Requests being answered.", .gauge, measured.requestsActive)
        one("martlet_http_connections", "HTTP connections that are open.", .gauge, measured.connectionsOpen)
        one(
            "martlet_http_connections_total", "HTTP connections accepted, upgraded ones included.", .counter,
            measured.connectionsAccepted)
        one("martlet_http_received_bytes_total", "Bytes of requests.", .counter, measured.receivedBytes)
        one("martlet_http_sent_bytes_total", "Bytes of answers.", .counter, measured.sentBytes)
        return all
    }

    /// Shows what a database's lanes are doing.
    public func show(_ database: Database) {
        collect {
            let measured = await database.measurements
            return Self.lanes(measured) + Self.connections(measured)
        }
    }

    private static func lanes(_ measured: DatabaseMeasurements) -> [MetricFamily] {
        func family(
            _ name: String, _ help: String, _ kind: MetricFamily.Kind = .gauge, _ value: (LaneMeasurements) -> Int
        ) -> MetricFamily {
            var family = MetricFamily("martlet_postgres_" + name, help, kind)
            for lane in measured.lanes { family.add(value(lane), ["lane": lane.lane]) }
            return family
        }
        var waits = MetricFamily(
            "martlet_postgres_wait_seconds", "What statements and leases waited for a connection.", .histogram)
        var statements = MetricFamily(
            "martlet_postgres_statement_seconds", "From sending statements to their answer.", .histogram)
        for lane in measured.lanes {
            waits.add(lane.waits, ["lane": lane.lane])
            statements.add(lane.statements, ["lane": lane.lane])
        }
        return [
            waits, statements,
            family("connections", "Connections that are open.") { $0.connectionsOpen },
            family("connections_busy", "Connections in use.") { $0.connectionsBusy },
            family("connections_max", "Connections there may be.") { $0.connectionsMax },
            family("waiting", "Callers that wait for a connection.") { $0.waiting },
            family("failures_total", "Statements that failed, constraints that held included.", .counter) { $0.failed },
            family("refusals_total", "Callers turned away because no connection came free.", .counter) { $0.refused },
        ]
    }

    private static func connections(_ measured: DatabaseMeasurements) -> [MetricFamily] {
        var lost = MetricFamily(
            "martlet_postgres_connections_lost_total", "Connections that ended by themselves.", .counter)
        var failed = MetricFamily(
            "martlet_postgres_connect_failures_total", "Attempts to connect that failed.", .counter)
        for lane in measured.connections {
            lost.add(lane.lost, ["lane": lane.lane])
            failed.add(lane.connectFailed, ["lane": lane.lane])
        }
        return [lost, failed]
    }
}
