import Core
import CorePostgres
import Foundation
import HTTPServer
import TestSupport
import Testing

@testable import GatewayApp

@Suite("/api/upload")
struct UploadTests {
    @Test("files are answered in their order when they have been looked at, with what was said about each")
    func several() async throws {
        try await TestGateway.run { api in
            let ada = try await api.register("ada")
            let infos = #"[{"name":"First.png","alternativeText":"One"},{"caption":"Two"}]"#
            let answer = try await api.upload(
                token: ada, [SentFile(name: "a.png"), SentFile(name: "My Photo.png")], [("fileInfo", infos)])
            #expect(answer.status == 200 && answer.list.count == 2)
            #expect(answer["0.name"] as? String == "First.png" && answer["0.alternativeText"] as? String == "One")
            #expect(answer["1.name"] as? String == "My Photo.png" && answer["1.caption"] as? String == "Two")
            #expect(answer["0.width"] as? Int == 600 && answer["0.mime"] as? String == "image/png")
            #expect((answer["1.hash"] as? String)?.wholeMatch(of: /My_Photo_[0-9a-f]{10}/) != nil)
            #expect((answer["0.hash"] as? String)?.hasPrefix("First_") == true)
            #expect(answer.list.allSatisfy { Set($0.keys) == Set(MediaBodyTests.order) })
            // One for all, by an object; one each, by parts of their own.
            let one = try await api.upload(
                token: ada, [SentFile(), SentFile()], [("fileInfo", #"{"caption":"Both"}"#), ("path", "x")])
            #expect(one.list.map { $0["caption"] as? String } == ["Both", "Both"])
            let parts = try await api.upload(
                token: ada, [SentFile(), SentFile()],
                [("fileInfo", #"{"caption":"1"}"#), ("fileInfo", #"{"caption":"2"}"#)])
            #expect(parts.list.map { $0["caption"] as? String } == ["1", "2"])
            #expect(api.storedFiles.count == 6)
        }
    }

    @Test(
        "what is no proper upload is refused with the path, and leaves nothing",
        arguments: [
            (0, [], "", "Files are empty"), (11, [], "files", "files are limited to 10"),
            (2, [("fileInfo", "{")], "fileInfo", "fileInfo must be JSON"),
            (
                2, [("fileInfo", "[{},{},{}]")], "fileInfo",
                "fileInfo must be one object, or one for each of the 2 files"
            ),
            (1, [("fileInfo", "7")], "fileInfo", "fileInfo must be an object"),
            (1, [("fileInfo", #"{"caption":7}"#)], "fileInfo.caption", "fileInfo.caption must be a string"),
            (1, [("ref", "api::job.job"), ("refId", "1"), ("field", "x")], "ref", "ref is no type that has files"),
            (
                1, [("ref", "api::company.company"), ("refId", "1"), ("field", "jobs")], "field",
                "field must be logo for api::company.company"
            ),
            (
                1, [("ref", "api::company.company"), ("refId", "1")], "field",
                "field must be logo for api::company.company"
            ),
            (1, [("ref", "api::company.company"), ("field", "logo")], "refId", "refId is required"),
            (
                1, [("ref", "plugin::users-permissions.user"), ("field", "profile"), ("refId", "x")], "refId",
                "refId must be a whole number"
            ),
            (
                2, [("ref", "api::application.application"), ("field", "cv"), ("refId", "1")], "files",
                "This field takes one file; 2 were sent"
            ),
        ] as [(Int, [(String, String)], String, String)])
    func refused(files: Int, texts: [(String, String)], path: String, message: String) async throws {
        try await TestGateway.run { api in
            let ada = try await api.register("ada")
            let answer = try await api.send(token: ada, Array(repeating: SentFile(), count: files), texts)
            #expect(answer.status == 400 && answer["error.name"] as? String == "ValidationError")
            #expect(answer.problem == message)
            let found = (answer["error.details.errors.0.path"] as? [String])?.joined(separator: ".") ?? ""
            #expect(found == path)
            #expect(try await api.count("media") == 0)
            #expect(api.storedFiles.isEmpty)
        }
    }

    @Test("without a session, with JSON, with an empty file, with another part, and above the limit")
    func otherRefusals() async throws {
        try await TestGateway.run { api in
            let ada = try await api.register("ada")
            #expect(try await api.send(token: nil, [SentFile()]).status == 401)
            let json = try await api.send(.post, "/api/upload", token: ada, ["files": []])
            #expect(json.status == 400 && json.problem == "Files are empty")
            let empty = try await api.send(token: ada, [SentFile(), SentFile(bytes: [])])
            #expect(empty.status == 400 && empty.problem == "Files are empty")
            #expect(try await api.form("/api/upload", token: ada, files: [("other", "a", [1])]).status == 400)
            #expect(try await api.send(to: "/api/upload?kind=logo", token: ada, [SentFile()]).status == 400)
            let large = [UInt8](repeating: 0x41, count: Media.Kind.profile.bytesMax + 1)
            let picture = try await api.send(to: "/api/upload?kind=profile", token: ada, [SentFile(bytes: large)])
            #expect(picture.status == 413)
            // The kind is known only after the file when `ref` follows it; the limit is the same.
            let me = try await api.call(.get, "/api/users/me", token: ada)["id"] as? Int ?? 0
            let late = try await api.form(
                "/api/upload", token: ada,
                texts: ["ref": "plugin::users-permissions.user", "refId": "\(me)", "field": "profile"],
                files: [("files", "a.png", large)])
            #expect(late.status == 413)
            #expect(try await api.count("media") == 0)
            #expect(api.storedFiles.isEmpty)
        }
    }

    @Test("a picture that cannot be read is 400, and nothing of the request is kept")
    func unreadable() async throws {
        try await TestGateway.run { api in
            let ada = try await api.register("ada")
            let answer = try await api.upload(
                token: ada, [SentFile(name: "good.png"), SentFile(name: "bad.png")]
            ) { $0 == "bad.png" ? .broken : .picture }
            #expect(answer.status == 400 && answer["error.name"] as? String == "ValidationError")
            #expect(answer.problem == "File is not a valid image")
            #expect(try await api.count("media") == 0)
            #expect(try await api.deletions() == 2)
            let other = try await api.upload(token: ada) { _ in
                .rejected(reason: "tooManyPages", message: "The document has too many pages.")
            }
            #expect(other.status == 400 && other.problem == "The document has too many pages.")
            // What nobody knows is no picture when a picture was promised.
            let sentence = "Files of this type are not accepted."
            for (type, problem) in [("image/png", "File is not a valid image"), ("application/pdf", sentence)] {
                let unknown = try await api.upload(token: ada, [SentFile(type: type)]) { _ in
                    .rejected(reason: "unsupportedType", message: sentence)
                }
                #expect(unknown.status == 400 && unknown.problem == problem)
            }
        }
    }

    @Test("when no worker comes in time the answer goes out as things are")
    func pending() async throws {
        try await TestGateway.run { api in
            let ada = try await api.register("ada")
            let answer = try await api.upload(token: ada) { _ in nil }
            #expect(answer.status == 200 && answer["0.state"] as? String == "pending")
            #expect(answer["0.formats"] is NSNull && answer["0.width"] is NSNull)
            let id = try #require(answer["0.id"] as? Int)
            _ = try await api.media.finish(Media.ID(Int64(id)), .picture)
            let later = try await api.call(.get, "/api/upload/files/\(id)", token: ada)
            #expect(later["width"] as? Int == 600 && later["state"] == nil)
        }
    }

    @Test("a client that leaves while it waits leaves nothing")
    func left() async throws {
        try await TestGateway.run { api in
            let ada = try await api.register("ada")
            let request = try HTTPRequest(
                .post, "/api/upload",
                headers: ["Authorization": "Bearer \(ada)", "Content-Type": "multipart/form-data; boundary=B"],
                body: TestGateway.form([SentFile()], []), on: api.loop)
            let task = Task(executorPreference: api.loop) { try await api.gateway.handle(request) }
            try await eventually { api.clock.sleepers > 0 }
            #expect(try await api.count("media") == 1)
            task.cancel()
            #expect(try await task.value.status == 503)
            #expect(try await api.count("media") == 0)
            #expect(try await api.deletions() == 1)
        }
    }

    @Test("?kind=profile and ref make the picture one's own, and the former one goes")
    func profile() async throws {
        try await TestGateway.run { api in
            let (ada, bob) = (try await api.register("ada"), try await api.register("bob"))
            let first = try await api.upload(to: "/api/upload?kind=profile", token: ada)
            let me = try await api.call(.get, "/api/users/me", token: ada)["id"] as? Int ?? 0
            let use = [("ref", "plugin::users-permissions.user"), ("refId", "\(me)"), ("field", "profile")]
            let theirs = try await api.send(token: bob, [SentFile()], use)
            #expect(theirs.status == 403 && theirs["error.name"] as? String == "ForbiddenError")
            let broken = try await api.upload(token: ada, [SentFile()], use) { _ in .broken }
            #expect(broken.status == 400)
            let user = User.ID(Int64(me))
            let present = try await PostgresUsers(db: api.db).find(user).profileMediaID
            #expect(present?.value == (first["0.id"] as? Int).map(Int64.init))
            let second = try await api.upload(token: ada, [SentFile()], use)
            let now = try await PostgresUsers(db: api.db).find(user).profileMediaID
            #expect(now?.value == (second["0.id"] as? Int).map(Int64.init) && now != present)
            #expect(try await api.count("media") == 1)
        }
    }

    @Test("a company's logo is set by its representative; all four formats are there, and its bytes are public")
    func logo() async throws {
        try await TestGateway.run { api in
            let (owner, rival) = (try await api.representative("owner"), try await api.representative("rival"))
            let company = try await api.call(.get, "/api/companies/me", token: owner)["id"] as? Int ?? 0
            let use = [("ref", "api::company.company"), ("refId", "\(company)"), ("field", "logo")]
            #expect(try await api.send(token: rival, [SentFile()], use).status == 403)
            #expect(api.storedFiles.isEmpty)
            let answer = try await api.upload(token: owner, [SentFile()], use)
            let url = try #require(answer["0.url"] as? String)
            for size in ["thumbnail", "small", "medium", "large"] {
                #expect(answer["0.formats.\(size).url"] as? String == url)
            }
            let file = try await api.call(.get, url)
            #expect(file.status == 200 && file.headers["Cache-Control"] == "public, max-age=31536000, immutable")
            #expect(try await api.call(.get, "/api/companies/me", token: owner)["logo.url"] as? String == url)
            let id = try #require(answer["0.id"] as? Int)
            #expect(try await api.call(.delete, "/api/upload/files/\(id)", token: rival).status == 404)
            let deleted = try await api.call(.delete, "/api/upload/files/\(id)", token: owner)
            #expect(deleted.status == 200 && deleted["id"] as? Int == id && deleted["url"] as? String == url)
            #expect(
                try await api.call(.get, "/api/companies/me", token: owner)["logo.url"] as? String
                    == MediaLinks.placeholder)
            #expect(try await api.call(.get, url).status == 404)
        }
    }

    @Test("beyond what one account has, 413 tells what to do and nothing is kept; a deletion makes room")
    func quota() async throws {
        try await TestGateway.run(quota: Media.Quota(mebibytes: 1)) { api in
            let ada = try await api.register("ada")
            let half = SentFile(name: "a.bin", type: "", bytes: [UInt8](repeating: 7, count: 600 * 1024))
            let first = try await api.upload(token: ada, [half])
            #expect(first.status == 200 && api.storedFiles.count == 1)
            for form in [[half], [SentFile(), half]] {
                let answer = try await api.send(token: ada, form)
                #expect(answer.status == 413 && answer.problem.contains("Delete some that you no longer need"))
            }
            #expect(api.storedFiles.count == 1)
            let id = try #require(first["0.id"] as? Int)
            #expect(try await api.call(.delete, "/api/upload/files/\(id)", token: ada).status == 200)
            #expect(try await api.upload(token: ada, [half]).status == 200)
        }
    }
}
