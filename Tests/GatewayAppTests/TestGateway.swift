import Core
import CoreHTTP
import CorePostgres
import Crypto
import EventLoop
import Foundation
import GatewayApp
import HTTPServer
import MediaStore
import Postgres
import ServiceKit
import TestSupport

/// The real gateway on a database and a folder of the test's own, called without sockets.
struct TestGateway {
    let db: Database
    let gateway: Gateway
    let guardian: SessionGuard
    let clock: ManualClock
    let loop: EventLoop
    let folder: String

    struct Answer {
        let status: Int
        let headers: HTTPHeaders
        let bytes: [UInt8]

        var json: Any? { try? JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed) }
        var object: [String: Any] { json as? [String: Any] ?? [:] }
        var list: [[String: Any]] { json as? [[String: Any]] ?? [] }
        /// `a.b.0.c` of the document.
        subscript(path: String) -> Any? {
            path.split(separator: ".").reduce(json) { value, key in
                if let index = Int(key) {
                    guard let array = value as? [Any], array.indices.contains(index) else { return nil }
                    return array[index]
                }
                return (value as? [String: Any])?[String(key)]
            }
        }
        var text: String { String(decoding: bytes, as: UTF8.self) }
        var problem: String { self["error.message"] as? String ?? "" }
    }

    static func run(
        accounts: AccountSettings = AccountSettings(requestsPerMinute: 1000), quota: Media.Quota = Media.Quota(),
        _ body: (TestGateway) async throws -> Void
    ) async throws {
        try await withTestDatabase { db, test in
            let folder = FileManager.default.temporaryDirectory.appendingPathComponent("store-\(test.name)").path
            defer { try? FileManager.default.removeItem(atPath: folder) }
            let clock = ManualClock(Date())
            let guardian = SessionGuard(sessions: PostgresSessions(db: db), clock: clock, log: .silent)
            try await guardian.refresh()
            let files = OffloadPool(name: "files", threads: 1, queueMax: 64)
            defer { files.stop() }
            let gateway = Gateway(
                GatewayParts(
                    users: PostgresUsers(db: db), sessions: PostgresSessions(db: db), entries: PostgresEntries(db: db),
                    companies: PostgresCompanies(db: db), postings: PostgresPostings(db: db),
                    search: PostgresSearch(db: db), applications: PostgresApplications(db: db),
                    media: PostgresMedia(db: db, quota: quota), cvs: PostgresCVs(db: db),
                    rooms: PostgresRooms(db: db), alerts: PostgresAlerts(db: db),
                    accounts: PostgresAccounts(db: db), store: try FolderStore(root: folder, offload: files),
                    keys: try SigningKeys(secrets: [String(repeating: "k", count: 32)]), guardian: guardian,
                    // The cheapest the library takes: these tests are not about hashing.
                    hasher: PasswordHasher(parameters: .init(memoryKiB: 64, iterations: 1, lanes: 1)), clock: clock,
                    metrics: Metrics(), log: .silent, openAPI: Array("{}".utf8), accountSettings: accounts))
            try await body(
                TestGateway(
                    db: db, gateway: gateway, guardian: guardian, clock: clock, loop: test.loops.loops[0],
                    folder: folder))
        }
    }

    func call(
        _ method: HTTPMethod, _ target: String, token: String? = nil, headers: HTTPHeaders = [:], body: [UInt8] = []
    ) async throws -> Answer {
        var headers = headers
        if let token { headers.add("Authorization", "Bearer \(token)") }
        let request = try HTTPRequest(method, target, headers: headers, body: body, on: loop)
        // As the server does: on the loop of the request.
        let response = try await Task(executorPreference: loop) { try await gateway.handle(request) }.value
        switch response.body {
        case .empty: return Answer(status: response.status, headers: response.headers, bytes: [])
        case .bytes(let bytes): return Answer(status: response.status, headers: response.headers, bytes: bytes)
        case .file(let file):
            return Answer(status: response.status, headers: response.headers, bytes: try stored(bytes: file.count))
        case .stream, .upgrade, .later: throw CancellationError()
        }
    }

    func send(
        _ method: HTTPMethod, _ target: String, token: String? = nil, _ json: Any
    ) async throws -> Answer {
        let data = try JSONSerialization.data(withJSONObject: json, options: .fragmentsAllowed)
        return try await call(
            method, target, token: token, headers: ["Content-Type": "application/json"], body: Array(data))
    }

    func form(
        _ target: String, token: String?, texts: [String: String] = [:],
        files: [(name: String, fileName: String, bytes: [UInt8])] = []
    ) async throws -> Answer {
        var body: [UInt8] = []
        for (name, value) in texts {
            body += Array("--B\r\nContent-Disposition: form-data; name=\"\(name)\"\r\n\r\n\(value)\r\n".utf8)
        }
        for file in files {
            let head = "--B\r\nContent-Disposition: form-data; name=\"\(file.name)\"; filename=\"\(file.fileName)\"\r\n"
            body +=
                Array("\(head)Content-Type: application/octet-stream\r\n\r\n".utf8) + file.bytes + Array("\r\n".utf8)
        }
        body += Array("--B--\r\n".utf8)
        return try await call(
            .post, target, token: token, headers: ["Content-Type": "multipart/form-data; boundary=B"], body: body)
    }

    /// A new account's token.
    func register(_ name: String) async throws -> String {
        let answer = try await send(
            .post, "/api/auth/local/register",
            ["username": name, "email": "\(name)@example.org", "password": "correct horse"])
        guard let token = answer["jwt"] as? String else { throw TestFailure(answer.text) }
        return token
    }

    /// A representative with a company.
    func representative(_ name: String) async throws -> String {
        let token = try await register(name)
        let answer = try await send(.post, "/api/companies", token: token, ["name": "\(name) & Co", "bio": "We work."])
        guard answer.status == 200 else { throw TestFailure(answer.text) }
        return token
    }

    func post(_ title: String, by token: String, _ more: [String: Any] = [:]) async throws -> Int {
        let data: [String: Any] = [
            "name": title, "description": "Plain words.", "type": "Long Term", "environment": "Remote",
        ]
        let answer = try await send(
            .post, "/api/jobs", token: token, ["data": data.merging(more) { $1 }])
        guard let id = answer["id"] as? Int else { throw TestFailure(answer.text) }
        return id
    }

    func apply(_ posting: Int, by token: String, cv: [UInt8] = Array("%PDF-1.4 a cv".utf8)) async throws -> Answer {
        try await form(
            "/api/applications", token: token, texts: ["job": String(posting)], files: [("cv", "my cv.pdf", cv)])
    }

    /// Files in the object store, temporary ones too.
    var storedFiles: [String] {
        (FileManager.default.subpaths(atPath: folder) ?? []).filter { path in
            var isFolder: ObjCBool = false
            _ = FileManager.default.fileExists(atPath: "\(folder)/\(path)", isDirectory: &isFolder)
            return !isFolder.boolValue
        }
    }

    /// The one stored file of this size: what a file answer would have sent.
    private func stored(bytes count: Int) throws -> [UInt8] {
        let matching = storedFiles.compactMap { FileManager.default.contents(atPath: "\(folder)/\($0)") }
            .filter { $0.count == count }
        guard let data = matching.first, matching.count == 1 else { throw TestFailure("no one file of \(count) bytes") }
        return Array(data)
    }

    func count(_ table: StaticString) async throws -> Int64 {
        switch "\(table)" {
        case "applications": try await db.short.first("SELECT count(*) FROM applications") { try $0.get(0) } ?? -1
        case "media": try await db.short.first("SELECT count(*) FROM media") { try $0.get(0) } ?? -1
        case "users": try await db.short.first("SELECT count(*) FROM users") { try $0.get(0) } ?? -1
        case "job_postings": try await db.short.first("SELECT count(*) FROM job_postings") { try $0.get(0) } ?? -1
        default: -1
        }
    }
}

