import Core
import CoreHTTP
import Crypto
import HTTPServer
import SafeHTML

/// Opening a page changes nothing, because programs that look through mail open every link; a button does.
extension RecoveryRoutes {
    @Sendable func resetPage(_ request: HTTPRequest) async throws -> HTTPResponse {
        let code = try QueryItems(request.query)["code"] ?? ""
        guard let token = try await token(code, [.reset]) else { return gonePage }
        return form(code, token, problem: nil)
    }

    @Sendable func resetByForm(_ request: HTTPRequest) async throws -> HTTPResponse {
        let fields = try await formFields(request)
        let code = fields["code"] ?? ""
        do {
            _ = try await reset(
                code: code, password: fields["password"] ?? "", repeated: fields["passwordConfirmation"] ?? "",
                request)
        } catch let error as AppError {
            guard let token = try await token(code, [.reset]) else { return gonePage }
            return Self.with(error, form(code, token, problem: error.message))
        }
        return HTMLPage.answer(
            "Your password is changed",
            """
            <h1>Your password is changed</h1>
            <p>You are signed out everywhere. Sign in with the new password.</p>
            """)
    }

    @Sendable func confirmPage(_ request: HTTPRequest) async throws -> HTTPResponse {
        let code = try QueryItems(request.query)["confirmation"] ?? ""
        guard let token = try await token(code, [.confirm, .change]) else { return gonePage }
        let sentence =
            token.purpose == .confirm
            ? "Is this your address?"
            : "Shall this be the address of the account <strong>"
                + "\(SafeHTML.escaped(token.username))</strong> from now on?"
        return HTMLPage.answer(
            "Confirm your address",
            """
            <h1>Confirm your address</h1>
            <p><strong>\(SafeHTML.escaped(token.email))</strong></p><p>\(sentence)</p>
            <form method="post" action="/confirm-email">
            <input type="hidden" name="confirmation" value="\(SafeHTML.escaped(code))">
            <button type="submit">Yes, confirm it</button></form>
            """)
    }

    @Sendable func confirmByForm(_ request: HTTPRequest) async throws -> HTTPResponse {
        let code = try await formFields(request)["confirmation"] ?? ""
        do {
            return confirmedPage(try await confirm(code, request))
        } catch let error as AppError {
            return error.code == .invalid ? gonePage : page(error, "This did not work")
        }
    }

    // MARK: Pages

    func confirmedPage(_ user: User) -> HTTPResponse {
        // Not a redirect: browsers hold a form's answer to the page's form-action.
        let onward = parts.accountSettings.confirmedURL.map {
            "<p><a href=\"\(SafeHTML.escaped($0))\">Go on</a></p>"
        }
        return HTMLPage.answer(
            "Your address is confirmed",
            """
            <h1>Your address is confirmed</h1>
            <p><strong>\(SafeHTML.escaped(user.email))</strong> is the address of your account.</p>\(onward ?? "")
            """)
    }

    /// An error with a page in place of its JSON.
    func page(_ error: AppError, _ title: String) -> HTTPResponse {
        Self.with(
            error, HTMLPage.answer(title, "<h1>\(title)</h1><p class=\"wrong\">\(SafeHTML.escaped(error.message))</p>"))
    }

    private static func with(_ error: AppError, _ page: HTTPResponse) -> HTTPResponse {
        let answer = ErrorAnswer.response(error)
        var page = page
        page.status = answer.status
        if let seconds = answer.headers["Retry-After"] { page.headers.set("Retry-After", seconds) }
        return page
    }

    private var gonePage: HTTPResponse {
        Self.with(
            AppError(.invalid, ""),
            HTMLPage.answer(
                "This link is not good any more",
                """
                <h1>This link is not good any more</h1>
                <p>It was used, it is too old, or a later mail has taken its place. Ask for another mail where you
                asked for this one.</p>
                """))
    }

    private func form(_ code: String, _ token: AccountToken, problem: String?) -> HTTPResponse {
        let wrong = problem.map { "<p class=\"wrong\" role=\"alert\">\(SafeHTML.escaped($0))</p>" } ?? ""
        // The name is there for programs that keep passwords.
        return HTMLPage.answer(
            "Choose a new password",
            """
            <h1>Choose a new password</h1>
            <p>For the account <strong>\(SafeHTML.escaped(token.username))</strong> (\(SafeHTML.escaped(token.email))).
            You are then signed out everywhere.</p>\(wrong)
            <form method="post" action="/reset-password">
            <input type="hidden" name="code" value="\(SafeHTML.escaped(code))">
            <input type="text" name="username" value="\(SafeHTML.escaped(token.email))" autocomplete="username" hidden>
            <label>New password<input type="password" name="password" autocomplete="new-password"
              minlength="\(User.passwordLengthMin)" required autofocus></label>
            <label>Once more<input type="password" name="passwordConfirmation" autocomplete="new-password"
              minlength="\(User.passwordLengthMin)" required></label>
            <button type="submit">Change it</button></form>
            """)
    }

    // MARK: What comes in

    private func token(_ code: String, _ purposes: [AccountToken.Purpose]) async throws -> AccountToken? {
        guard let hash = MailedToken.hash(of: code),
            let token = try await parts.accounts.find(hash: hash, now: parts.clock.now()),
            purposes.contains(token.purpose)
        else { return nil }
        return token
    }

    private func formFields(_ request: HTTPRequest) async throws -> QueryItems {
        guard request.mediaType == "application/x-www-form-urlencoded" else {
            throw AppError(.unsupportedType, "Send the form as application/x-www-form-urlencoded.")
        }
        try request.requirePlainBody()
        let bytes = try await request.body.collect(max: Self.formBytesMax)
        return try QueryItems(String(decoding: bytes, as: UTF8.self))
    }
}
