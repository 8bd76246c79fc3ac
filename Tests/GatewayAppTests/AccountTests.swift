import Foundation
import Testing

@testable import GatewayApp

@Suite("Accounts over HTTP")
struct AccountTests {
    @Test("register answers a token and the texts the client needs; login by address or name does too")
    func registerAndLogin() async throws {
        try await TestGateway.run { api in
            let made = try await api.send(
                .post, "/api/auth/local/register",
                ["username": "ada", "email": "Ada@Example.org", "password": "correct horse", "first_name": "Ada"])
            #expect(made.status == 200)
            #expect(made["user.email"] as? String == "ada@example.org")
            for name in ["username", "email", "first_name", "last_name", "phone_number"] {
                #expect(made["user.\(name)"] is String, "\(name)")
            }
            #expect(made["user.id"] is Int && made["jwt"] is String)
            for identifier in ["ADA@example.org", "ada"] {
                let login = try await api.send(
                    .post, "/api/auth/local/", ["identifier": identifier, "password": "correct horse"])
                #expect(login.status == 200 && login["jwt"] is String, "\(identifier)")
            }
        }
    }

    @Test("a clash is 400 ApplicationError, and makes no account", arguments: ["ada", "ADA"])
    func clash(name: String) async throws {
        try await TestGateway.run { api in
            _ = try await api.register("ada")
            let clash = try await api.send(
                .post, "/api/auth/local/register",
                ["username": name, "email": "other@example.org", "password": "correct horse"])
            #expect(clash.status == 400 && clash["error.name"] as? String == "ApplicationError")
            #expect(clash.problem == "Email or Username are already taken")
            #expect(try await api.count("users") == 1)
        }
    }

    @Test(
        "bad fields are 400 ValidationError with their path",
        arguments: [
            ("username", "ab" as any Sendable), ("username", 7), ("email", "nonsense"), ("password", "short"),
            ("email", NSNull()), ("first_name", ["x"]), ("username", "nul\u{0}byte"),
            ("first_name", String(repeating: "x", count: 256)),
        ])
    func badFields(field: String, value: any Sendable) async throws {
        try await TestGateway.run { api in
            var body: [String: Any] = ["username": "ada", "email": "ada@example.org", "password": "correct horse"]
            body[field] = value
            let answer = try await api.send(.post, "/api/auth/local/register", body)
            #expect(answer.status == 400 && answer["error.name"] as? String == "ValidationError")
            #expect(answer["error.details.errors.0.path.0"] as? String == field)
            #expect(try await api.count("users") == 0)
        }
    }

    @Test("a wrong password and an unknown name get the same answer, and too many of them a 429")
    func wrongPassword() async throws {
        try await TestGateway.run { api in
            _ = try await api.register("ada")
            let wrong = try await api.send(.post, "/api/auth/local", ["identifier": "ada", "password": "wrong"])
            let unknown = try await api.send(.post, "/api/auth/local", ["identifier": "nobody", "password": "wrong"])
            #expect(wrong.status == 400 && wrong.bytes == unknown.bytes)
            #expect(wrong.problem == "Invalid identifier or password")
            for _ in 0..<9 {
                _ = try await api.send(.post, "/api/auth/local", ["identifier": "ada", "password": "wrong"])
            }
            let limited = try await api.send(
                .post, "/api/auth/local", ["identifier": "ada", "password": "correct horse"])
            #expect(limited.status == 429 && limited.headers["Retry-After"] != nil)
            api.clock.advance(seconds: 60)
            try await api.guardian.refresh()
            let again = try await api.send(
                .post, "/api/auth/local", ["identifier": "ada", "password": "correct horse"])
            #expect(again.status == 200)
        }
    }

