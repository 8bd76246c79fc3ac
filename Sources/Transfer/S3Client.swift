import Ccurl
import EventLoop
import Foundation

/// Where a bucket is, and who asks for it.
public struct S3Location: Sendable {
    public enum Style: String, Sendable, CaseIterable {
        /// `https://endpoint/bucket/key`: most servers that one runs oneself.
        case path
        /// `https://bucket.endpoint/key`: Amazon's.
        case virtual
    }

    /// `https://host` or `http://host:port`, without a path.
    public let endpoint: String
    public let region: String
    public let bucket: String
    public let style: Style
    public let accessKey: String
    public let secretKey: String

    /// - Parameters: are taken as they are; `StoreSettings` says what is wrong with them.
    public init(
        endpoint: String, region: String, bucket: String, style: Style, accessKey: String, secretKey: String
    ) {
        self.endpoint = endpoint
        self.region = region
        self.bucket = bucket
        self.style = style
        self.accessKey = accessKey
        self.secretKey = secretKey
    }

    /// What is connected to, as far as no proxy of libcurl's stands between.
    public var server: (host: String, port: Int) {
        let parts = URLComponents(string: endpoint)
        let host = parts?.host ?? ""
        let port = parts?.port ?? (parts?.scheme == "http" ? 80 : 443)
        return (style == .virtual ? "\(bucket).\(host)" : host, port)
    }

    /// - Parameter key: empty for the bucket itself.
    func url(key: String, query: [(name: String, value: String)]) -> String {
        var url = endpoint
        switch style {
        case .path: url += "/" + S3Client.encode(bucket, keeping: "")
        case .virtual:
            guard let host = endpoint.range(of: "://")?.upperBound else { break }
            url = endpoint[..<host] + bucket + "." + endpoint[host...]
        }
        if !key.isEmpty || style == .virtual { url += "/" + S3Client.encode(key, keeping: "/") }
        // libcurl 7.88 (Debian 12) signs a query as it stands: what the signature asks for (AWS Signature Version 4,
        // "canonical query string") is sorted by name and has a "=" after each name.
        let pairs = query.map { (S3Client.encode($0.name, keeping: ""), S3Client.encode($0.value, keeping: "")) }
        let text = pairs.sorted { $0.0 < $1.0 }.map { "\($0.0)=\($0.1)" }.joined(separator: "&")
        return text.isEmpty ? url : url + "?" + text
    }
}

/// What is to be done with an object or a bucket.
public struct S3Request: Sendable {
    public enum Body: Sendable {
        case none
        case bytes([UInt8])
        /// The first `count` bytes of an open file. It stays open, and as it is, until the answer is there.
        case file(descriptor: Int32, count: Int)

        var count: Int {
            switch self {
            case .none: 0
            case .bytes(let bytes): bytes.count
            case .file(_, let count): count
            }
        }
    }

    public let method: String
    /// Empty for the bucket itself.
    public let key: String
    public let query: [(name: String, value: String)]
    public let headers: [(name: String, value: String)]
    public let body: Body
    /// Of the body, in hexadecimal: it is signed, so that nothing can be changed on the way, TLS or not.
    public let sha256: String

    /// Of no bytes.
    public static let emptySHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

    public init(
        _ method: String, _ key: String, query: [(name: String, value: String)] = [],
        headers: [(name: String, value: String)] = [], body: Body = .none, sha256: String = Self.emptySHA256
    ) {
        self.method = method
        self.key = key
        self.query = query
        self.headers = headers
        self.body = body
        self.sha256 = sha256
    }
}

/// Requests to S3 (Amazon's "REST API", 2006-03-01), signed by libcurl (AWS Signature Version 4), one attempt each. A
/// transfer runs on a thread of the pool; connections are kept for the next one.
public struct S3Client: Sendable {
    public static let connectSecondsMax = 5
    /// For a request without a body to speak of.
    public static let secondsMaxDefault = 20
    /// For one that carries a part of an object, 8 MiB at 140 kB a second, and for one that begins or ends an upload in
    /// parts: putting them together takes a while.
    public static let bodySecondsMax = 60

    public let location: S3Location
    private let offload: OffloadPool
    private let handles: CurlHandles
    private let secondsMax: Int

    /// - Parameter secondsMax: for a request without a body to speak of; one with a body has its own, longer time.
    public init(
        _ location: S3Location, offload: OffloadPool, connectionsMax: Int = 8,
        secondsMax: Int = Self.secondsMaxDefault
    ) {
        self.location = location
        self.secondsMax = secondsMax
        self.offload = offload
        handles = CurlHandles(idleMax: connectionsMax)
    }

    /// Any answer of the server's, whatever its status.
    /// - Parameter bodyMax: bytes of the answer's body; more is a failure.
    /// - Throws: `HTTPClientError`; `OffloadPool.Full`.
    public func run(_ request: S3Request, bodyMax: Int) async throws -> HTTPClientResponse {
        let url = location.url(key: request.key, query: request.query)
        var lines = ["x-amz-content-sha256: \(request.sha256)"]
        for (name, value) in request.headers { lines.append("\(name): \(value)") }
        return try await offload.run { [handles, location, lines, secondsMax] in
            try handles.with { handle in
                handle.set(CURLOPT_URL, url)
                handle.set(CURLOPT_PROTOCOLS_STR, "http,https")
                handle.set(CURLOPT_FOLLOWLOCATION, 0)
                handle.set(CURLOPT_CONNECTTIMEOUT, Self.connectSecondsMax)
                let isLong = request.body.count > 1 << 16 || request.method == "POST"
                handle.set(CURLOPT_TIMEOUT, isLong ? Self.bodySecondsMax : secondsMax)
                handle.set(CURLOPT_AWS_SIGV4, "aws:amz:\(location.region):s3")
                handle.set(CURLOPT_USERNAME, location.accessKey)
                handle.set(CURLOPT_PASSWORD, location.secretKey)
                handle.set(CURLOPT_HTTPHEADER, lines)
                Self.prepare(handle, request)
                handle.receiveBytes(max: bodyMax)
                handle.receiveHeaders()
                try HTTPClient.check(handle.perform(), handle)
                return HTTPClientResponse(
                    status: handle.responseCode, headers: HTTPClient.fields(handle.headerLines), body: handle.received)
            }
        }
    }

    private static func prepare(_ handle: CurlHandle, _ request: S3Request) {
        switch request.method {
        case "GET": return
        case "HEAD": return handle.set(CURLOPT_NOBODY, 1)
        case "DELETE": return handle.set(CURLOPT_CUSTOMREQUEST, "DELETE")
        default: break
        }
        // An upload by another name rather than a POST: that would add a Content-Type, which libcurl does not sign.
        handle.set(CURLOPT_UPLOAD, 1)
        handle.set(CURLOPT_CUSTOMREQUEST, request.method)
        handle.set(CURLOPT_INFILESIZE_LARGE, request.body.count)
        switch request.body {
        case .none: handle.sendBytes([])
        case .bytes(let bytes): handle.sendBytes(bytes)
        case .file(let descriptor, let count): handle.sendFile(descriptor, count: count)
        }
        handle.rewindsBody()
    }

    /// RFC 3986's unreserved characters stay, as the signature asks for.
    static func encode(_ text: String, keeping others: String) -> String {
        var encoded: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                encoded.append(byte)
            case _ where others.utf8.contains(byte): encoded.append(byte)
            default:
                let digits = Array("0123456789ABCDEF".utf8)
                encoded += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: encoded, as: UTF8.self)
    }
}
