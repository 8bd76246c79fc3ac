import Foundation
import JSON
import Testing

@testable import OperatorApp

@Suite("JSON of sources")
struct JSONTests {
    private func parse(_ text: String) throws -> OrderedJSON { try OrderedJSON.parse(Array(text.utf8)) }

    @Test("values are read as they are, numbers by their digits, members in their order")
    func values() throws {
        let value = try parse(#" {"a":[1,-0.5e+3,true,false,null],"b":"x","a":{}} "#)
        guard case .object(let object) = value else { throw ImportError("no object") }
        #expect(object.members.map(\.name) == ["a", "b", "a"] && object["a"] == .object(JSONObject()))
        #expect(
            object.members[0].value == .array([.number("1"), .number("-0.5e+3"), .bool(true), .bool(false), .null]))
        #expect(
            try parse(#""\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00é😀""#) == .string("\"\\/\u{8}\u{C}\n\r\té😀é😀"))
        #expect(try parse("\"\\u0000\"") == .string("\0"))
    }

    @Test("what is written is read back the same")
    func roundTrip() throws {
        let value = OrderedJSON.objectOf(["a\"\n\u{1}é": .array([.string("\t\\"), .integer(-5), .null, .bool(true)])])
        #expect(try parse(value.text) == value && !value.text.contains("\n"))
    }

    @Test(
        "what RFC 8259 does not allow is refused with its place",
        arguments: [
            "", " ", "{", "[1,]", "{\"a\":1,}", "{\"a\" 1}", "{a:1}", "01", "1.", ".5", "-", "1e", "+1", "tru", "nul",
            "\"abc", "\"a\nb\"", "\"\\x\"", "\"\\u12\"", "\"\\ud800\"", "\"\\ud800\\u0041\"", "\"\\udc00\"", "1 2",
            "[1 2]",
            "'a'", "NaN", "{\"a\":1}}", "//", "\u{FEFF}1",
        ])
    func refused(text: String) {
        #expect(throws: JSONFault.self) { try parse(text) }
    }

    @Test("broken UTF-8 and bottomless nesting are refused")
    func hostile() throws {
        for bytes: [UInt8] in [[0x22, 0xFF, 0x22], [0x22, 0xC0, 0x80, 0x22], [0x22, 0x5C, 0x6E, 0xE2, 0x82, 0x22]] {
            #expect(throws: JSONFault.self) { try OrderedJSON.parse(bytes) }
        }
        let depth = JSONLimits().depthMax
        #expect(throws: Never.self) {
            try parse(String(repeating: "[", count: depth) + String(repeating: "]", count: depth))
        }
        #expect(throws: JSONFault.self) { try parse(String(repeating: "[", count: 1_000_000)) }
    }
}

@Suite("Dates of sources")
struct SourceDateTests {
    @Test(
        "every way the sources write a time is read",
        arguments: [
            ("1970-01-01", 0.0), ("2024-02-29", 1_709_164_800), ("2000-03-01", 951_868_800),
            ("2199-12-31", 7_258_032_000),
            ("2026-06-20T12:00:00-04:00", 1_781_971_200), ("2025-11-16T02:23:36.991Z", 1_763_259_816.991),
            ("2025-11-16T02:23:36+0530", 1_763_240_016), ("2025-11-16 02:23", 1_763_259_780),
            ("Wed Dec 04 22:43:07 UTC 2019", 1_575_499_387), ("Wed Dec  4 22:43:07 UTC 2019", 1_575_499_387),
            ("Tue Jan 5 01:02:03 UTC 2021", 1_609_808_523), ("2016-12-31T23:59:60Z", 1_483_228_799),
        ])
    func accepted(text: String, seconds: Double) throws {
        let date = try #require(SourceDate.parse(text))
        #expect(abs(date.timeIntervalSince1970 - seconds) < 0.0005)
    }

    @Test(
        "what is no time, or no day there is, is refused",
        arguments: [
            "", "yesterday", "2023-02-29", "1900-02-29", "2024-13-01", "2024-00-10", "2024-01-32", "2024-1-1",
            "1969-12-31",
            "2024-02-01T24:00:00Z", "2024-02-01T10", "2024-02-01T10:00:00+25:00", "2024-02-01T10:00:00Zz", "20240201",
            "Wed Foo 04 22:43:07 UTC 2019", "Wed Dec 04 22:43:07 CET 2019", "Wed Dec 04 22:43:07 UTC",
            "2024-02-01T10:00:00.Z",
        ])
    func refused(text: String) {
        #expect(SourceDate.parse(text) == nil)
    }
}
