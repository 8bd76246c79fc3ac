import Core
import Foundation
import GatewayApp
import Testing

@Suite("Addresses that are confirmed")
struct EmailTests {
    private let confirming = AccountSettings(emailConfirmation: true, requestsPerMinute: 1000)

    @Test("with confirmation on, an account is signed in to once its address is confirmed")
    func confirmation() async throws {
        try await TestGateway.run(accounts: confirming) { api in
            let made = try await api.send(
                .post, "/api/auth/local/register",
                ["username": "ada", "email": "ada@example.org", "password": "correct horse", "confirmed": true])
            #expect(made.status == 200 && made.object.keys.sorted() == ["user"])
            #expect(made["user.confirmed"] as? Bool == false)
            let refused = try await api.signIn("ada")
            #expect(refused.status == 400 && refused["error.name"] as? String == "ApplicationError")
            #expect(refused.problem == "Your account email is not confirmed")
            let token = try await api.send(
                .post, "/api/auth/token", ["identifier": "ada", "password": "correct horse"])
            #expect(token.problem == "Your account email is not confirmed")
            // Who does not know the password is not told.
            #expect(try await api.signIn("ada", "wrong").problem == "Invalid identifier or password")

            let mail = try #require(try await api.mails().first)
            #expect(mail.to == "ada@example.org")
            #expect(
                try await api.call(.head, "/api/auth/email-confirmation?confirmation=\(mail.token)").status == 204)
            let done = try await api.call(.get, "/api/auth/email-confirmation?confirmation=\(mail.token)")
            #expect(done.status == 200 && done.text.contains("is confirmed"))
            #expect(try await api.signIn("ada")["user.confirmed"] as? Bool == true)
            let again = try await api.call(.get, "/api/auth/email-confirmation?confirmation=\(mail.token)")
            #expect(again.status == 400 && again.problem == "Invalid token")
        }
    }

    @Test("a confirmation leads on to the configured address; a browser is told of a bad token by a page")
    func redirect() async throws {
        let settings = AccountSettings(
            emailConfirmation: true, confirmedURL: "https://app.example.org/hello", requestsPerMinute: 1000)
        try await TestGateway.run(accounts: settings) { api in
            _ = try await api.send(
                .post, "/api/auth/local/register",
                ["username": "ada", "email": "ada@example.org", "password": "correct horse"])
            let token = try #require(try await api.mails().first?.token)
            let done = try await api.call(.get, "/api/auth/email-confirmation?confirmation=\(token)")
            #expect(done.status == 302 && done.headers["Location"] == "https://app.example.org/hello")
            for target in ["?confirmation=\(token)", "?confirmation=x", "", "?confirmation="] {
                let path = "/api/auth/email-confirmation" + target
                let refused = try await api.call(.get, path)
                #expect(refused.status == 400 && refused["error.name"] as? String == "ValidationError")
                let page = try await api.call(.get, path, headers: ["Accept": "text/html,*/*"])
                #expect(page.status == 400 && page.headers["Content-Type"]?.hasPrefix("text/html") == true)
            }
        }
    }

    @Test("the mailed page asks first, and its button confirms")
    func page() async throws {
        try await TestGateway.run(accounts: confirming) { api in
            _ = try await api.send(
                .post, "/api/auth/local/register",
                ["username": "ada", "email": "ada@example.org", "password": "correct horse"])
            let token = try #require(try await api.mails().first?.token)
            let page = try await api.call(.get, "/confirm-email?confirmation=\(token)")
            #expect(page.status == 200 && page.text.contains("ada@example.org") && page.text.contains("<form"))
            #expect(try await api.signIn("ada").status == 400)
            #expect(try await api.submit("/confirm-email", ["confirmation": token]).text.contains("is confirmed"))
            #expect(try await api.signIn("ada").status == 200)
            #expect(try await api.submit("/confirm-email", ["confirmation": token]).status == 400)
            // A token to confirm resets nothing.
            #expect(try await api.call(.get, "/reset-password?code=\(token)").status == 400)
        }
    }

    @Test("another confirmation mail goes to who needs one, and the answer tells nobody")
    func sendAgain() async throws {
        try await TestGateway.run(accounts: confirming) { api in
            for name in ["ada", "bob"] {
                _ = try await api.send(
                    .post, "/api/auth/local/register",
                    ["username": name, "email": "\(name)@example.org", "password": "correct horse"])
            }
            let first = try await api.mails()
            _ = try await api.call(.get, "/api/auth/email-confirmation?confirmation=\(first[1].token)")
            for name in ["ada", "bob", "nobody"] {
                let answer = try await api.send(
                    .post, "/api/auth/send-email-confirmation", ["email": "\(name)@Example.org"])
                #expect(answer.status == 200 && answer["sent"] as? Bool == true)
                #expect(answer["email"] as? String == "\(name)@example.org")
            }
            let second = try await api.mails()
            #expect(second.map(\.to) == ["ada@example.org"])
            // The latest one counts.
            let old = try await api.call(.get, "/api/auth/email-confirmation?confirmation=\(first[0].token)")
            #expect(old.problem == "Invalid token")
            let new = try await api.call(.get, "/api/auth/email-confirmation?confirmation=\(second[0].token)")
            #expect(new.status == 200)
        }
    }

    @Test("a reset confirms too: whoever reads the mail has the address")
    func resetConfirms() async throws {
        try await TestGateway.run(accounts: confirming) { api in
            _ = try await api.send(
                .post, "/api/auth/local/register",
                ["username": "ada", "email": "ada@example.org", "password": "correct horse"])
            _ = try await api.forget("ada@example.org")
            let code = try #require(try await api.mails().last?.token)
            #expect(try await api.reset(code, "battery staple")["user.confirmed"] as? Bool == true)
            #expect(try await api.signIn("ada", "battery staple").status == 200)
        }
    }

    @Test(
        "another address is the account's once it is confirmed, and the present one is told", arguments: [true, false])
    func change(byForm: Bool) async throws {
        try await TestGateway.run { api in
            let token = try await api.register("ada")
            // The stock client sends all five fields each time.
            let fields = [
                "username": "ada", "first_name": "Ada", "last_name": "L", "phone_number": "1",
                "email": "ADA@example.org",
            ]
            func save(_ email: String) async throws -> TestGateway.Answer {
                let texts = fields.merging(["email": email]) { $1 }
                return byForm
                    ? try await api.form("/api/auth/local/profile", token: token, texts: texts)
                    : try await api.send(.put, "/api/users/me", token: token, texts)
            }
            let same = try await save("ADA@Example.org")
            #expect(same.status == 200 && same["first_name"] as? String == "Ada" && same["pending_email"] == nil)
            #expect(try await api.mails().isEmpty)

            let asked = try await save("New@example.org")
            #expect(asked.status == 200 && asked["email"] as? String == "ada@example.org")
            #expect(asked["pending_email"] as? String == "new@example.org" && asked["role.name"] is String)
            let mails = try await api.mails()
            #expect(mails.map(\.to) == ["new@example.org", "ada@example.org"])
            #expect(mails.last?.content == .changeNotice(newAddress: "new@example.org"))
            #expect(try await api.signIn("new@example.org").status == 400)

            let page = try await api.call(.get, "/confirm-email?confirmation=\(mails[0].token)")
            #expect(page.text.contains("new@example.org") && page.text.contains("ada"))
            let done = try await api.call(.get, "/api/auth/email-confirmation?confirmation=\(mails[0].token)")
            #expect(done.status == 200 && done.text.contains("new@example.org"))
            #expect(try await api.signIn("new@example.org").status == 200)
            #expect(try await api.signIn("ada@example.org").status == 400)
            #expect(try await api.call(.get, "/api/users/me", token: token)["email"] as? String == "new@example.org")
        }
    }

    @Test("an address that is taken is asked for with the same answer, and only its owner is told")
    func taken() async throws {
        try await TestGateway.run { api in
            let token = try await api.register("ada")
            _ = try await api.register("bob")
            var answers: [Set<String>] = []
            var statements: Set<Int> = []
            for email in ["bob@example.org", "free@example.org"] {
                let before = api.db.statementsExecuted
                let answer = try await api.send(.put, "/api/users/me", token: token, ["email": email])
                statements.insert(api.db.statementsExecuted - before)
                #expect(answer.status == 200 && answer["email"] as? String == "ada@example.org")
                answers.append(Set(answer.object.keys))
            }
            #expect(statements.count == 1 && answers[0] == answers[1])
            let mails = try await api.mails()
            #expect(mails[0].to == "bob@example.org" && mails[0].content == .addressTaken)
            #expect(mails.count == 4)
            // Somebody takes it before it is confirmed.
            let free = try #require(mails.first { $0.to == "free@example.org" })
            _ = try await api.send(
                .post, "/api/auth/local/register",
                ["username": "eve", "email": "free@example.org", "password": "correct horse"])
            let late = try await api.call(.get, "/api/auth/email-confirmation?confirmation=\(free.token)")
            #expect(late.status == 400 && late["error.name"] as? String == "ApplicationError")
            #expect(late.problem == "Email or Username are already taken")
            #expect(try await api.signIn("ada@example.org").status == 200)
        }
    }

    @Test("a new password stops a change of address that somebody else has asked for")
    func stopped() async throws {
        try await TestGateway.run { api in
            let token = try await api.register("ada")
            _ = try await api.send(.put, "/api/users/me", token: token, ["email": "thief@example.org"])
            let change = try #require(try await api.mails().first { $0.to == "thief@example.org" })
            _ = try await api.send(.put, "/api/users/me", token: token, ["email": "thief2@example.org"])
            _ = try await api.forget("ada@example.org")
            let waiting = try await api.mails()
            let code = try #require(waiting.last?.token)
            _ = try await api.send(.put, "/api/users/me", token: token, ["email": "thief3@example.org"])
            #expect(try await api.reset(code, "battery staple").status == 200)
            #expect(try await api.mails().map(\.to) == ["ada@example.org"], "the notice goes, the change does not")
            for token in [change.token, waiting[0].token] {
                let refused = try await api.call(.get, "/api/auth/email-confirmation?confirmation=\(token)")
                #expect(refused.problem == "Invalid token")
            }
        }
    }

    @Test("no change without a notice: beyond the hour's notices the whole request is refused")
    func noticesUsedUp() async throws {
        try await TestGateway.run { api in
            let token = try await api.register("ada")
            for number in 0..<AccountMail.perAddressAndHourMax {
                let answer = try await api.send(
                    .put, "/api/users/me", token: token, ["email": "new\(number)@example.org"])
                #expect(answer.status == 200)
            }
            let refused = try await api.send(
                .put, "/api/users/me", token: token, ["email": "one-more@example.org", "first_name": "Eve"])
            #expect(refused.status == 429 && refused.headers["Retry-After"] != nil)
            #expect(try await api.call(.get, "/api/users/me", token: token)["first_name"] as? String == "")
            #expect(try await api.send(.put, "/api/users/me", token: token, ["first_name": "Eve"]).status == 200)
        }
    }
}
