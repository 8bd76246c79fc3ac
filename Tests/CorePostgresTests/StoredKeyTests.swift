import Core
import CorePostgres
import Foundation
import Postgres
import TestSupport
import Testing

@Suite("What rows name in the object store")
struct StoredKeyTests {
    @Test("keys of a folder come by their bytes, page by page, with what is expected of them")
    func pages() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let jane = try await world.user("jane").id
            func add(_ key: String, _ hash: String) async throws -> Media.ID {
                try await world.media.create(
                    Media.Draft(
                        kind: .attachment, name: "a", declaredType: "", hash: hash, bytes: 3, sha256: digest(1),
                        storageKey: key), owner: jane
                ).id
            }
            let plain = try await add("up/0a/b", "plain")
            let picture = try await add("up/0a/a", "picture")
            let other = try await add("up/0b/a", "other")
            let rejected = try await add("up/0a/c", "rejected")
            let variants = ["upright", "small"].map { name in
                Media.Variant(
                    name: name, storageKey: "up/0a/a_\(name)", hash: "\(name)_picture", mime: "image/png", ext: ".png",
                    bytes: 5, width: 3, height: 7)
            }
            #expect(try await world.media.finish(picture, ready(variants: variants)))
            #expect(try await world.media.finish(other, ready()))
            #expect(try await world.media.finish(rejected, .rejected(reason: "empty", message: "Empty.")))
            let all = [
                StoredKey(key: "up/0a/a", media: picture, isServed: false, standing: .wanted),
                StoredKey(key: "up/0a/a_small", media: picture, isServed: false, standing: .wanted),
                StoredKey(key: "up/0a/a_upright", media: picture, isServed: true, standing: .wanted),
                StoredKey(key: "up/0a/b", media: plain, isServed: true, standing: .wanted),
                StoredKey(key: "up/0a/c", media: rejected, isServed: true, standing: .deleted),
            ]
            #expect(try await world.media.stored(in: "up/0a/", after: nil, max: 100) == all)
            for max in 1...3 {
                var (found, last) = ([StoredKey](), String?.none)
                while true {
                    let page = try await world.media.stored(in: "up/0a/", after: last, max: max)
                    found += page
                    guard page.count == max else { break }
                    last = page.last?.key
                }
                #expect(found == all)
            }
            #expect(try await world.media.stored(in: "up/0c/", after: nil, max: 9).isEmpty)
        }
    }

    @Test("only a file that is ready is marked as lost, and only one that was marked is found")
    func marks() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let jane = try await world.user("jane").id
            let pending = try await world.media.create(file(.attachment, "pending"), owner: jane).id
            let good = try await world.media.create(file(.attachment, "good"), owner: jane).id
            let lost = try await world.media.create(file(.attachment, "lost"), owner: jane).id
            #expect(try await world.media.finish(good, ready()))
            #expect(try await world.media.finish(lost, .rejected(reason: "missing", message: "Never looked at.")))
            let all = [pending, good, lost]
            #expect(try await world.media.markFound(all) == [])
            #expect(try await world.media.markLost(all) == [good])
            #expect(try await world.media.find(good).rejection == "missing")
            #expect(
                try await world.media.stored(in: "up/", after: nil, max: 9).map(\.standing) == [
                    .lost, .deleted, .wanted,
                ])
            #expect(try await world.media.markLost(all) == [])
            #expect(try await world.media.markFound(all) == [good])
            #expect(try await world.media.find(good).state == .ready)
        }
    }
}
