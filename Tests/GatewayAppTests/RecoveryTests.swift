import Core
import Foundation
import GatewayApp
import Testing

@Suite("Forgotten passwords")
struct RecoveryTests {
    @Test("the answer and the work are the same whoever the address belongs to; only an account gets a mail")
    func forgotten() async throws {
        try await TestGateway.run { api in
            _ = try await api.register("ada")
            _ = try await api.register("bob")
            try await api.db.write.execute("UPDATE users SET blocked = true WHERE username = 'bob'")
            var statements: Set<Int> = []
            for address in ["ADA@example.org", "bob@example.org", "nobody@example.org"] {
                let before = api.db.statementsExecuted
                let answer = try await api.forget(address)
                statements.insert(api.db.statementsExecuted - before)
                #expect(answer.status == 200 && answer.text == #"{"ok":true}"#)
            }
            #expect(statements.count == 1)
            let items = try await api.db.short.first(
                "SELECT count(*) FROM work_items WHERE kind = 'send_account_mail'"
            ) { try $0.get(0, as: Int.self) }
            #expect(items == 3)
            #expect(try await api.mails().map(\.to) == ["ada@example.org"])
        }
    }

    @Test("a reset answers as a sign-in, takes the old password, and ends every session")
    func reset() async throws {
        try await TestGateway.run { api in
            let old = try await api.register("ada")
            _ = try await api.forget("ada@example.org")
            let code = try #require(try await api.mails().first?.token)
            let done = try await api.reset(code, "battery staple")
            let jwt = try #require(done["jwt"] as? String)
            #expect(done.status == 200 && done["user.username"] as? String == "ada")
            #expect(!done.text.contains("argon2"))
            try await api.guardian.refresh()
            #expect(try await api.call(.get, "/api/users/me", token: old).status == 401)
            #expect(try await api.call(.get, "/api/users/me", token: jwt).status == 200)
            #expect(try await api.signIn("ada").status == 400)
            #expect(try await api.signIn("ada", "battery staple").status == 200)
        }
    }

