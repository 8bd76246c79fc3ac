import Testing

@testable import ServiceKit

@Suite("The settings of the database")
struct DatabaseSettingsTests {
    private func mistakes(_ values: [String: String]) -> [String] {
        var environment = Environment(values)
        _ = DatabaseSettings(&environment)
        do { try environment.check() } catch { return error.mistakes }
        return []
    }

    @Test("alone, the URL is enough")
    func plain() {
        var environment = Environment(["MARTLET_DATABASE_URL": "postgres://a/b"])
        let settings = DatabaseSettings(&environment)
        #expect(settings.url.value == "postgres://a/b" && settings.directURL == nil)
        #expect(!settings.isPooled && settings.notify)
        #expect(mistakes(["MARTLET_DATABASE_URL": "postgres://a/b"]) == [])
    }

    @Test("behind a transaction pooler somebody must be able to listen, or nobody does")
    func pooler() {
        let pooled = ["MARTLET_DATABASE_URL": "postgres://a/b", "MARTLET_DATABASE_POOLER": "transaction"]
        #expect(mistakes(pooled).count == 1 && mistakes(pooled)[0].contains("MARTLET_DATABASE_DIRECT_URL"))
        #expect(mistakes(pooled.merging(["MARTLET_DATABASE_DIRECT_URL": "postgres://c/b"]) { $1 }) == [])
        #expect(mistakes(pooled.merging(["MARTLET_NOTIFY": "off"]) { $1 }) == [])
        let wrong = mistakes(["MARTLET_DATABASE_URL": "x", "MARTLET_DATABASE_POOLER": "statement"])
        #expect(wrong.count == 1 && wrong[0].contains("MARTLET_DATABASE_POOLER"))
    }
}
