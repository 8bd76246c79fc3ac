import Foundation
import HTTPServer

/// The stock app's fifteen calls as it sends them: its paths, bodies and part names (contracts: 01 §2).
struct StockClient {
    let server: TestGateway
    var token: String?

    func decode<T: Decodable>(_ type: T.Type, _ answer: TestGateway.Answer) throws -> T {
        do {
            return try JSONDecoder().decode(T.self, from: Data(answer.bytes))
        } catch {
            throw TestFailure("\(T.self) of \(answer.status) \(answer.text.prefix(600)): \(error)")
        }
    }

    /// Its multipart: a boundary of its own, text parts without a type, in no order.
    func form(
        _ method: HTTPMethod, _ target: String, _ texts: [String: String],
        file: (part: String, name: String, type: String, bytes: [UInt8])? = nil
    ) async throws -> TestGateway.Answer {
        let boundary = "Boundary-\(UUID().uuidString)"
        var body: [UInt8] = []
        for (name, value) in texts {
            body += Array("--\(boundary)\r\nContent-Disposition: form-data; name=\"\(name)\"\r\n\r\n\(value)\r\n".utf8)
        }
        if let file {
            let disposition = "Content-Disposition: form-data; name=\"\(file.part)\"; filename=\"\(file.name)\""
            body += Array("--\(boundary)\r\n\(disposition)\r\nContent-Type: \(file.type)\r\n\r\n".utf8)
            body += file.bytes + Array("\r\n".utf8)
        }
        body += Array("--\(boundary)--\r\n".utf8)
        return try await server.call(
            method, target, token: token, headers: ["Content-Type": "multipart/form-data; boundary=\(boundary)"],
            body: body)
    }

    // MARK: 1–6

    func signIn(_ identifier: String, _ password: String) async throws -> Stock.SignedIn {
        try decode(
            Stock.SignedIn.self,
            try await server.send(.post, "/api/auth/local/", ["identifier": identifier, "password": password]))
    }

    static func registration(_ person: Words) -> [String: String] {
        [
            "username": person.username, "password": "correct horse", "email": person.email,
            "first_name": person.text, "last_name": person.text, "phone_number": person.text,
        ]
    }

    mutating func register(_ person: Words) async throws -> Stock.SignedIn {
        let answer = try decode(
            Stock.SignedIn.self, try await server.send(.post, "/api/auth/local/register", Self.registration(person)))
        token = answer.jwt
        return answer
    }

    func me() async throws -> Stock.Me {
        try decode(
            Stock.Me.self, try await server.call(.get, "/api/users/me?populate=profile&populate=role", token: token))
    }

    func saveProfile(_ person: Words, picture: [UInt8]?) async throws -> Stock.Me {
        var texts = Self.registration(person)
        texts["password"] = nil
        guard let picture else {
            return try decode(
                Stock.Me.self, try await server.send(.post, "/api/auth/local/profile", token: token, texts))
        }
        return try decode(
            Stock.Me.self,
            try await form(
                .post, "/api/auth/local/profile", texts, file: ("profile", "imagefile.jpg", "image/jpeg", picture)))
    }

    func saveCompany(_ words: Words, logo: [UInt8]?) async throws -> Stock.SavedCompany {
        let texts = [
            "name": words.name, "email": words.email, "phone": words.text, "bio": words.text,
            "category": words.text, "address": words.text,
        ]
        return try decode(
            Stock.SavedCompany.self,
            try await form(
                .post, "/api/companies", texts, file: logo.map { ("logo", "imagefile.jpg", "image/jpeg", $0) }))
    }

    /// Nil as the app takes it: 204, or null.
    func ownCompany() async throws -> Stock.OwnCompany? {
        let answer = try await server.call(.get, "/api/companies/me", token: token)
        return answer.status == 204 ? nil : try decode(Stock.OwnCompany?.self, answer)
    }

    // MARK: 7–11

    /// - Parameter escaped: as newer Foundations send the brackets.
    func postings(escaped: Bool) async throws -> [Stock.Entry<Stock.Posting>] {
        let query = escaped ? "populate%5Bcompany%5D%5Bpopulate%5D%5B0%5D=logo" : "populate[company][populate][0]=logo"
        return try decode(
            Stock.Listed.self, try await server.call(.get, "/api/jobs?\(query)", token: token)
        ).data
    }

    func ownPostings() async throws -> [Stock.OwnPosting] {
        try decode([Stock.OwnPosting].self, try await server.call(.get, "/api/jobs/mine", token: token))
    }

    /// The app casts by force: whatever comes, an error too, must have these three.
    func publish(_ data: [String: Any]) async throws -> (id: Int, name: String, description: String, status: Int) {
        let answer = try await server.send(.post, "/api/jobs", token: token, ["data": data])
        guard let id = answer["id"] as? Int, let name = answer["name"] as? String,
            let description = answer["description"] as? String
        else { throw TestFailure("the app crashes on \(answer.status) \(answer.text)") }
        return (id, name, description, answer.status)
    }

    func update(_ posting: Int, _ data: [String: Any]) async throws -> Stock.Entry<Stock.Posting> {
        try decode(
            Stock.Entry<Stock.Posting>.self,
            try await server.send(.put, "/api/jobs/\(posting)", token: token, ["data": data]))
    }

    func delete(_ posting: Int) async throws -> Stock.Entry<Stock.Posting> {
        try decode(
            Stock.Entry<Stock.Posting>.self, try await server.call(.delete, "/api/jobs/\(posting)", token: token))
    }

    // MARK: 12–15

    func ownApplications() async throws -> [Stock.OwnApplication] {
        try decode([Stock.OwnApplication].self, try await server.call(.get, "/api/applications/mine", token: token))
    }

    func apply(_ posting: Int, cv: [UInt8]) async throws -> TestGateway.Answer {
        try await form(
            .post, "/api/applications", ["job": String(posting)], file: ("cv", "document.pdf", "application/pdf", cv))
    }

    func decide(_ application: Int, _ status: String, job: Int, applicant: String) async throws -> TestGateway.Answer {
        try await server.send(
            .put, "/api/applications/\(application)", token: token,
            ["job": String(job), "applicant_username": applicant, "status": status])
    }

    /// Without a header, at the address that an answer gave.
    func file(_ url: String) async throws -> TestGateway.Answer { try await server.call(.get, url) }
}

/// What a person or a company says of itself.
struct Words {
    let username: String
    let name: String
    let email: String
    /// Everything else.
    let text: String

    /// Each is somebody the app must be able to show.
    static func hostile(_ number: Int) -> [Words] {
        let long = String(repeating: "ü", count: 255)
        return [
            Words(username: "plain\(number)", name: "Plain", email: "plain\(number)@example.org", text: "words"),
            Words(username: "half\(number)", name: "Half", email: "half\(number)@example.org", text: ""),
            Words(
                username: "under_score_\(number)", name: "_ _ \"quoted\" \\ back", email: "u_\(number)@example.org",
                text: "\"'\\/<script>&amp;"),
            Words(
                username: "emoji😀é\(number)", name: "👩‍👩‍👧‍👦 & Söhne", email: "e\(number)@example.org",
                text: "😀é\u{301}"),
            Words(
                username: String(repeating: "n", count: 48) + "\(number)", name: long,
                email: String(repeating: "a", count: 64) + "@example\(number).org", text: long),
        ]
    }
}