    @Test("a code is good once, for an hour, and only the latest; what is refused changes nothing")
    func codes() async throws {
        try await TestGateway.run { api in
            _ = try await api.register("ada")
            _ = try await api.forget("ada@example.org")
            _ = try await api.forget("ada@example.org")
            let codes = try await api.mails().map(\.token)
            #expect(codes.count == 2)
            for code in [codes[0], "nonsense", "", codes[1].lowercased(), codes[1] + "A", String(codes[1].dropLast())] {
                let refused = try await api.reset(code, "battery staple")
                #expect(refused.status == 400 && refused.problem == "Incorrect code provided")
                #expect(refused["error.name"] as? String == "ValidationError")
            }
            #expect(
                try await api.reset(codes[1], "battery staple", "battery stable").problem == "Passwords do not match")
            #expect(try await api.reset(codes[1], "short")["error.details.errors.0.path.0"] as? String == "password")
            #expect(try await api.signIn("ada").status == 200)
            #expect(try await api.reset(codes[1], "battery staple").status == 200)
            #expect(try await api.reset(codes[1], "another one").problem == "Incorrect code provided")

            _ = try await api.forget("ada@example.org")
            let late = try #require(try await api.mails().first?.token)
            api.clock.advance(seconds: 3601)
            try await api.guardian.refresh()
            #expect(try await api.reset(late, "another one").problem == "Incorrect code provided")
            #expect(try await api.signIn("ada", "battery staple").status == 200)
        }
    }

    @Test("of two uses of one code at once, one wins")
    func race() async throws {
        try await TestGateway.run { api in
            _ = try await api.register("ada")
            _ = try await api.forget("ada@example.org")
            let code = try #require(try await api.mails().first?.token)
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for number in 0..<8 { group.addTask { try await api.reset(code, "password \(number)").status } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(statuses.sorted() == [200] + Array(repeating: 400, count: 7))
        }
    }

    @Test("a code voids when the password changes, and is no good for a person who is blocked")
    func voided() async throws {
        try await TestGateway.run { api in
            let token = try await api.register("ada")
            _ = try await api.forget("ada@example.org")
            let code = try #require(try await api.mails().first?.token)
            // One more, which has not been sent when the password changes.
            _ = try await api.forget("ada@example.org")
            let body = ["password": "battery staple", "passwordConfirmation": "battery staple"]
            let changed = try await api.send(
                .post, "/api/auth/change-password", token: token,
                body.merging(["currentPassword": "correct horse"]) { $1 })
            #expect(changed.status == 200)
            #expect(try await api.reset(code, "another one").status == 400)
            #expect(try await api.mails().isEmpty)

            _ = try await api.forget("ada@example.org")
            let other = try #require(try await api.mails().first?.token)
            try await api.db.write.execute("UPDATE users SET blocked = true")
            #expect(try await api.reset(other, "another one").status == 400)
        }
    }

    @Test("one client address may ask so often a minute, and one mail address gets so many mails an hour")
    func limits() async throws {
        try await TestGateway.run(accounts: AccountSettings(requestsPerMinute: 3)) { api in
            for _ in 0..<3 { #expect(try await api.forget("ada@example.org").status == 200) }
            for (path, body) in [
                ("forgot-password", ["email": "a@example.org"]),
                ("send-email-confirmation", ["email": "a@example.org"]),
                ("reset-password", ["code": "x", "password": "secret", "passwordConfirmation": "secret"]),
            ] {
                let limited = try await api.send(.post, "/api/auth/\(path)", body)
                #expect(limited.status == 429 && limited["error.name"] as? String == "RateLimitError")
                #expect(limited.headers["Retry-After"] != nil)
            }
            api.clock.advance(seconds: 60)
            #expect(try await api.forget("ada@example.org").status == 200)
        }
        try await TestGateway.run { api in
            _ = try await api.register("ada")
            for _ in 0..<8 { #expect(try await api.forget("ada@example.org").status == 200) }
            #expect(try await api.mails().count == AccountMail.perAddressAndHourMax)
            api.clock.advance(seconds: 3601)
            #expect(try await api.forget("ada@example.org").status == 200)
            #expect(try await api.mails().count == 1)
        }
    }

    @Test("what is no address is refused with its path", arguments: ["", "nonsense", "a@b", "a\u{0}@example.org"])
    func noAddress(text: String) async throws {
        try await TestGateway.run { api in
            for path in ["forgot-password", "send-email-confirmation"] {
                let answer = try await api.send(.post, "/api/auth/\(path)", ["email": text])
                #expect(answer.status == 400 && answer["error.details.errors.0.path.0"] as? String == "email")
            }
        }
    }

    @Test("the page of a mailed link has a form that works without script, and shows what is wrong")
    func page() async throws {
        try await TestGateway.run { api in
            let made = try await api.send(
                .post, "/api/auth/local/register",
                ["username": "a<b>&\"c'", "email": "ada@example.org", "password": "correct horse"])
            #expect(made.status == 200)
            _ = try await api.forget("ada@example.org")
            let code = try #require(try await api.mails().first?.token)
            let page = try await api.call(.get, "/reset-password?code=\(code)")
            #expect(page.status == 200 && page.text.contains("a&lt;b&gt;&amp;&quot;c&#39;"))
            #expect(page.text.contains("name=\"code\" value=\"\(code)\""))
            let policy = try #require(page.headers["Content-Security-Policy"])
            #expect(policy.contains("default-src 'none'") && !policy.contains("unsafe") && !policy.contains("script"))
            #expect(page.headers["Referrer-Policy"] == "no-referrer" && page.headers["Cache-Control"] == "no-store")
            // Looking uses nothing up.
            #expect(try await api.call(.get, "/reset-password?code=\(code)").status == 200)

            let different = try await api.submit(
                "/reset-password", ["code": code, "password": "x y+z%&=é", "passwordConfirmation": "other one"])
            #expect(different.status == 400 && different.text.contains("Passwords do not match"))
            #expect(different.text.contains("<form"))
            let done = try await api.submit(
                "/reset-password", ["code": code, "password": "x y+z%&=é", "passwordConfirmation": "x y+z%&=é"])
            #expect(done.status == 200 && done.text.contains("Your password is changed") && !done.text.contains("jwt"))
            #expect(try await api.signIn("ada@example.org", "x y+z%&=é").status == 200)
            for target in ["/reset-password?code=\(code)", "/reset-password", "/reset-password?code=%3Cscript%3E"] {
                let gone = try await api.call(.get, target)
                #expect(gone.status == 400 && gone.text.contains("not good any more") && !gone.text.contains("<form"))
            }
            #expect(try await api.send(.post, "/reset-password", ["code": code]).status == 415)
        }
    }
}
