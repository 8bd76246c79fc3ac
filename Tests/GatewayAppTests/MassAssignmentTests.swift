import Foundation
import Testing

@testable import GatewayApp

@Suite("What a client may not set, and what it may be called")
struct MassAssignmentTests {
    private static let greedy: [String: any Sendable] = [
        "id": 1, "role": "administrator", "confirmed": false, "blocked": true, "provider": "google",
        "confirmationToken": "x", "resetPasswordToken": "x", "password_hash": "x", "profile_media_id": 1,
        "createdAt": "2001-01-01T00:00:00Z",
    ]

    @Test("registering ignores what is not the person's to say")
    func register() async throws {
        try await TestGateway.run { api in
            _ = try await api.register("first")
            let mine =
                ["username": "ada", "email": "ada@example.org", "password": "correct horse"] as [String: any Sendable]
            let answer = try await api.send(.post, "/api/auth/local/register", Self.greedy.merging(mine) { $1 })
            #expect(answer.status == 200 && answer["user.id"] as? Int != 1)
            #expect(answer["user.confirmed"] as? Bool == true && answer["user.blocked"] as? Bool == false)
            #expect(answer["user.provider"] as? String == "local")
            let me = try await api.call(.get, "/api/users/me", token: answer["jwt"] as? String)
            #expect(me["role.type"] as? String == "authenticated")
            #expect(try await api.signIn("ada").status == 200)
        }
    }

    @Test("a profile ignores it too, and never shows the hash", arguments: [true, false])
    func profile(byForm: Bool) async throws {
        try await TestGateway.run { api in
            let token = try await api.register("ada")
            let greedy = Self.greedy.merging(["password": "another one"] as [String: any Sendable]) { $1 }
            let answer =
                byForm
                ? try await api.form(
                    "/api/auth/local/profile", token: token, texts: greedy.mapValues { "\($0)" })
                : try await api.send(.post, "/api/auth/local/profile", token: token, greedy)
            #expect(answer.status == 200 && answer["role.type"] as? String == "authenticated")
            #expect(answer["confirmed"] as? Bool == true && answer["blocked"] as? Bool == false)
            #expect(
                !answer.text.contains("argon2") && !answer.object.keys.contains { $0.lowercased().contains("pass") })
            #expect(try await api.signIn("ada").status == 200, "the password is not a field of the profile")
        }
    }

    @Test("names may have what people's names have, and come back as they were")
    func names() async throws {
        try await TestGateway.run { api in
            let hostile = [
                "a_b_c", "O'Brien \"Bo\"", "🦜🎉🦊", "x' OR '1'='1", "<script>alert(1)</script>", "\\u0041\\", "Ωmega é",
            ]
            for (number, name) in hostile.enumerated() {
                let long = String(String(repeating: name, count: 255).unicodeScalars.prefix(255))
                    .trimmingCharacters(in: .whitespaces)
                let made = try await api.send(
                    .post, "/api/auth/local/register",
                    [
                        "username": name, "email": "n\(number)@example.org", "password": "correct horse",
                        "first_name": long, "last_name": name, "phone_number": long,
                    ])
                #expect(made.status == 200, "\(name)")
                #expect(made["user.username"] as? String == name && made["user.first_name"] as? String == long)
                #expect(try await api.signIn(name)["user.last_name"] as? String == name)
            }
            for name in ["a\u{202E}b", "a\u{200B}b", "ada@example.org", String(repeating: "x", count: 51), "ab"] {
                let refused = try await api.send(
                    .post, "/api/auth/local/register",
                    ["username": name, "email": "r@example.org", "password": "correct horse"])
                #expect(refused["error.details.errors.0.path.0"] as? String == "username", "\(name)")
            }
        }
    }
}
