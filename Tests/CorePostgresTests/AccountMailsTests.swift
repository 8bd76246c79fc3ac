import Core
import CorePostgres
import Foundation
import Postgres
import TestSupport
import Testing

@Suite("Mails and tokens of accounts in PostgreSQL")
struct AccountMailsTests {
    private func mails(_ db: Database) async throws -> [AccountMail.ID] {
        try await db.short.rows("SELECT id FROM account_mails ORDER BY id") { try $0.get(0) }
    }

    @Test("a mail taken twice says the same, and once it is sent it is taken no more; its seed is gone")
    func take() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            _ = try await world.user("jane")
            let (accounts, queue) = (PostgresAccounts(db: db, mailDomain: "a.example"), PostgresAccountMails(db: db))
            let now = Date.now
            try await accounts.ask(.reset, address: "jane@example.org", world.mailing(at: now))
            let id = try #require(try await mails(db).first)
            let mail = try #require(try await queue.take(id, now: now))
            #expect(mail.content == .reset(world.mailing().token) && mail.username == "jane")
            #expect(mail.messageID.hasSuffix("@a.example"))
            #expect(try await queue.take(id, now: now) == mail)
            #expect(try await accounts.find(hash: world.mailing().token.hash, now: now)?.purpose == .reset)
            #expect(
                try await accounts.find(
                    hash: world.mailing().token.hash, now: now + AccountMail.Kind.reset.secondsMax + 1)
                    == nil)
            try await queue.markSent(id)
            #expect(try await queue.take(id, now: now) == nil)
            #expect(try await world.count("SELECT count(*) FROM account_mails WHERE seed IS NOT NULL") == 0)
            #expect(try await world.items() == [#"send_account_mail {"mail_id": \#(id)}"#])
            #expect(try await queue.take(AccountMail.ID(noSuchID), now: now) == nil)
        }
    }

    @Test("a mail that is late, to nobody, to somebody blocked or to a refused address is not sent")
    func notSent() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let (jane, bob) = (try await world.user("jane"), try await world.user("bob"))
            let (accounts, queue) = (PostgresAccounts(db: db), PostgresAccountMails(db: db))
            let now = Date.now
            for (number, name) in ["jane", "bob", "nobody", "jane"].enumerated() {
                try await accounts.ask(.reset, address: "\(name)@example.org", world.mailing(UInt8(number), at: now))
            }
            try await accounts.ask(.confirm, address: "jane@example.org", world.mailing(9, at: now))
            let ids = try await mails(db)
            #expect(try await queue.take(ids[0], now: now + 3601) == nil)
            try await world.users.setBlocked(true, of: bob.id, by: nil)
            #expect(try await queue.take(ids[1], now: now) == nil)
            #expect(try await queue.take(ids[2], now: now) == nil)
            try await queue.suppress(jane.email, reason: "550")
            #expect(try await queue.take(ids[3], now: now) == nil)
            let states = try await world.strings("SELECT state FROM account_mails ORDER BY id")
            #expect(states == ["dropped", "dropped", "dropped", "suppressed", "suppressed"])
            #expect(try await world.count("SELECT count(*) FROM account_tokens") == 0)
        }
    }

    @Test("of two mails for one purpose the one asked for later has the good token, in whatever order they are sent")
    func order() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            _ = try await world.user("jane")
            let (accounts, queue) = (PostgresAccounts(db: db), PostgresAccountMails(db: db))
            let now = Date.now
            for number: UInt8 in 1...2 {
                try await accounts.ask(.reset, address: "jane@example.org", world.mailing(number, at: now))
            }
            let ids = try await mails(db)
            #expect(try await queue.take(ids[1], now: now) != nil)
            #expect(try await queue.take(ids[0], now: now) == nil)
            #expect(try await accounts.find(hash: world.mailing(1).token.hash, now: now) == nil)
            #expect(try await accounts.find(hash: world.mailing(2).token.hash, now: now) != nil)
            // Used before the worker could write down that it was sent: sent again, it does not come back.
            _ = try await accounts.reset(hash: world.mailing(2).token.hash, passwordHash: "new", now: now)
            #expect(try await queue.take(ids[1], now: now) == nil)
            await refused(.invalid) {
                try await accounts.reset(hash: world.mailing(2).token.hash, passwordHash: "newer", now: now)
            }
            #expect(try await world.strings("SELECT password_hash FROM users") == ["new"])
        }
    }

    @Test("many who ask for mails to one address at once get no more than the hour's, known or not")
    func limit() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            _ = try await world.user("jane")
            let accounts = PostgresAccounts(db: db)
            let now = Date.now
            for address in ["jane@example.org", "nobody@example.org"] {
                let outcomes = await atOnce(12) { number in
                    let mailing = world.mailing(UInt8(number), at: now)
                    try await accounts.ask(.reset, address: address, mailing)
                }
                #expect(outcomes.successes().count == 12)
            }
            let counts = try await world.strings(
                "SELECT count(*)::text FROM account_mails GROUP BY address ORDER BY address")
            #expect(counts == Array(repeating: String(AccountMail.perAddressAndHourMax), count: 2))
            try await accounts.ask(.confirm, address: "jane@example.org", world.mailing(at: now))
            try await accounts.ask(.reset, address: "jane@example.org", world.mailing(at: now + 3601))
            #expect(try await mails(db).count == 2 * AccountMail.perAddressAndHourMax + 2)
        }
    }

    @Test("a token of one purpose is none of another, and a reset by mail ends sessions and confirms")
    func purposes() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let now = Date.now
            let jane = try await world.users.create(
                User.Draft(username: "jane", email: "jane@example.org", password: "secret"), passwordHash: "old",
                confirmation: world.mailing(1, at: now))
            #expect(!jane.confirmed)
            let session = try await world.family(jane.id)
            let (accounts, queue) = (PostgresAccounts(db: db), PostgresAccountMails(db: db))
            try await accounts.ask(.reset, address: jane.email, world.mailing(2, at: now))
            for id in try await mails(db) { #expect(try await queue.take(id, now: now) != nil) }
            await refused(.invalid) { try await accounts.confirm(hash: world.mailing(2).token.hash, now: now) }
            await refused(.invalid) {
                try await accounts.reset(hash: world.mailing(1).token.hash, passwordHash: "x", now: now)
            }
            let user = try await accounts.reset(hash: world.mailing(2).token.hash, passwordHash: "new", now: now)
            #expect(user.confirmed)
            #expect(try await world.sessions.revocations(since: 0).sessions.map(\.id) == [session.id])
            #expect(try await world.strings("SELECT action FROM audit_log") == ["user.reset"])
        }
    }

    @Test("picture, fields and a change of address are one transaction, and the former picture goes")
    func profile() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let (jane, bob) = (try await world.user("jane"), try await world.user("bob"))
            let first = try await world.update(jane.id, User.Change(), picture: file(.profile, "one"))
            let picture = try #require(first.profileMediaID)
            await refused(.conflict) {
                try await world.update(
                    jane.id, User.Change(username: bob.username, email: "new@example.org"),
                    picture: file(.profile, "two"))
            }
            #expect(try await world.users.find(jane.id).profileMediaID == picture)
            #expect(try await mails(db).isEmpty)
            let second = try await world.update(
                jane.id, User.Change(email: "new@example.org", firstName: "Jane"), picture: file(.profile, "two"))
            #expect(second.profileMediaID != picture && second.firstName == "Jane" && second.email == jane.email)
            #expect(try await world.strings("SELECT hash FROM media") == ["two"])
            #expect(try await world.items().contains(#"delete_files {"keys": ["up/one"]}"#))
            #expect(try await mails(db).count == 2)
        }
    }

    @Test("the words that the schema's CHECKs know are those that Core has")
    func words() async throws {
        try await withTestDatabase { _, database in
            for (name, words) in [
                ("account_mails_kind_known", AccountMail.Kind.allCases.map(\.rawValue)),
                ("account_tokens_purpose_known", AccountToken.Purpose.allCases.map(\.rawValue)),
            ] {
                let text = try await database.run(
                    "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = '\(name)'")
                let known = (text.first?[0] ?? "").matches(of: /'(\w+)'::text/).map { String($0.1) }
                #expect(Set(known) == Set(words))
            }
        }
    }

    @Test("pruning takes mails and tokens that have had their time, and nothing else")
    func prune() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            _ = try await world.user("jane")
            let (accounts, queue) = (PostgresAccounts(db: db), PostgresAccountMails(db: db))
            let now = Date.now
            try await accounts.ask(.reset, address: "jane@example.org", world.mailing(at: now))
            _ = try await queue.take(try #require(try await mails(db).first), now: now)
            let upkeep = PostgresUpkeep(db: db)
            let early = try await upkeep.prune(now: now + 86_400)
            #expect(early["account_mails"] == 0 && early["account_tokens"] == 0)
            let late = try await upkeep.prune(now: now + 4 * 86_400)
            #expect(late["account_mails"] == 1 && late["account_tokens"] == 1)
        }
    }
}
