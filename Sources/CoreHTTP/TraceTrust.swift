import HTTPServer
import ServiceKit

extension Traces {
    /// What the server of requests traces by.
    ///
    /// A client in the world may write any `traceparent`: it could fill a trace of ours with its own requests, or have
    /// all of them recorded. Whoever is believed about addresses is believed about traces too; others begin a new one,
    /// which has theirs as a link.
    public func serving(
        _ routes: [(method: HTTPMethod, pattern: String)], trusting networks: TrustedNetworks
    ) -> HTTPTracing {
        let incoming = incoming
        return HTTPTracing(tracer: tracer, routes: routes, ignoring: Health.frontDoorPath) { request in
            switch incoming {
            case .never: false
            case .proxy: networks.contains(request.peer.host)
            case .inside: networks.contains(request.clientAddress(trusting: networks))
            }
        }
    }
}
