import HTTPServer
import SocketIO

/// The answers of Engine.IO over HTTP.
public enum EngineAnswer {
    static let text = "text/plain; charset=UTF-8"
    static let json = "application/json"

    /// A page of any origin may talk with us: who signs in does so by a token in a packet, never by a cookie.
    private static func headers(_ type: String, origin: String?) -> HTTPHeaders {
        var headers: HTTPHeaders = ["Content-Type": type, "Cache-Control": "no-store"]
        addAccess(to: &headers, origin)
        return headers
    }

    static func addAccess(to headers: inout HTTPHeaders, _ origin: String?) {
        guard let origin else { return }
        headers.add("Access-Control-Allow-Origin", origin)
        headers.add("Access-Control-Allow-Credentials", "true")
        headers.add("Vary", "Origin")
    }

    static func payload(_ packets: [EnginePacket], origin: String?) -> HTTPResponse {
        HTTPResponse(
            status: 200, headers: headers(text, origin: origin), body: .bytes(EnginePayload.encode(packets)))
    }

    static func ok(origin: String?) -> HTTPResponse {
        HTTPResponse(status: 200, headers: headers(text, origin: origin), body: .bytes(Array("ok".utf8)))
    }

    /// 400, with the reason as the reference server says it.
    /// - Parameter origin: of the request.
    public static func refusal(_ error: EngineError, origin: String?) -> HTTPResponse {
        HTTPResponse(status: 400, headers: headers(json, origin: origin), body: .bytes(error.body))
    }

    static func tooBig(origin: String?) -> HTTPResponse {
        HTTPResponse(
            status: 413, headers: headers(json, origin: origin),
            body: .bytes(Array(#"{"code":3,"message":"Payload too large"}"#.utf8)))
    }

    /// 503 where the process is full or ends, 429 where one address has too many.
    static func refusal(_ refusal: EngineCounts.Refusal, origin: String?) -> HTTPResponse {
        let status =
            switch refusal {
            case .address, .strangers: 429
            case .sessions, .ending: 503
            }
        return HTTPResponse(
            status: status, headers: headers(json, origin: origin),
            body: .bytes(Array(#"{"code":4,"message":"\#(refusal.rawValue)"}"#.utf8)))
    }

    /// To OPTIONS: what a browser asks before it sends a POST of another type.
    static func preflight(_ request: HTTPRequest) -> HTTPResponse {
        var headers: HTTPHeaders = [
            "Access-Control-Allow-Methods": "GET, POST", "Access-Control-Max-Age": "600", "Cache-Control": "no-store",
        ]
        addAccess(to: &headers, request.headers["Origin"])
        if let asked = request.headers["Access-Control-Request-Headers"] {
            headers.add("Access-Control-Allow-Headers", asked)
        }
        return HTTPResponse(status: 204, headers: headers)
    }
}
