import Ccurl
import EventLoop
import Foundation

/// An answer of a server. Header names are lower-case; a name that came twice has its values in order.
public struct HTTPClientResponse: Sendable, Equatable {
    public let status: Int
    public let headers: [String: [String]]
    public let body: [UInt8]
}

public enum HTTPClientError: Error, Equatable, Sendable {
    /// The URL is none, or of another scheme than http and https.
    case badURL
    /// A header with a line break or another control character.
    case badHeader
    case bodyTooLarge
    case timedOut
    /// No connection, no TLS, a broken answer; libcurl's words.
    case failed(String)
}

/// GET and POST with limits. Redirects are answers like others: whoever follows one decides about its address again.
public struct HTTPClient: Sendable {
    public static let bodyBytesMax = 8 << 20
    public static let headerLinesMax = 200
    public static let connectSecondsMax = 10
    public static let totalSecondsMax = 30

    private let offload: OffloadPool
    private let handles: CurlHandles

    public init(offload: OffloadPool, connectionsMax: Int = 8) {
        self.offload = offload
        handles = CurlHandles(idleMax: connectionsMax)
    }

    public func get(
        _ url: String, headers: [(String, String)] = [], bodyMax: Int = Self.bodyBytesMax,
        secondsMax: Int = Self.totalSecondsMax
    ) async throws -> HTTPClientResponse {
        try await run(url, headers: headers, body: nil, bodyMax: bodyMax, secondsMax: secondsMax)
    }

    public func post(
        _ url: String, headers: [(String, String)] = [], body: [UInt8], bodyMax: Int = Self.bodyBytesMax,
        secondsMax: Int = Self.totalSecondsMax
    ) async throws -> HTTPClientResponse {
        try await run(url, headers: headers, body: body, bodyMax: bodyMax, secondsMax: secondsMax)
    }

    private func run(
        _ url: String, headers: [(String, String)], body: [UInt8]?, bodyMax: Int, secondsMax: Int
    ) async throws -> HTTPClientResponse {
        guard let parts = URLComponents(string: url), ["http", "https"].contains(parts.scheme?.lowercased() ?? ""),
            parts.host?.isEmpty == false, url.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { throw HTTPClientError.badURL }
        var lines: [String] = []
        for (name, value) in headers {
            guard !name.isEmpty, name.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: ":") }),
                value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
            else { throw HTTPClientError.badHeader }
            // libcurl takes "Name:" as the wish to drop a header, and "Name;" as the empty one.
            lines.append(value.isEmpty ? "\(name);" : "\(name): \(value)")
        }
        return try await offload.run { [handles, lines] in
            try handles.with { handle in
                handle.set(CURLOPT_URL, url)
                handle.set(CURLOPT_PROTOCOLS_STR, "http,https")
                handle.set(CURLOPT_FOLLOWLOCATION, 0)
                handle.set(CURLOPT_CONNECTTIMEOUT, min(Self.connectSecondsMax, secondsMax))
                handle.set(CURLOPT_TIMEOUT, secondsMax)
                if let body {
                    handle.set(CURLOPT_POST, 1)
                    handle.set(CURLOPT_POSTFIELDSIZE, body.count)
                    handle.sendBytes(body)
                }
                // "Expect:" is dropped: it costs a round trip, and many servers leave it unanswered.
                handle.set(CURLOPT_HTTPHEADER, lines + ["Expect:"])
                handle.receiveBytes(max: bodyMax)
                handle.receiveHeaders()
                try Self.check(handle.perform(), handle)
                return HTTPClientResponse(
                    status: handle.responseCode, headers: Self.fields(handle.headerLines), body: handle.received)
            }
        }
    }

    static func check(_ code: CURLcode, _ handle: CurlHandle) throws {
        switch code {
        case CURLE_OK: return
        case CURLE_WRITE_ERROR: throw HTTPClientError.bodyTooLarge
        case CURLE_OPERATION_TIMEDOUT: throw HTTPClientError.timedOut
        default: throw HTTPClientError.failed(handle.message(code))
        }
    }

    /// The fields of the last head: an interim 100 has one of its own before it.
    static func fields(_ lines: [String]) -> [String: [String]] {
        var fields: [String: [String]] = [:]
        for line in lines {
            if line.hasPrefix("HTTP/") {
                fields = [:]
                continue
            }
            guard let colon = line.firstIndex(of: ":") else { continue }
            let value = line[line.index(after: colon)...].trimmingCharacters(in: .whitespacesAndNewlines)
            fields[line[..<colon].lowercased(), default: []].append(value)
        }
        return fields
    }
}
