import Core
import EventLoop
import Foundation
import HTTPServer
import Testing

@testable import GatewayApp

@Suite("Errors of a new posting")
struct PostingErrorTests {
    /// contracts/01 §2, row 9: the client casts these of whatever JSON comes back.
    private func isCastable(_ answer: [String: Any]) -> Bool {
        answer["id"] as? Int == 0 && answer["name"] is String && answer["description"] is String
            && (answer["error"] as? [String: Any])?["status"] is Int && answer["data"] is NSNull
    }

    @Test("every refusal over HTTP can be cast by the stock client")
    func refusals() async throws {
        try await TestGateway.run { api in
            let owner = try await api.representative("owner")
            let nobody = try await api.register("nobody")
            let json: HTTPHeaders = ["Content-Type": "application/json"]
            let large = [UInt8](repeating: 0x20, count: (1 << 20) + 1)
            for (status, token, headers, body) in [
                (401, nil, json, Array("{}".utf8)), (401, "nonsense", json, Array("{}".utf8)),
                (400, owner, json, Array("{".utf8)), (400, owner, json, Array("{\"data\":{}}".utf8)),
                (403, nobody, json, Array("{\"data\":{\"name\":\"x\"}}".utf8)), (413, owner, json, large),
                (415, owner, ["Content-Type": "text/plain"], Array("x".utf8)),
                (415, owner, ["Content-Type": "application/json", "Content-Encoding": "br"], Array("x".utf8)),
            ] as [(Int, String?, HTTPHeaders, [UInt8])] {
                for path in ["/api/jobs", "/api/jobs/"] {
                    let answer = try await api.call(.post, path, token: token, headers: headers, body: body)
                    #expect(answer.status == status && isCastable(answer.object), "\(status): \(answer.text)")
                }
            }
            #expect(try await api.call(.delete, "/api/jobs/1", token: owner).object["id"] == nil)
            #expect(try await api.count("job_postings") == 0)
        }
    }

    @Test("so can every other error there is")
    func policy() async throws {
        try await TestGateway.run { api in try every(on: api.loop) }
    }

    private func every(on loop: EventLoop) throws {
        let policy = ErrorPolicy(log: .silent)
        let request = try HTTPRequest(.post, "/api/jobs", on: loop)
        let errors: [any Error] =
            AppError.Code.allCases.map { AppError($0, "No.", retryAfterSeconds: 1) }
            + [
                HTTPError(413, "Large."), HTTPError(408, "Slow."), CancellationError(),
                TestFailure("?"),
            ]
        for error in errors {
            let response = policy.response(to: error, request)
            guard case .bytes(let bytes) = response.body else { throw TestFailure("no body") }
            let answer = try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any] ?? [:]
            #expect(isCastable(answer), "\(error)")
        }
        let other = policy.response(to: AppError.notFound, try HTTPRequest(.get, "/api/jobs", on: loop))
        guard case .bytes(let bytes) = other.body else { throw TestFailure("no body") }
        #expect(!String(decoding: bytes, as: UTF8.self).contains("\"id\""))
    }
}
