import Core
import CoreHTTP
import Crypto
import EventLoop
import Foundation
import HTTPServer
import JSON
import ServiceKit

/// Register, sign in, refresh, log out, and one's own profile (contracts: Strapi's users-permissions routes).
struct AccountRoutes: Sendable {
    let parts: GatewayParts
    let signIn: SignIn
    let hashing: OffloadPool
    let links: MediaLinks
    let forms: FormReader
    private let answers: SignedInAnswers
    private let tokens: MailedToken
    let entries: EntryAnswers
    private let failures: RateLimiter
    private let registrations: RateLimiter

    init(
        parts: GatewayParts, signIn: SignIn, hashing: OffloadPool, links: MediaLinks, forms: FormReader,
        entries: EntryAnswers
    ) {
        self.parts = parts
        self.signIn = signIn
        self.hashing = hashing
        self.links = links
        self.forms = forms
        answers = SignedInAnswers(parts: parts, signIn: signIn)
        tokens = MailedToken(keys: parts.keys)
        self.entries = entries
        failures = RateLimiter(perMinute: parts.signInFailuresPerMinute, clock: parts.clock)
        registrations = RateLimiter(perMinute: parts.registrationsPerMinute, clock: parts.clock)
    }

    func register(on router: inout Router) {
        router.on(.post, "/api/auth/local", login)
        router.on(.post, "/api/auth/local/register", register)
        router.on(.post, "/api/auth/token", token)
        router.on(.post, "/api/auth/logout", logout)
        router.on(.post, "/api/auth/change-password", changePassword)
        router.on(.get, "/api/users/me", me)
        router.on(.put, "/api/users/me", bodyMax: FormReader.bodyMax(.profile), updateMe)
        router.on(.post, "/api/auth/local/profile", bodyMax: FormReader.bodyMax(.profile), updateMe)
    }

    @Sendable func register(_ request: HTTPRequest) async throws -> HTTPResponse {
        let fields = try await request.fields()
        let draft = try User.Draft(
            username: fields.required("username"), email: fields.required("email"),
            password: fields.required("password"),
            firstName: fields.string("first_name") ?? "", lastName: fields.string("last_name") ?? "",
            phoneNumber: fields.string("phone_number") ?? "")
        try registrations.take(request.clientNetwork(trusting: parts.trusted))
        let hash = try await hashing.run { [hasher = parts.hasher] in try hasher.hash(draft.password) }
        let user: User
        do {
            user = try await parts.users.create(
                draft, passwordHash: hash,
                confirmation: parts.accountSettings.emailConfirmation ? mailing() : nil)
        } catch let error as AppError where error.code == .conflict {
            // The clients know a clash as 400 ApplicationError.
            throw AppError(.refused, error.message)
        }
        guard user.confirmed || !parts.accountSettings.emailConfirmation else { return answers.user(user) }
        return try await answers.longSession(for: user, passwordHash: hash)
    }

    @Sendable func login(_ request: HTTPRequest) async throws -> HTTPResponse {
        let signedIn = try await authenticate(request, try await request.fields())
        let answer = try await answers.longSession(for: signedIn.user, passwordHash: signedIn.passwordHash)
        try await improveHash(signedIn)
        return answer
    }

    /// A short access token and a rotating refresh token, by password or by the former refresh token.
    @Sendable func token(_ request: HTTPRequest) async throws -> HTTPResponse {
        let fields = try await request.fields()
        let next = RefreshToken(random: parts.random)
        let session: Session
        if try fields.string("grant_type") == "refresh_token" {
            guard let former = RefreshToken(try fields.required("refresh_token")) else {
                throw AppError.unauthenticated
            }
            session = try await parts.sessions.rotate(
                refreshHash: former.digest, newRefreshHash: next.digest, now: parts.clock.now())
        } else {
            let signedIn = try await authenticate(request, fields)
            session = try await parts.sessions.start(
                .family, user: signedIn.user.id, passwordHash: signedIn.passwordHash, refreshHash: next.digest,
                expiresAt: answers.days(Session.familyDays))
            try await improveHash(signedIn)
        }
        let user = try await parts.users.find(session.userID)
        return .json(headers: ["Cache-Control": "no-store"]) { json in
            json.object { json in
                json.field("access_token", signIn.accessToken(for: session))
                json.field("token_type", "Bearer")
                json.field("expires_in", Session.accessTokenSeconds)
                json.field("refresh_token", next.text)
                json.object("user") { UserBody.write(user, to: &$0) }
            }
        }
    }

    @Sendable func logout(_ request: HTTPRequest) async throws -> HTTPResponse {
        let caller = try signIn.caller(of: request)
        try await parts.sessions.end(caller.session, user: caller.user)
        parts.guardian.end(caller.session, expiresAt: caller.expiresAt)
        return .noContent
    }