    @Test("of wrong passwords at once no more than the limit are looked at, and people elsewhere still get in")
    func parallelGuesses() async throws {
        try await TestGateway.run { api in
            _ = try await api.register("ada")
            @Sendable func guess(_ password: String, from address: String) async throws -> Int {
                let body = try JSONSerialization.data(withJSONObject: ["identifier": "ada", "password": password])
                return try await api.call(
                    .post, "/api/auth/local",
                    headers: ["Content-Type": "application/json", "X-Forwarded-For": address], body: Array(body)
                ).status
            }
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for number in 0..<40 { group.addTask { try await guess("wrong \(number)", from: "192.0.2.1") } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(statuses.filter { $0 == 400 }.count == 10 && statuses.filter { $0 == 429 }.count == 30)
            #expect(try await guess("correct horse", from: "192.0.2.1") == 429)
            #expect(try await guess("correct horse", from: "192.0.2.2") == 200)
        }
    }

    @Test("passwords that are right use nothing up")
    func rightPasswords() async throws {
        try await TestGateway.run { api in
            _ = try await api.register("ada")
            for _ in 0..<15 { #expect(try await api.signIn("ada").status == 200) }
        }
    }

    @Test("log-out ends the token at once; another session of the same person goes on")
    func logout() async throws {
        try await TestGateway.run { api in
            let first = try await api.register("ada")
            let second =
                try await api.send(
                    .post, "/api/auth/local", ["identifier": "ada", "password": "correct horse"])["jwt"] as? String
            #expect(try await api.call(.get, "/api/users/me", token: first).status == 200)
            #expect(try await api.call(.post, "/api/auth/logout", token: first).status == 204)
            #expect(try await api.call(.get, "/api/users/me", token: first).status == 401)
            #expect(try await api.call(.get, "/api/users/me", token: second).status == 200)
        }
    }

    @Test("a refresh token gives the next one; a replay after the grace ends the family")
    func refresh() async throws {
        try await TestGateway.run { api in
            _ = try await api.register("ada")
            let first = try await api.send(
                .post, "/api/auth/token", ["identifier": "ada", "password": "correct horse"])
            let old = try #require(first["refresh_token"] as? String)
            let second = try await api.send(
                .post, "/api/auth/token", ["grant_type": "refresh_token", "refresh_token": old])
            let next = try #require(second["refresh_token"] as? String)
            let access = try #require(second["access_token"] as? String)
            #expect(next != old && second["expires_in"] as? Int == 900)
            #expect(try await api.call(.get, "/api/users/me", token: access).status == 200)
            api.clock.advance(seconds: 61)
            try await api.guardian.refresh()
            let replay = try await api.send(
                .post, "/api/auth/token", ["grant_type": "refresh_token", "refresh_token": old])
            #expect(replay.status == 401)
            try await api.guardian.refresh()
            #expect(try await api.call(.get, "/api/users/me", token: access).status == 401)
            let after = try await api.send(
                .post, "/api/auth/token", ["grant_type": "refresh_token", "refresh_token": next])
            #expect(after.status == 401)
        }
    }

    @Test("changing the password takes the old one, ends every session, and gives a new token")
    func changePassword() async throws {
        try await TestGateway.run { api in
            let token = try await api.register("ada")
            let body = [
                "currentPassword": "wrong", "password": "battery staple", "passwordConfirmation": "battery staple",
            ]
            let refused = try await api.send(.post, "/api/auth/change-password", token: token, body)
            #expect(refused.status == 400 && refused.problem == "The provided current password is invalid")
            let same = try await api.send(
                .post, "/api/auth/change-password", token: token,
                [
                    "currentPassword": "correct horse", "password": "correct horse",
                    "passwordConfirmation": "correct horse",
                ])
            #expect(same.problem == "Your new password must be different than your current password")
            let changed = try await api.send(
                .post, "/api/auth/change-password", token: token,
                body.merging(["currentPassword": "correct horse"]) { $1 })
            let next = try #require(changed["jwt"] as? String)
            try await api.guardian.refresh()
            #expect(try await api.call(.get, "/api/users/me", token: token).status == 401)
            #expect(try await api.call(.get, "/api/users/me", token: next).status == 200)
        }
    }

    @Test("of changes of the password at once one is acknowledged, and its password is the one that works")
    func changesAtOnce() async throws {
        try await TestGateway.run { api in
            let token = try await api.register("ada")
            let answers = try await withThrowingTaskGroup(of: (password: String, status: Int).self) { group in
                for number in 0..<6 {
                    group.addTask {
                        let password = "battery staple \(number)"
                        let body = [
                            "currentPassword": "correct horse", "password": password, "passwordConfirmation": password,
                        ]
                        let answer = try await api.send(.post, "/api/auth/change-password", token: token, body)
                        return (password: password, status: answer.status)
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            let made = answers.filter { $0.status == 200 }
            #expect(made.count == 1 && answers.allSatisfy { [200, 400, 401].contains($0.status) }, "\(answers)")
            for (password, _) in answers + [(password: "correct horse", status: 400)] {
                let login = try await api.send(.post, "/api/auth/local", ["identifier": "ada", "password": password])
                #expect(login.status == (password == made.first?.password ? 200 : 400), "\(password)")
            }
        }
    }

    @Test("me is flat, with a role; a profile changes what it names and nothing else")
    func profile() async throws {
        try await TestGateway.run { api in
            let token = try await api.register("ada")
            let me = try await api.call(.get, "/api/users/me?populate=profile&populate=role", token: token)
            #expect(me["role.name"] as? String == "Authenticated" && me["role.description"] is String)
            let changed = try await api.send(
                .post, "/api/auth/local/profile", token: token,
                ["first_name": "Ada", "role": "administrator", "blocked": true, "confirmed": false])
            #expect(changed["first_name"] as? String == "Ada" && changed["username"] as? String == "ada")
            #expect(changed["role.type"] as? String == "authenticated" && changed["blocked"] as? Bool == false)
            let picture = try await api.form(
                "/api/auth/local/profile", token: token, texts: ["last_name": "L"],
                files: [("profile", "imagefile.jpg", [0xFF, 0xD8, 0xFF])])
            #expect(picture["last_name"] as? String == "L" && picture["role.name"] is String)
            #expect(api.storedFiles.count == 1)
        }
    }

    @Test("a second picture takes the first one's place, whose file is deleted by the queue")
    func pictures() async throws {
        try await TestGateway.run { api in
            let token = try await api.register("ada")
            for number in 0..<2 {
                let answer = try await api.form(
                    "/api/auth/local/profile", token: token, texts: ["last_name": "L\(number)"],
                    files: [("profile", "imagefile.jpg", [0xFF, 0xD8, UInt8(number)])])
                #expect(answer.status == 200)
            }
            #expect(try await api.count("media") == 1)
            let deletions = try await api.db.short.first(
                "SELECT count(*) FROM work_items WHERE kind = 'delete_files'"
            ) { try $0.get(0, as: Int64.self) }
            #expect(deletions == 1)
        }
    }

    @Test("fields that are wrong leave neither the picture nor a row of it")
    func pictureWithWrongFields() async throws {
        try await TestGateway.run { api in
            _ = try await api.register("bob")
            let token = try await api.register("ada")
            for texts in [["username": "x"], ["username": "BOB"], ["time_zone": "Mars/Olympus"]] {
                let answer = try await api.form(
                    "/api/auth/local/profile", token: token, texts: texts,
                    files: [("profile", "imagefile.jpg", [0xFF, 0xD8, 0xFF])])
                #expect(answer.status == 400)
            }
            #expect(api.storedFiles == [])
            #expect(try await api.count("media") == 0)
        }
    }

    @Test(
        "no header, a broken one and a strange token are 401",
        arguments: [
            nil, "", "Bearer", "Bearer a b", "Basic abc", "Bearer abc", "Bearer eyJhbGciOiJub25lIn0.eyJpZCI6MX0.",
        ])
    func unauthenticated(header: String?) async throws {
        try await TestGateway.run { api in
            let answer = try await api.call(
                .get, "/api/users/me", headers: header.map { ["Authorization": $0] } ?? [:])
            #expect(answer.status == 401 && answer.problem == "Missing or invalid credentials")
        }
    }
}
