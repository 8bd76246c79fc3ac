import Foundation
import JSON
import Testing

@Suite("JSON in")
struct JSONReaderTests {
    private func read(_ text: String) throws(JSONFault) -> JSONValue { try JSONValue(parsing: Array(text.utf8)) }

    @Test("values of every kind are read exactly")
    func values() throws {
        #expect(try read(" { } \n") == .object([:]))
        #expect(try read("[\t]") == .array([]))
        #expect(
            try read(#"{"a":[1,2.5,"x",null,true,false,{"b":{}}]}"#)
                == .object([
                    "a": .array([
                        .int(1), .double(2.5), .string("x"), .null, .bool(true), .bool(false),
                        .object(["b": .object([:])]),
                    ])
                ]))
    }

    @Test(
        "numbers: whole ones exactly while they fit, others as the nearest Double",
        arguments: [
            ("0", JSONValue.int(0)), ("-0", .int(0)), ("9223372036854775807", .int(.max)),
            ("-9223372036854775808", .int(.min)), ("9223372036854775808", .double(9_223_372_036_854_775_808)),
            ("1.0", .int(1)), ("1e3", .int(1000)), ("-2.5E-1", .double(-0.25)), ("1e16", .double(1e16)),
        ])
    func numbers(text: String, value: JSONValue) throws {
        #expect(try read(text) == value)
    }

    @Test(
        "what is no number is refused",
        arguments: [
            "01", "-", "+1", "1.", ".5", "1e", "1e+", "0x10", "NaN", "Infinity", "-Infinity", "1e999", "1_000", "--1",
            "1" + String(repeating: "0", count: JSONLimits().numberBytesMax),
        ])
    func wrongNumbers(text: String) {
        #expect(throws: JSONFault.self) { try read(text) }
    }

    @Test("escapes and surrogate pairs are read")
    func escapes() throws {
        #expect(try read(#""\"\\\/\b\f\n\r\t""#) == .string("\"\\/\u{8}\u{C}\n\r\t"))
        #expect(try read(#""\u0041\u00e9\u20AC\ud83d\ude00é😀\u0000""#) == .string("Aé€😀é😀\0"))
    }

    @Test(
        "what is no string is refused",
        arguments: [
            #"""#, #""a"#, #""\"#, #""\x""#, #""\u12""#, #""\u12g4""#, #""\ud800""#, #""\ud800x""#, #""\ud800\u0041""#,
            #""\udc00""#, "\"a\u{0}b\"", "\"a\nb\"", "'a'",
        ])
    func wrongStrings(text: String) {
        #expect(throws: JSONFault.self) { try read(text) }
    }

    @Test(
        "broken UTF-8 is refused, in names too", arguments: [[0xFF], [0xC0, 0xAF], [0xED, 0xA0, 0x80], [0xE2, 0x82]])
    func utf8(bytes: [UInt8]) {
        let quote = UInt8(ascii: "\"")
        #expect(throws: JSONFault.self) { try JSONValue(parsing: [quote] + bytes + [quote]) }
        let name = Array("{\"".utf8) + bytes + Array("\":1}".utf8)
        #expect(throws: JSONFault.self) { try JSONValue(parsing: name) }
    }

    @Test(
        "what is not one document is refused",
        arguments: [
            "", " ", "{", "}", "[1", "[1,]", "[,1]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "{1:1}", "nul",
            "truex", "{} x", "{}{}", "\u{FEFF}{}", "[1 2]", "/**/1",
        ])
    func malformed(text: String) {
        #expect(throws: JSONFault.self) { try read(text) }
    }

    @Test("a name twice in one object is refused; in two objects it may stand")
    func twice() throws {
        #expect(throws: JSONFault.self) { try read(#"{"a":1,"a":2}"#) }
        #expect(throws: JSONFault.self) { try read(#"{"a":1,"\u0061":2}"#) }
        #expect(throws: Never.self) { try read(#"[{"a":1},{"a":2}]"#) }
    }

    @Test("depth and the number of values have limits, and just within them all is well")
    func limits() throws {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        #expect(throws: Never.self) { try read(nested(JSONLimits().depthMax)) }
        #expect(throws: JSONFault.self) { try read(nested(JSONLimits().depthMax + 1)) }
        #expect(throws: JSONFault.self) { try read(String(repeating: "[", count: 500_000)) }
        func list(_ count: Int) -> String { "[" + Array(repeating: "0", count: count).joined(separator: ",") + "]" }
        #expect(throws: Never.self) { try read(list(JSONLimits().valuesMax - 1)) }
        #expect(throws: JSONFault.self) { try read(list(JSONLimits().valuesMax)) }
    }
}
