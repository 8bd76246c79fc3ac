import Core
import CoreHTTP
import Crypto
import EventLoop
import HTTPServer

/// A forgotten password, and addresses that are confirmed: Strapi's routes, and the pages that mailed links lead to
/// where there is no front end for them.
struct RecoveryRoutes: Sendable {
    /// A form has a token and two passwords.
    static let formBytesMax = 8 * 1024

    let parts: GatewayParts
    let answers: SignedInAnswers
    let hashing: OffloadPool
    let tokens: MailedToken
    private let requests: RateLimiter

    init(parts: GatewayParts, answers: SignedInAnswers, hashing: OffloadPool) {
        self.parts = parts
        self.answers = answers
        self.hashing = hashing
        tokens = MailedToken(keys: parts.keys)
        requests = RateLimiter(perMinute: parts.accountSettings.requestsPerMinute, clock: parts.clock)
    }

    func register(on router: inout Router) {
        router.on(.post, "/api/auth/forgot-password", forgotPassword)
        router.on(.post, "/api/auth/reset-password", resetPassword)
        router.on(.get, "/api/auth/email-confirmation", emailConfirmation)
        router.on(.post, "/api/auth/send-email-confirmation", sendEmailConfirmation)
        router.on(.get, "/reset-password", resetPage)
        router.on(.post, "/reset-password", resetByForm)
        router.on(.get, "/confirm-email", confirmPage)
        router.on(.post, "/confirm-email", confirmByForm)
    }

    // MARK: The API

    /// The same answer, by the same work, whoever the address belongs to.
    @Sendable func forgotPassword(_ request: HTTPRequest) async throws -> HTTPResponse {
        let email = try User.acceptEmail(try await request.fields().required("email"))
        try limit(request)
        try await parts.accounts.ask(.reset, address: email, tokens.mailing(parts))
        return .json { json in json.object { $0.field("ok", true) } }
    }

    @Sendable func resetPassword(_ request: HTTPRequest) async throws -> HTTPResponse {
        let fields = try await request.fields()
        let (user, hash) = try await reset(
            code: fields.required("code"), password: fields.required("password"),
            repeated: fields.required("passwordConfirmation"), request)
        return try await answers.longSession(for: user, passwordHash: hash)
    }

    /// As of a contract's client, or of a link in a browser: to the configured address, or to a page.
    @Sendable func emailConfirmation(_ request: HTTPRequest) async throws -> HTTPResponse {
        let isBrowser = request.headers["Accept"]?.contains("text/html") == true
        do {
            guard let token = try QueryItems(request.query)["confirmation"] else {
                throw AppError.invalid("confirmation", "confirmation is required")
            }
            // Who only asks what a link would say uses nothing up.
            guard request.method != .head else { return HTTPResponse(status: 204) }
            let user = try await confirm(token, request)
            guard let url = parts.accountSettings.confirmedURL else { return confirmedPage(user) }
            return HTTPResponse(
                status: 302,
                headers: ["Location": url, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer"])
        } catch let error as AppError where isBrowser {
            return page(error, "This did not work")
        }
    }

    /// Strapi tells who is confirmed already, or blocked; that is nobody's business.
    @Sendable func sendEmailConfirmation(_ request: HTTPRequest) async throws -> HTTPResponse {
        let email = try User.acceptEmail(try await request.fields().required("email"))
        try limit(request)
        try await parts.accounts.ask(.confirm, address: email, tokens.mailing(parts))
        return .json { json in
            json.object { json in
                json.field("email", email)
                json.field("sent", true)
            }
        }
    }

    // MARK: Parts of both

    /// - Returns: the person, and the hash of the new password.
    func reset(
        code: String, password: String, repeated: String, _ request: HTTPRequest
    ) async throws -> (user: User, passwordHash: String) {
        let password = try User.acceptPassword(password)
        guard repeated == password else { throw AppError.invalid("passwordConfirmation", "Passwords do not match") }
        try limit(request)
        // Hashing is dear, so it is for those who have a good token.
        guard let token = MailedToken.hash(of: code),
            try await parts.accounts.find(hash: token, now: parts.clock.now())?.purpose == .reset
        else { throw AppError.wrongResetCode }
        let hash = try await hashing.run { [hasher = parts.hasher] in try hasher.hash(password) }
        let user = try await parts.accounts.reset(hash: token, passwordHash: hash, now: parts.clock.now())
        parts.guardian.wake()
        return (user, hash)
    }

    func confirm(_ token: String, _ request: HTTPRequest) async throws -> User {
        try limit(request)
        guard let hash = MailedToken.hash(of: token) else { throw AppError.wrongConfirmation }
        do {
            return try await parts.accounts.confirm(hash: hash, now: parts.clock.now())
        } catch let error as AppError where error.code == .conflict {
            throw AppError(.refused, error.message)
        }
    }

    private func limit(_ request: HTTPRequest) throws(AppError) {
        try requests.take(request.clientNetwork(trusting: parts.trusted))
    }
}
