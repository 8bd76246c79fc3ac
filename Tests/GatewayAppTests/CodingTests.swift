import Foundation
import HTTPServer
import Testing

@testable import GatewayApp

@Suite("Bodies in a content coding")
struct CodingTests {
    @Test("a coding is refused with the one that is taken, by whatever reads the body; none by its name is taken")
    func codings() async throws {
        try await TestGateway.run { api in
            let token = try await api.register("ada")
            for (target, type) in [
                ("/api/auth/local", "application/json"), ("/api/upload", "multipart/form-data; boundary=B"),
                ("/api/companies", "multipart/form-data; boundary=B"),
                ("/reset-password", "application/x-www-form-urlencoded"),
            ] {
                for codings in [["gzip"], ["GZip"], ["identity, br"], ["identity", "deflate"], ["gzip;q=1"]] {
                    let answer = try await post(target, type, codings, token, api)
                    #expect(answer.status == 415 && answer.headers["Accept-Encoding"] == "identity", "\(target)")
                    #expect(answer["error.name"] as? String == "UnsupportedMediaTypeError")
                }
                for codings in [[], ["identity"], ["Identity , identity"], [""]] {
                    #expect(try await post(target, type, codings, token, api).status == 400, "\(target) \(codings)")
                }
            }
            // What has no body is in no coding.
            let none = try await api.call(.get, "/api/users/me", token: token, headers: ["Content-Encoding": "gzip"])
            #expect(none.status == 200)
        }
    }

    private func post(
        _ target: String, _ type: String, _ codings: [String], _ token: String, _ api: TestGateway
    ) async throws -> TestGateway.Answer {
        var headers: HTTPHeaders = ["Content-Type": type]
        for coding in codings { headers.add("Content-Encoding", coding) }
        return try await api.call(.post, target, token: token, headers: headers, body: [0x1F, 0x8B, 0x08])
    }
}
