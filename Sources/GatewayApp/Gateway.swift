import Core
import CoreHTTP
import Crypto
import EventLoop
import HTTPServer
import SafeHTML
import ServiceKit

/// Everything the gateway's handlers use. Made once, in `main`.
public struct GatewayParts: Sendable {
    public let users: any UserRepository
    public let sessions: any SessionRepository
    public let entries: any EntryRepository
    public let companies: any CompanyRepository
    public let postings: any PostingRepository
    public let search: any PostingSearchRepository
    public let applications: any ApplicationRepository
    public let media: any MediaRepository
    public let cvs: any CVRepository
    public let rooms: any RoomRepository
    public let alerts: any AlertRepository
    public let accounts: any AccountRepository
    public let store: any ObjectStore
    public let keys: SigningKeys
    public let guardian: SessionGuard
    public let hasher: PasswordHasher
    public let clock: any ServiceClock
    public let random: any RandomSource
    public let metrics: Metrics
    public let log: Log
    /// The OpenAPI document, served as it is.
    public let openAPI: [UInt8]
    public let trusted: TrustedNetworks
    /// Wrong passwords a minute from one address for one name, and registrations a minute from one address.
    public let signInFailuresPerMinute: Int
    public let registrationsPerMinute: Int
    public let accountSettings: AccountSettings

    public init(
        users: any UserRepository, sessions: any SessionRepository, entries: any EntryRepository,
        companies: any CompanyRepository, postings: any PostingRepository, search: any PostingSearchRepository,
        applications: any ApplicationRepository, media: any MediaRepository, cvs: any CVRepository,
        rooms: any RoomRepository, alerts: any AlertRepository, accounts: any AccountRepository, store: any ObjectStore,
        keys: SigningKeys,
        guardian: SessionGuard, hasher: PasswordHasher = PasswordHasher(), clock: any ServiceClock,
        random: any RandomSource = SystemRandom(), metrics: Metrics, log: Log, openAPI: [UInt8],
        trusted: TrustedNetworks = .loopback, signInFailuresPerMinute: Int = 10, registrationsPerMinute: Int = 60,
        accountSettings: AccountSettings = AccountSettings()
    ) {
        self.users = users
        self.sessions = sessions
        self.entries = entries
        self.companies = companies
        self.postings = postings
        self.search = search
        self.applications = applications
        self.media = media
        self.cvs = cvs
        self.rooms = rooms
        self.alerts = alerts
        self.accounts = accounts
        self.store = store
        self.keys = keys
        self.guardian = guardian
        self.hasher = hasher
        self.clock = clock
        self.random = random
        self.metrics = metrics
        self.log = log
        self.openAPI = openAPI
        self.trusted = trusted
        self.signInFailuresPerMinute = signInFailuresPerMinute
        self.registrationsPerMinute = registrationsPerMinute
        self.accountSettings = accountSettings
    }
}

/// The REST API.
public struct Gateway: Sendable {
    /// Password hashing takes 19 MiB and tens of milliseconds each: so many at once, so many waiting; more are told to
    /// come back.
    static let hashingThreads = 2
    static let hashingWaitingMax = 64
    /// Descriptions that wait to be made safe, and CVs to be compared.
    static let rewritingWaitingMax = 256

    public let router: Router
    private let errors: ErrorPolicy