extension TestGateway {
    struct AccountMessage {
        let to: String
        let content: AccountMail.Content
        /// What its link carries.
        let token: String
    }

    /// Takes the account mails that wait, oldest first, as the worker does.
    func mails() async throws -> [AccountMessage] {
        let waiting = try await db.short.rows("SELECT id FROM account_mails WHERE state = 'queued' ORDER BY id") {
            try $0.get(0, as: AccountMail.ID.self)
        }
        let tokens = MailedToken(keys: try SigningKeys(secrets: [String(repeating: "k", count: 32)]))
        let mails = PostgresAccountMails(db: db)
        var messages: [AccountMessage] = []
        for id in waiting {
            guard let mail = try await mails.take(id, now: clock.now()) else { continue }
            try await mails.markSent(id)
            let text: String? =
                switch mail.content {
                case .reset(let token), .confirm(let token), .change(let token):
                    tokens.text(seed: token.seed, hash: token.hash)
                case .addressTaken, .changeNotice: ""
                }
            guard let text else { throw TestFailure("a token that the secret did not make") }
            messages.append(AccountMessage(to: mail.to, content: mail.content, token: text))
        }
        return messages
    }

    func forget(_ address: String) async throws -> Answer {
        try await send(.post, "/api/auth/forgot-password", ["email": address])
    }

    func reset(_ code: String, _ password: String, _ repeated: String? = nil) async throws -> Answer {
        try await send(
            .post, "/api/auth/reset-password",
            ["code": code, "password": password, "passwordConfirmation": repeated ?? password])
    }

    func signIn(_ identifier: String, _ password: String = "correct horse") async throws -> Answer {
        try await send(.post, "/api/auth/local", ["identifier": identifier, "password": password])
    }

    /// A form as a browser sends it.
    func submit(_ target: String, _ fields: [String: String]) async throws -> Answer {
        let pairs = fields.map { name, value in
            name + "=" + (value.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "")
        }
        return try await call(
            .post, target, headers: ["Content-Type": "application/x-www-form-urlencoded"],
            body: Array(pairs.joined(separator: "&").utf8))
    }
}

struct TestFailure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

extension TestGateway {
    /// The word of an alert's unsubscribe link.
    func unsubscribe(_ alert: Int) -> String {
        guard let keys = try? SigningKeys(secrets: [String(repeating: "k", count: 32)]) else { return "" }
        return UnsubscribeToken(keys: keys).make(alertID: Int64(alert))
    }
}