    @Sendable func changePassword(_ request: HTTPRequest) async throws -> HTTPResponse {
        let caller = try signIn.caller(of: request)
        let fields = try await request.fields()
        let current = try fields.required("currentPassword")
        let password = try User.acceptPassword(fields.required("password"))
        guard try fields.required("passwordConfirmation") == password else {
            throw AppError.invalid("passwordConfirmation", "Passwords do not match")
        }
        let hashes = try await limited("password \(caller.user)") {
            let stored = try await parts.users.passwordHash(of: caller.user)
            return try await hashing.run { [hasher = parts.hasher] () -> (former: String, new: String)? in
                guard let stored, try hasher.verify(current, against: stored) else { return nil }
                return (former: stored, new: try hasher.hash(password))
            }
        }
        guard let hashes else { throw Self.wrongPassword }
        guard current != password else {
            throw AppError.invalid("password", "Your new password must be different than your current password")
        }
        do {
            try await parts.users.setPassword(
                hashes.new, replacing: hashes.former, of: caller.user, endingSessionsExcept: nil)
        } catch let error as AppError where error.code == .conflict {
            // Another change was faster: what was sent is not the current password any more.
            throw Self.wrongPassword
        }
        parts.guardian.wake()
        return try await answers.longSession(for: try await parts.users.find(caller.user), passwordHash: hashes.new)
    }

    private static let wrongPassword = AppError.invalid(
        "currentPassword", "The provided current password is invalid")

    @Sendable func me(_ request: HTTPRequest) async throws -> HTTPResponse {
        let caller = try signIn.caller(of: request)
        return try await entries.flatOne(
            .user, caller.user.value, request, viewer: caller.user, headers: ["Cache-Control": "no-store"]
        ) { entry, json in
            guard case .user(let user) = entry.value else { return }
            Self.writeMore(user, to: &json)
        }
    }

    /// JSON, or a form with a picture in `profile`.
    @Sendable func updateMe(_ request: HTTPRequest) async throws -> HTTPResponse {
        let caller = try signIn.caller(of: request)
        let form = try await forms.read(request, files: ["profile": .profile])
        return try await form.keepingFiles { form in
            let change = try User.Change(
                username: form.fields.string("username"), email: form.fields.string("email"),
                firstName: form.fields.string("first_name"), lastName: form.fields.string("last_name"),
                phoneNumber: form.fields.string("phone_number"), timeZone: form.fields.string("time_zone"))
            let update: ProfileUpdate
            do {
                update = try await parts.users.update(
                    caller.user, change, picture: form.files["profile"], mailing: mailing())
            } catch let error as AppError where error.code == .conflict {
                // The clients know a clash as 400 ApplicationError.
                throw AppError(.refused, error.message)
            }
            return meAnswer(update.user, pendingEmail: update.pendingEmail)
        }
    }

    // MARK: Parts of the above

    /// A password that was right.
    private struct SignedIn {
        let user: User
        /// What it was checked against.
        let passwordHash: String
        /// One of today's cost, when the stored one is of another.
        let betterHash: String?
    }

    /// After the session has started: until then the stored hash is what proves that the password has not been changed.
    private func improveHash(_ signedIn: SignedIn) async throws {
        guard let better = signedIn.betterHash else { return }
        try await parts.users.rehashPassword(better, replacing: signedIn.passwordHash, of: signedIn.user.id)
    }

    /// The user behind a name and a password. How long it takes does not tell whether the name exists.
    private func authenticate(_ request: HTTPRequest, _ fields: Fields) async throws -> SignedIn {
        let identifier = try fields.required("identifier")
        let password = try fields.required("password")
        // For this address only: strangers elsewhere must not be able to lock the person out.
        let address = request.clientNetwork(trusting: parts.trusted)
        let signedIn = try await limited("\(address) \(identifier.lowercased().prefix(User.emailLengthMax))") {
            let known =
                identifier.utf8.contains(0) ? nil : try await parts.users.findForSignIn(identifier: identifier)
            return try await hashing.run { [hasher = parts.hasher] () -> SignedIn? in
                guard let known, let hash = known.passwordHash else {
                    try hasher.verifyUnknown(password)
                    return nil
                }
                guard try hasher.verify(password, against: hash) else { return nil }
                return SignedIn(
                    user: known.user, passwordHash: hash,
                    betterHash: hasher.needsRehash(hash) ? try hasher.hash(password) : nil)
            }
        }
        guard let signedIn else { throw AppError(.invalid, "Invalid identifier or password") }
        guard signedIn.user.confirmed || !parts.accountSettings.emailConfirmation else {
            throw AppError(.refused, "Your account email is not confirmed")
        }
        guard !signedIn.user.blocked else {
            throw AppError(.refused, "Your account has been blocked by an administrator")
        }
        return signedIn
    }

    /// Counts an attempt before its password is looked at, so that of many at once no more than the limit are; what was
    /// no wrong password (nil) does not count in the end.
    private func limited<T: Sendable>(_ key: String, _ attempt: () async throws -> T?) async throws -> T? {
        let reservation = try failures.take(key)
        do {
            guard let right = try await attempt() else { return nil }
            failures.giveBack(reservation)
            return right
        } catch {
            failures.giveBack(reservation)
            throw error
        }
    }

    private func mailing() -> AccountMailing { tokens.mailing(parts) }

    private func meAnswer(_ user: User, pendingEmail: String? = nil) -> HTTPResponse {
        .json(headers: ["Cache-Control": "no-store"]) { json in
            json.object { json in
                UserBody.write(user, to: &json)
                Self.writeMore(user, to: &json)
                // Ours: the address that waits for its confirmation. `email` is the present one until then.
                if let pendingEmail { json.field("pending_email", pendingEmail) }
            }
        }
    }

    /// What only oneself is shown, whatever was asked for: the stock client needs the role.
    private static func writeMore(_ user: User, to json: inout JSONWriter) {
        json.field("time_zone", user.timeZone)
        json.object("role") { UserBody.writeRole(user.role, to: &$0) }
    }
}
