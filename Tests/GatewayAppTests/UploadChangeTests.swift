import Core
import CoreHTTP
import CorePostgres
import Foundation
import HTTPServer
import Testing

@testable import GatewayApp

@Suite("Files of one's own")
struct UploadChangeTests {
    @Test("?id= changes what is said about a file, by a form or by JSON; the answer is the one object")
    func describe() async throws {
        try await TestGateway.run { api in
            let (ada, bob) = (try await api.register("ada"), try await api.register("bob"))
            let id = try #require(try await api.upload(token: ada)["0.id"] as? Int)
            let target = "/api/upload?id=\(id)"
            let form = try await api.send(to: target, token: ada, [], [("fileInfo", #"{"caption":"Mine"}"#)])
            #expect(form.status == 200 && form["caption"] as? String == "Mine" && form["name"] as? String == "cat.png")
            let json = try await api.send(
                .post, target, token: ada, ["fileInfo": ["name": "dog.png", "alternativeText": "A dog"]])
            #expect(json["name"] as? String == "dog.png" && json["alternativeText"] as? String == "A dog")
            #expect(json["caption"] as? String == "Mine" && json["id"] as? Int == id)
            for (token, target) in [(bob, target), (ada, "/api/upload?id=999999"), (ada, "/api/upload?id=x")] {
                let answer = try await api.send(to: target, token: token, [], [("fileInfo", "{}")])
                #expect(answer.status == 404 && answer.problem == "file.notFound")
            }
            let long = try await api.send(
                .post, target, token: ada, ["fileInfo": ["caption": String(repeating: "c", count: 1001)]])
            #expect(long.status == 400)
            #expect(long["error.details.errors.0.path"] as? [String] == ["fileInfo", "caption"])
        }
    }

    @Test("?id= with a file replaces the content: same id, same address; what cannot be read replaces nothing")
    func replace() async throws {
        try await TestGateway.run { api in
            let ada = try await api.register("ada")
            let first = try await api.upload(token: ada, [SentFile()], [("fileInfo", #"{"caption":"Mine"}"#)])
            let id = try #require(first["0.id"] as? Int)
            let target = "/api/upload?id=\(id)"
            let bytes = SentFile().bytes + [1]
            let broken = try await api.upload(to: target, token: ada, [SentFile(bytes: bytes)]) { _ in .broken }
            #expect(broken.status == 400 && broken.problem == "File is not a valid image")
            let late = try await api.upload(to: target, token: ada, [SentFile(bytes: bytes)]) { _ in nil }
            #expect(late.status == 503 && late.headers["Retry-After"] != nil)
            #expect(try await api.count("media") == 1)
            let url = try #require(first["0.url"] as? String)
            #expect(try await api.call(.get, url).bytes == SentFile().bytes)

            let now = try await api.upload(to: target, token: ada, [SentFile(name: "dog.png", bytes: bytes + [2])])
            #expect(
                now.status == 200 && now["id"] as? Int == id && now["hash"] as? String == first["0.hash"] as? String)
            #expect(now["name"] as? String == "dog.png" && now["caption"] as? String == "Mine")
            #expect(try await api.count("media") == 1)
            let before = try await api.call(.get, url)
            let etag = try #require(before.headers["ETag"])
            #expect(before.status == 200 && before.bytes == bytes + [2])
            #expect(try await api.call(.get, url, headers: ["If-None-Match": etag]).status == 304)
            let two = try await api.send(to: target, token: ada, [SentFile(), SentFile()])
            #expect(two.status == 400 && two.problem == "Cannot replace a file with multiple ones")
        }
    }

    @Test("the list has the caller's own files, newest first, as the list language asks; one by id who may read it")
    func list() async throws {
        try await TestGateway.run { api in
            let (ada, bob) = (try await api.register("ada"), try await api.register("bob"))
            let sent = (1...3).map { SentFile(name: "\($0).png") }
            let uploaded = try await api.upload(token: ada, sent)
            let all = try await api.call(.get, "/api/upload/files", token: ada)
            #expect(all.list.map { $0["name"] as? String } == ["3.png", "2.png", "1.png"])
            let page = try await api.call(
                .get, "/api/upload/files?pagination[page]=2&pagination[pageSize]=2", token: ada)
            #expect(page.list.map { $0["name"] as? String } == ["1.png"])
            let found = try await api.call(
                .get, "/api/upload/files?filters[name][$startsWith]=2&fields=name", token: ada)
            #expect(found.list.map { Set($0.keys).subtracting(["state", "rejection"]) } == [["id", "name"]])
            for query in ["sort=storage_key", "filters[ownerID]=1", "filters[owner]=1", "filters[state]=ready"] {
                #expect(try await api.call(.get, "/api/upload/files?\(query)", token: ada).status == 400)
            }
            // Logos are everyone's to see, and in their owner's list only.
            let owner = try await api.representative("owner")
            let company = try await api.call(.get, "/api/companies/me", token: owner)["id"] as? Int ?? 0
            _ = try await api.upload(
                token: owner, [SentFile()],
                [("ref", "api::company.company"), ("refId", "\(company)"), ("field", "logo")])
            #expect(try await api.call(.get, "/api/upload/files?filters[id][$gt]=0", token: owner).list.count == 1)
            #expect(try await api.call(.get, "/api/upload/files", token: bob).list.isEmpty)
            #expect(try await api.call(.get, "/api/upload/files").status == 401)
            let id = try #require(uploaded["0.id"] as? Int)
            #expect(try await api.call(.get, "/api/upload/files/\(id)", token: ada)["name"] as? String == "1.png")
            for target in ["/api/upload/files/\(id)", "/api/upload/files/999999", "/api/upload/files/x"] {
                for method in [HTTPMethod.get, .delete] {
                    let answer = try await api.call(method, target, token: bob)
                    #expect(answer.status == 404 && answer.problem == "file.notFound")
                }
            }
        }
    }

    @Test("the CV of an application stays; its address ends when it is revoked, when it is late, and is no one else's")
    func curriculumVitae() async throws {
        try await TestGateway.run { api in
            let (owner, rival) = (try await api.representative("owner"), try await api.representative("rival"))
            let person = try await api.register("person")
            let posting = try await api.post("Engineer", by: owner)
            let applied = try await api.apply(posting, by: person, cv: Array("%PDF-1.4 a longer cv".utf8))
            let (application, cv) = (
                try #require(applied["data.id"] as? Int), try #require(applied["data.attributes.cv.id"] as? Int)
            )
            _ = try await api.media.finish(Media.ID(Int64(cv)), .document)
            let target = "/api/upload/files/\(cv)"
            for token in [owner, person] {
                let file = try await api.call(.get, target, token: token)
                let url = try #require(file["url"] as? String)
                #expect(file["formats"] is NSNull && file["mime"] as? String == "application/pdf")
                #expect(try await api.call(.get, url).status == 200)
            }
            #expect(try await api.call(.get, target, token: rival).status == 404)
            let url = try #require(try await api.call(.get, target, token: owner)["url"] as? String)
            let path = String(url.prefix { $0 != "?" })
            // Neither the bare address, nor another file's word, nor somebody else's session opens it.
            #expect(try await api.call(.get, path).status == 404)
            #expect(try await api.call(.get, path, token: rival).status == 404)
            let theirs = try await api.upload(token: rival)
            let word = try #require((theirs["0.url"] as? String)?.split(separator: "?").last)
            #expect(try await api.call(.get, "\(path)?\(word)").status == 404)
            for other in [owner, rival] {
                #expect(try await api.call(.post, target + "/revoke", token: other).status == 404)
            }
            let revoked = try await api.call(.post, target + "/revoke", token: person)
            #expect(revoked.status == 200 && (revoked["url"] as? String) != url)
            #expect(try await api.call(.get, url).status == 404)
            let fresh = try #require(revoked["url"] as? String)
            #expect(try await api.call(.get, fresh).status == 200)

            let kept = try await api.call(.delete, target, token: person)
            #expect(kept.status == 409 && kept.headers["Location"] == "/api/applications/\(application)")
            let use = [("ref", "api::application.application"), ("refId", "\(application)"), ("field", "cv")]
            #expect(try await api.send(token: rival, [SentFile()], use).status == 403)
            let better = try await api.upload(token: person, [SentFile(name: "cv.pdf")], use) { _ in .document }
            #expect(better.status == 200)
            let mine = try await api.call(.get, "/api/applications/mine", token: person)
            #expect(mine["0.cv.id"] as? Int == better["0.id"] as? Int && mine["0.cv.state"] as? String == "ready")
            #expect(try await api.call(.get, fresh).status == 404)
            api.clock.advance(seconds: 7201)
            let expired = try #require(mine["0.cv.url"] as? String)
            #expect(try await api.call(.get, expired).status == 404)
        }
    }

    @Test("a store that cannot be written is 503 with a time to come back, and leaves nothing")
    func storeTrouble() async throws {
        try await TestGateway.run { api in
            let ada = try await api.register("ada")
            try FileManager.default.removeItem(atPath: api.folder + "/tmp")
            let answer = try await api.send(token: ada, [SentFile()])
            #expect(answer.status == 503 && answer.headers["Retry-After"] == "30")
            #expect(answer["error.name"] as? String == "ServiceUnavailableError")
            #expect(try await api.count("media") == 0)
        }
    }

    @Test(
        "the name of an address is Strapi's slug",
        arguments: [
            ("My Photo", "My_Photo"), ("Vita für Äda", "Vita_fur_Ada"), ("myPhoto", "my_Photo"),
            ("IMG_1234", "IMG_1234"),
            ("DSC0012", "DSC_0012"), ("a--b__c", "a_b_c"), ("", "file"), ("日本", "file"), ("R&D", "R_and_D"),
            ("cv2Final", "cv2_Final"), ("A2", "A2"), ("Straße", "Strasse"), ("../../etc", "etc"),
            (String(repeating: "x", count: 300), String(repeating: "x", count: 60)),
        ])
    func slug(name: String, slug: String) {
        #expect(FileName.slug(of: name) == slug)
    }
}
