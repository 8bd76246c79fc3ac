import Foundation
import Postgres
import TestSupport
import Testing

private enum Colour: String, PostgresEncodable, PostgresDecodable {
    case red, green
}

/// Sends a value and reads it back.
private func echo<T: PostgresEncodable & PostgresDecodable & Sendable & Equatable>(
    _ db: Database, _ type: SQL, _ values: [T], sourceLocation: SourceLocation = #_sourceLocation
) async throws {
    for value in values {
        let back = try await db.long.first("SELECT \(value)::\(type)") { try $0.get(0, as: T.self) }
        #expect(back == value, sourceLocation: sourceLocation)
    }
}

@Suite("Values")
struct ValueTests {
    @Test("numbers come back as they were sent, at their edges too")
    func numbers() async throws {
        try await withTestDatabase { db in
            try await echo(db, "int8", [0, 1, -1, Int.max, .min])
            try await echo(db, "int8", [Int64.max, .min])
            try await echo(db, "int4", [Int32.max, .min])
            try await echo(db, "int2", [Int16.max, .min])
            try await echo(db, "bool", [true, false])
            try await echo(
                db, "float8", [0.0, -0.1, .pi, .greatestFiniteMagnitude, .leastNonzeroMagnitude, .infinity])
            try await echo(db, "float4", [Float.pi, -.infinity])
            let nan = try await db.short.first("SELECT \(Double.nan)::float8") { try $0.get(0, as: Double.self) }
            #expect(nan?.isNaN == true)
            try await echo(db, "xid8", [PostgresXID(0), PostgresXID(.max)])
            try await echo(db, "uuid", [UUID()])
            #expect(try await db.short.first("SELECT 7::int2") { try $0.get(0, as: Int.self) } == 7)
        }
    }

    @Test("text and bytes come back as they were sent")
    func texts() async throws {
        try await withTestDatabase { db in
            let large = String(repeating: "0123456789abcde\u{e9}", count: 65_536)
            try await echo(db, "text", ["", "'", "\"", "\\", "a\nb\r\tc", "NULL", "{}", "👩‍💻 é e\u{301}", large])
            try await echo(db, "bytea", [[], [0], Array(0...255), [UInt8](repeating: 0, count: 1 << 20)])
            try await echo(db, "jsonb", [JSONText(#"{"a": [1, "b\\n"]}"#)])
            try await echo(db, "text", [Colour.red, .green])
            let json = try await db.short.first("SELECT \(JSONText("[1]"))::json") { try $0.get(0, as: String.self) }
            #expect(json == "[1]")
            #expect(try await db.short.first("SELECT ''::void") { try $0.get(0, as: String.self) } == "")
        }
    }

    @Test("times come back to the microsecond, before and after our era")
    func times() async throws {
        try await withTestDatabase { db in
            let dates = [0, 1.5, -1.000001, 1_796_119_200.123456, -62_135_596_800, -62_135_596_801, -200_000_000_000]
                .map { Date(timeIntervalSince1970: $0) }
            for date in dates {
                let back = try await db.short.first("SELECT \(date)::timestamptz, \(date)::timestamptz::text") {
                    (try $0.get(0, as: Date.self), try $0.get(1, as: String.self))
                }
                let difference = abs(back!.0.timeIntervalSince(date))
                #expect(difference < 0.000_05, "\(back!.1)")
            }
            let day = try await db.short.first("SELECT '2026-12-01'::date, '2026-12-01 01:02:03'::timestamp") {
                (try $0.get(0, as: Date.self), try $0.get(1, as: Date.self))
            }
            #expect(day?.0 == Date(timeIntervalSince1970: 1_796_083_200))
            #expect(day?.1 == Date(timeIntervalSince1970: 1_796_083_200 + 3723))
        }
    }

    @Test(
        "a Date finds the text PostgreSQL itself writes",
        arguments: [
            ("2000-02-29 23:59:59.999999+00", 951_868_799.999999), ("0001-01-01 00:00:00+00 BC", -62_167_219_200.0),
            ("1969-12-31 23:59:59.5+00", -0.5), ("294276-12-31 00:00:00+00", 9_224_317_929_600),
        ] as [(String, Double)])
    func dateText(text: String, seconds: Double) async throws {
        try await withTestDatabase { db in
            let date = Date(timeIntervalSince1970: seconds)
            let same = try await db.short.first("SELECT \(text)::timestamptz = \(date)::timestamptz, \(date)::text") {
                (try $0.get(0, as: Bool.self), try $0.get(1, as: String.self))
            }
            #expect(same?.0 == true, "\(same?.1 ?? "")")
        }
    }

    @Test("arrays come back as they were sent, empty, with NULLs and with every awkward character")
    func arrays() async throws {
        try await withTestDatabase { db in
            try await echo(db, "int8[]", [[Int](), [1], [Int.max, .min]])
            try await echo(db, "int4[]", [[Int32.max, .min]])
            try await echo(db, "int2[]", [[Int16.max, .min]])
            try await echo(db, "bool[]", [[true, false, true]])
            try await echo(db, "text[]", [[String](), ["", "NULL", "null", "a\"b\\c", "{,}", " x ", "a\nb", "é"]])
            try await echo(db, "text[]", [[String?](), ["a", nil, "NULL"], [nil]])
            try await echo(db, "int8[]", [[1, nil, 3] as [Int?]])
            try await echo(db, "bytea[]", [[[UInt8]](), [[0, 255], []]])
            try await echo(db, "timestamptz[]", [[Date(timeIntervalSince1970: 1.5)]])
            try await echo(db, "float8[]", [[1.5, -.infinity]])
            try await echo(db, "text[]", [[Colour.red, .green]])
            try await echo(db, "int8[]", [nil, [1]] as [[Int]?])
            let rows = try await db.short.first("SELECT cardinality(\([[1, 2], [3, 4]])::int8[])") {
                try $0.get(0, as: Int.self)
            }
            #expect(rows == 4)
        }
    }

    @Test("NULL is nil, and a value where an optional is asked for")
    func nulls() async throws {
        try await withTestDatabase { db in
            let absent: Int? = nil
            let back = try await db.short.first("SELECT \(absent)::int8, \(Int?.some(5))::int8, NULL::text") {
                (try $0.get(0, as: Int?.self), try $0.get(1, as: Int?.self), try $0.get(2, as: String?.self))
            }
            #expect(back?.0 == nil && back?.1 == 5 && back?.2 == nil)
        }
    }

    @Test("what cannot be sent is refused before it is, and says nothing of the value")
    func refusedBinds() async throws {
        try await withTestDatabase { db in
            let before = db.statementsExecuted
            let far = Date(timeIntervalSince1970: 1e15)
            await #expect(throws: PostgresEncodingError.nul) { try await db.short.execute("SELECT \("a\0b")::text") }
            await #expect(throws: PostgresEncodingError.nul) { try await db.short.execute("SELECT \(["\0"])::text[]") }
            await #expect(throws: PostgresEncodingError.dateOutOfRange) { try await db.short.execute("SELECT \(far)") }
            await #expect(throws: PostgresEncodingError.dateOutOfRange) {
                try await db.short.execute("SELECT \([Date.distantFuture, Date(timeIntervalSince1970: .infinity)])")
            }
            await #expect(throws: PostgresEncodingError.nul) {
                try await db.batch(Statement("SELECT 1"), Statement("SELECT \("\0")::text"))
            }
            #expect(db.statementsExecuted == before)
        }
    }

    @Test(
        "what cannot be read is refused by the column's name",
        arguments: [
            ("SELECT 'infinity'::timestamptz AS a", "infinity"), ("SELECT '-infinity'::date AS a", "infinity"),
            ("SELECT 'x'::text AS a", "type 25"), ("SELECT NULL::timestamptz AS a", "NULL"),
            ("SELECT 1.5 AS a", "1700"),
        ] as [(SQL, String)])
    func refusedCells(sql: SQL, words: String) async throws {
        try await withTestDatabase { db in
            let error = await #expect(throws: PostgresDecodingError.self) {
                try await db.short.first(sql) { try $0.get("a", as: Date.self) }
            }
            #expect(error?.description.contains(words) == true)
            #expect(error?.column == "a")
        }
    }