    public init(_ parts: GatewayParts) {
        let signIn = SignIn(signer: TokenSigner(keys: parts.keys), guardian: parts.guardian, clock: parts.clock)
        let hashing = OffloadPool(name: "hashing", threads: Self.hashingThreads, queueMax: Self.hashingWaitingMax)
        let rewriting = OffloadPool(name: "rewriting", threads: 1, queueMax: Self.rewritingWaitingMax)
        let links = MediaLinks(keys: parts.keys, clock: parts.clock)
        let store = GuardedStore(store: parts.store, log: parts.log)
        let forms = FormReader(store: store, random: parts.random, counts: UploadCounts(parts.metrics))
        let settling = UploadSettling(media: parts.media, clock: parts.clock, log: parts.log)
        let answers = EntryAnswers(entries: parts.entries, clock: parts.clock, links: links)
        var router = Router()
        AccountRoutes(parts: parts, signIn: signIn, hashing: hashing, links: links, forms: forms, entries: answers)
            .register(on: &router)
        RecoveryRoutes(parts: parts, answers: SignedInAnswers(parts: parts, signIn: signIn), hashing: hashing)
            .register(on: &router)
        CompanyRoutes(parts: parts, signIn: signIn, links: links, forms: forms, answers: answers).register(on: &router)
        PostingRoutes(parts: parts, signIn: signIn, links: links, rewriting: rewriting, answers: answers)
            .register(on: &router)
        SearchRoutes(search: parts.search, clock: parts.clock, links: links).register(on: &router)
        ApplicationRoutes(parts: parts, signIn: signIn, links: links, forms: forms, answers: answers)
            .register(on: &router)
        UploadRoutes(parts: parts, signIn: signIn, links: links, forms: forms, settling: settling, answers: answers)
            .register(on: &router)
        let missing = parts.metrics.counter(
            "martlet_media_objects_missing_total", "Files asked for whose content was not in the object store.")
        FileRoutes(
            media: parts.media, store: store, signIn: signIn, links: links, log: parts.log, missing: missing
        ).register(on: &router)
        CVRoutes(cvs: parts.cvs, signIn: signIn, comparing: rewriting).register(on: &router)
        RoomRoutes(rooms: parts.rooms, signIn: signIn).register(on: &router)
        AlertRoutes(alerts: parts.alerts, signIn: signIn).register(on: &router)
        PageRoutes(alerts: parts.alerts, tokens: UnsubscribeToken(keys: parts.keys), openAPI: parts.openAPI)
            .register(on: &router)
        self.router = router
        errors = ErrorPolicy(log: parts.log)
    }

    @Sendable public func handle(_ request: HTTPRequest) async throws -> HTTPResponse {
        do {
            return try await router.handle(request)
        } catch {
            return errors.response(to: error, request)
        }
    }

    /// For what is not even a request.
    @Sendable public func refuse(_ error: HTTPError) -> HTTPResponse { ErrorAnswer.response(error) }

    /// For what goes wrong outside of a handler: malformed requests.
    @Sendable public func answer(to error: any Error, _ request: HTTPRequest) -> HTTPResponse {
        errors.response(to: error, request)
    }
}

/// What a client is told of an error, and what the log is told.
struct ErrorPolicy: Sendable {
    let log: Log

    func response(to error: any Error, _ request: HTTPRequest) -> HTTPResponse {
        let beside = Self.beside(request)
        switch error {
        case let error as AppError:
            return ErrorAnswer.response(error, beside: beside)
        case let error as HTTPError:
            return ErrorAnswer.response(error, beside: beside)
        case is OffloadPool.Full:
            return ErrorAnswer.response(
                AppError(.unavailable, "The server is busy. Try again in a moment.", retryAfterSeconds: 1),
                beside: beside)
        case is CancellationError:
            return ErrorAnswer.response(AppError.unavailable, beside: beside)
        default:
            // The path may hold an id. A query could hold a token, so it stays out, as does the end of some paths.
            log.error(
                "request failed",
                [
                    "method": .string(request.method.rawValue), "path": .string(Self.logged(request.path)),
                    "error": .string(String(describing: error)),
                ])
            return ErrorAnswer.internalError(beside: beside)
        }
    }

    /// The stock client casts these three of whatever JSON answers a new posting, and ends when one is missing
    /// (contracts/01 §2, row 9).
    private static func beside(_ request: HTTPRequest) -> ErrorAnswer.Beside? {
        guard request.method == .post, request.path == "/api/jobs" || request.path == "/api/jobs/" else { return nil }
        return { message, json in
            json.field("id", 0)
            json.field("name", "")
            json.field("description", message)
        }
    }

    /// The path as a log may have it: the word of an unsubscribe link and the name of a file are left out.
    static func logged(_ path: String) -> String {
        for prefix in ["/unsubscribe/", "/uploads/"] where path.hasPrefix(prefix) { return prefix + "…" }
        return path
    }
}
