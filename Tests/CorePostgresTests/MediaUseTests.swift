import Core
import CorePostgres
import Foundation
import Postgres
import TestSupport
import Testing

@Suite("Media and what it is for, in PostgreSQL")
struct MediaUseTests {
    /// One file of the owner's, as a worker leaves it.
    func added(
        _ kind: Media.Kind, _ hash: String, by owner: User.ID, in world: World, variants: [Media.Variant] = [],
        isReady: Bool = true
    ) async throws -> Media {
        let media = try await world.media.add([file(kind, hash)], owner: owner, use: nil)[0]
        if isReady { _ = try await world.media.finish(media.id, ready(variants: variants)) }
        return try await world.media.find(media.id)
    }

    func deletedKeys(_ world: World) async throws -> [String] {
        try await world.strings(
            """
            SELECT key FROM work_items CROSS JOIN jsonb_array_elements_text(payload -> 'keys') AS k (key)
            WHERE kind = 'delete_files' ORDER BY key
            """)
    }

    @Test("several files are added in their order, with their words and their work, and are in no use")
    func add() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let jane = try await world.user("jane")
            let info = try Media.Info(name: "Me.png", alternativeText: "A\nface", caption: "")
            let described = Media.Draft(
                kind: .profile, name: "x.bin", declaredType: "image/png", hash: "me", bytes: 3, sha256: digest(1),
                storageKey: "up/me", info: info)
            let files = try await world.media.add(
                [file(.attachment, "b"), described, file(.attachment, "a")], owner: jane.id, use: nil)
            #expect(files.map(\.hash) == ["b", "me", "a"] && files.allSatisfy { $0.state == .pending })
            #expect(files[1].name == "Me.png" && files[1].alternativeText == "A\nface" && files[1].caption == "")
            #expect(files[0].alternativeText == nil && files[0].caption == nil)
            #expect(try await world.items() == files.map { #"process_upload {"media_id": \#($0.id)}"# })
            #expect(try await world.users.find(jane.id).profileMediaID == nil)
            #expect(try await world.media.find(files.map(\.id).reversed()) == files)
        }
    }

    @Test("a logo is put in its place by the company's representative only, and the former one goes with its files")
    func logo() async throws {
        try await withTestDatabase { db in
            let scene = try await Scene(db)
            let (world, rep) = (scene.world, scene.representative.id)
            let use = MediaUse.logo(scene.posting.company.id)
            let recruiter = try await scene.recruiter("recruiter")
            for other in scene.strangers + [scene.applicant.id, recruiter.id] {
                await refused(.forbidden) { try await world.media.add([file(.logo, "x")], owner: other, use: use) }
            }
            #expect(try await world.count("SELECT count(*) FROM media") == 0)
            let first = try await world.media.add([file(.logo, "first")], owner: rep, use: use)[0]
            #expect(try await world.find(scene.posting.company.id).logo == nil)
            #expect(try await world.media.attach(first.id, to: use, owner: rep).id == first.id)
            let second = try await added(.logo, "second", by: rep, in: world, variants: [variant("small", "s")])
            _ = try await world.media.attach(second.id, to: use, owner: rep)
            let company = try await world.find(scene.posting.company.id)
            #expect(company.logo?.id == second.id && company.logo?.state == .ready)
            await refused(.notFound) { try await world.media.find(first.id) }
            #expect(try await deletedKeys(world) == ["up/first"])
            // Again: nothing is a former one.
            _ = try await world.media.attach(second.id, to: use, owner: rep)
            #expect(try await deletedKeys(world) == ["up/first"])

            let picture = try await added(.profile, "picture", by: rep, in: world)
            let theirs = try await added(.logo, "theirs", by: scene.rival.id, in: world)
            let rejected = try await added(.logo, "rejected", by: rep, in: world, isReady: false)
            _ = try await world.media.finish(rejected.id, .rejected(reason: "notAnImage", message: "No."))
            for wrong in [picture.id, theirs.id, rejected.id, Media.ID(noSuchID)] {
                await refused(.notFound) { try await world.media.attach(wrong, to: use, owner: rep) }
            }
            await refused(.forbidden) { try await world.media.attach(theirs.id, to: use, owner: scene.rival.id) }
            #expect(try await world.find(scene.posting.company.id).logo?.id == second.id)
        }
    }

    @Test("a picture is one's own; a CV is that of one's own application until it is decided")
    func profileAndCV() async throws {
        try await withTestDatabase { db in
            let scene = try await Scene(db)
            let (world, application, jane) = (scene.world, try await scene.applied(), scene.applicant.id)
            let picture = try await added(.profile, "picture", by: jane, in: world)
            await refused(.forbidden) {
                try await world.media.attach(picture.id, to: .profile(jane), owner: scene.rival.id)
            }
            await refused(.forbidden) {
                try await world.media.attach(picture.id, to: .profile(scene.rival.id), owner: jane)
            }
            _ = try await world.media.attach(picture.id, to: .profile(jane), owner: jane)
            #expect(try await world.users.find(jane).profileMediaID == picture.id)

            let use = MediaUse.cv(application.id)
            for other in scene.strangers + [scene.representative.id] {
                await refused(.forbidden) { try await world.media.add([file(.cv, "x")], owner: other, use: use) }
            }
            let better = try await added(.cv, "better", by: jane, in: world)
            _ = try await world.media.attach(better.id, to: use, owner: jane)
            #expect(try await world.find(application.id, viewer: scene.representative.id).cv.id == better.id)
            #expect(try await deletedKeys(world) == ["up/\(application.cv.hash)"])
            let kinds = try await world.applications.history(application.id, viewer: jane).map(\.kind)
            #expect(kinds == ["initiated", "cv_ready"])
            _ = try await world.applications.move(application.id, to: .declined, actor: scene.representative.id)
            await refused(.conflict) { try await world.media.add([file(.cv, "late")], owner: jane, use: use) }
            await refused(.conflict) { try await world.media.attach(better.id, to: use, owner: jane) }
        }
    }

    @Test("a file takes another one's content and keeps its id; a logo's address changes, others stay")
    func exchange() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let jane = try await world.user("jane")
            for kind in [Media.Kind.logo, .profile] {
                let old = try await added(
                    kind, "old\(kind)", by: jane.id, in: world,
                    variants: [variant("small", "old\(kind)s"), variant("upright", "old\(kind)u")])
                _ = try await world.media.describe(
                    old.id, Media.Info(name: nil, alternativeText: "Before", caption: "Kept"), owner: jane.id)
                let new = try await world.media.add(
                    [
                        Media.Draft(
                            kind: kind, name: "new.png", declaredType: "", hash: "new\(kind)", bytes: 9,
                            sha256: digest(2), storageKey: "up/new\(kind)",
                            info: Media.Info(name: nil, alternativeText: "After", caption: nil))
                    ], owner: jane.id, use: nil)[0]
                await refused(.notFound) { try await world.media.exchange(old.id, for: new.id, owner: jane.id) }
                _ = try await world.media.finish(new.id, ready(variants: [variant("small", "new\(kind)s")]))
                for other in [User.ID(noSuchID)] {
                    await refused(.notFound) { try await world.media.exchange(old.id, for: new.id, owner: other) }
                }
                await refused(.notFound) { try await world.media.exchange(old.id, for: old.id, owner: jane.id) }
                let now = try await world.media.exchange(old.id, for: new.id, owner: jane.id)
                #expect(now.id == old.id && now.storageKey == "up/new\(kind)" && now.bytes == 9)
                #expect(now.hash == (kind == .logo ? "newlogo" : "oldprofile"))
                #expect(now.name == "new.png" && now.alternativeText == "After" && now.caption == "Kept")
                #expect(
                    now.variants.map(\.hash) == ["small_\(now.hash)"] && now.variants[0].storageKey == "va/new\(kind)s")
                await refused(.notFound) { try await world.media.find(new.id) }
            }
            #expect(
                try await deletedKeys(world) == [
                    "up/oldlogo", "up/oldprofile", "va/oldlogos", "va/oldlogou", "va/oldprofiles", "va/oldprofileu",
                ])
        }
    }

    @Test("a CV of a decided application takes no other content")
    func exchangeCV() async throws {
        try await withTestDatabase { db in
            let scene = try await Scene(db)
            let (world, application, jane) = (scene.world, try await scene.applied(), scene.applicant.id)
            let new = try await added(.cv, "new", by: jane, in: world)
            #expect(try await world.media.exchange(application.cv.id, for: new.id, owner: jane).id == application.cv.id)
            _ = try await world.applications.move(application.id, to: .withdrawn, actor: jane)
            let late = try await added(.cv, "late", by: jane, in: world)
            await refused(.conflict) { try await world.media.exchange(application.cv.id, for: late.id, owner: jane) }
            #expect(try await world.media.find(application.cv.id).storageKey == "up/new")
        }
    }

    @Test("its owner deletes a file; its use is free then, but for an application's, which keeps it")
    func delete() async throws {
        try await withTestDatabase { db in
            let scene = try await Scene(db)
            let (world, application) = (scene.world, try await scene.applied())
            let (rep, jane) = (scene.representative.id, scene.applicant.id)
            let logo = try await added(.logo, "logo", by: rep, in: world, variants: [variant("small", "s")])
            _ = try await world.media.attach(logo.id, to: .logo(scene.posting.company.id), owner: rep)
            let picture = try await added(.profile, "picture", by: jane, in: world)
            _ = try await world.media.attach(picture.id, to: .profile(jane), owner: jane)
            for other in scene.strangers + [jane] {
                await refused(.notFound) { try await world.media.delete(logo.id, owner: other) }
            }
            #expect(try await world.media.delete(logo.id, owner: rep) == logo)
            #expect(try await world.find(scene.posting.company.id).logo == nil)
            #expect(try await world.media.delete(picture.id, owner: jane).id == picture.id)
            #expect(try await world.users.find(jane).profileMediaID == nil)
            #expect(try await deletedKeys(world) == ["up/logo", "up/picture", "va/s"])
            await refused(.notFound) { try await world.media.delete(logo.id, owner: rep) }

            let error = await refused(.conflict) { try await world.media.delete(application.cv.id, owner: jane) }
            #expect(error?.location == "/api/applications/\(application.id)")
            #expect(try await world.media.find(application.cv.id).id == application.cv.id)
        }
    }

    @Test("a file is put in its place and deleted at the same time: it is one or the other, and nobody waits for ever")
    func races() async throws {
        try await withTestDatabase(configure: { $0.leasedMax = 8 }) { db, _ in
            let scene = try await Scene(db)
            let (world, rep) = (scene.world, scene.representative.id)
            let use = MediaUse.logo(scene.posting.company.id)
            for round in 0..<5 {
                let logo = try await added(.logo, "logo\(round)", by: rep, in: world)
                let outcomes = await atOnce(8) { number in
                    if number.isMultiple(of: 2) {
                        _ = try await world.media.attach(logo.id, to: use, owner: rep)
                    } else {
                        _ = try await world.media.delete(logo.id, owner: rep)
                    }
                }
                #expect(outcomes.refusals().allSatisfy { $0 == .notFound })
                #expect(try await world.find(scene.posting.company.id).logo == nil)
            }
            #expect(try await world.count("SELECT count(*) FROM media") == 0)
        }
    }

    @Test("variants that a worker is just writing down when their file is deleted go with it")
    func deleteWhileFinishing() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let jane = try await world.user("jane")
            let media = try await added(.attachment, "a", by: jane.id, in: world, isReady: false)
            let discarding = try await db.transaction { transaction in
                try await transaction.execute("UPDATE media SET state = 'ready' WHERE id = \(media.id)")
                try await transaction.execute(
                    """
                    INSERT INTO media_variants (media_id, name, storage_key, hash, mime, ext, bytes, width, height)
                    VALUES (\(media.id), 'small', 'va/a', 'small_a', 'image/png', '.png', 1, 1, 1)
                    """)
                let discarding = Task { try await world.media.discard([media.id]) }
                try await world.waitForLockWaiter()
                return discarding
            }
            try await discarding.value
            #expect(try await deletedKeys(world) == ["up/a", "va/a"])
        }
    }

    @Test(
        "words about a file are its owner's; nil leaves what is there; discarding leaves nothing; keys are known or not"
    )
    func describe() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let jane = try await world.user("jane")
            let media = try await added(.attachment, "a", by: jane.id, in: world, variants: [variant("small", "v")])
            let first = try await world.media.describe(
                media.id, Media.Info(name: "new.bin", alternativeText: nil, caption: "Seen"), owner: jane.id)
            #expect(first.name == "new.bin" && first.caption == "Seen" && first.alternativeText == nil)
            let second = try await world.media.describe(
                media.id, Media.Info(name: nil, alternativeText: "Alt", caption: nil), owner: jane.id)
            #expect(second.name == "new.bin" && second.caption == "Seen" && second.alternativeText == "Alt")
            await refused(.notFound) {
                try await world.media.describe(media.id, .none, owner: User.ID(noSuchID))
            }
            let keys = ["up/a", "up/b", "va/v", "va/w"]
            #expect(try await Set(world.media.unknown(keys: keys)) == ["up/b", "va/w"])
            #expect(try await world.media.unknown(keys: []) == [])
            try await world.media.discard([media.id, Media.ID(noSuchID)])
            try await world.media.discard([])
            #expect(try await deletedKeys(world) == ["up/a", "va/v"])
            #expect(try await world.media.unknown(keys: keys).count == 4)
        }
    }
}