    @Test("numbers that do not fit, other dimensions and columns that are not there are refused")
    func refusedShapes() async throws {
        try await withTestDatabase { db in
            func refusal<T: PostgresDecodable & Sendable>(_ sql: SQL, _ type: T.Type) async -> PostgresDecodingError? {
                await #expect(throws: PostgresDecodingError.self) {
                    try await db.short.first(sql) { try $0.get(0, as: type) }
                }
            }
            #expect(await refusal("SELECT 2147483648::int8", Int32.self)?.reason == .cell(.outOfRange(wanted: "Int32")))
            #expect(await refusal("SELECT 32768", Int16.self)?.reason == .cell(.outOfRange(wanted: "Int16")))
            #expect(await refusal("SELECT '{{1,2}}'::int8[]", [Int].self)?.reason == .cell(.dimensions))
            #expect(await refusal("SELECT '{1,NULL}'::int8[]", [Int].self)?.reason == .cell(.null))
            #expect(await refusal("SELECT 'blue'::text", Colour.self)?.reason == .cell(.outOfRange(wanted: "Colour")))
            #expect(await refusal("SELECT 'x'::bytea", String.self) != nil)
            #expect(await refusal("SELECT 1 WHERE true", [Int].self) != nil)
            let missing = await #expect(throws: PostgresDecodingError.self) {
                try await db.short.first("SELECT 1 AS a") { try $0.get("A", as: Int.self) }
            }
            #expect(missing?.reason == .noSuchColumn)
            await #expect(throws: PostgresDecodingError.self) {
                try await db.short.first("SELECT 1") { try $0.get(-1, as: Int.self) }
            }
        }
    }

    @Test("fragments are put in place, and their binds numbered on")
    func fragments() async throws {
        let filter: SQL = "n > \(2) AND n <> \(4)"
        let sql: SQL = "SELECT n FROM generate_series(1, \(6)::int) AS n WHERE \(filter) ORDER BY \("n") LIMIT \(9)"
        #expect(
            sql.text == "SELECT n FROM generate_series(1, $1::int) AS n WHERE n > $2 AND n <> $3 ORDER BY $4 LIMIT $5")
        try await withTestDatabase { db in
            let left = try await db.short.rows("SELECT n FROM generate_series(1, \(6)) AS n WHERE \(filter)") {
                try $0.get(0, as: Int.self)
            }
            #expect(left == [3, 5, 6])
        }
    }
}
