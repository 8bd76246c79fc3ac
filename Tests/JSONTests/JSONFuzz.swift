import Foundation
import JSON
import Seeded
import Testing

@Suite("JSON, by chance") struct JSONFuzz {
    private static let words = [
        "null", "true", "[", "]", "{", "}", ":", ",", "\"", "\\u0000", "\\ud83d\\ude00", "\\ud800", "-0", "1e5", "0.1",
        "\\/",
        "\u{FEFF}", "[[[[", "\"a\":1,",
    ]
    private static let texts = ["", "a", "é", "😀", "\"", "\\", "\n", "\u{0}", "/", "\u{2028}", "name", "e\u{301}"]

    private static func value(_ fuzz: inout FuzzCase, depth: Int = 0) -> JSONValue {
        switch fuzz.number(0...(depth < 4 ? 8 : 5)) {
        case 0: return .null
        case 1: return .bool(fuzz.once(in: 2))
        case 2: return .int(Int64.random(in: .min ... .max, using: &fuzz.random) >> Int64(fuzz.number(0...63)))
        case 3:
            // With a fraction: a whole one is read as an integer.
            return .double(Double(fuzz.number(-999_999...999_999)) + 0.5)
        case 4, 5: return .string(fuzz.text(of: texts, max: 5))
        case 6, 7: return .array((0..<fuzz.number(0...4)).map { _ in value(&fuzz, depth: depth + 1) })
        default:
            var members: [String: JSONValue] = [:]
            for _ in 0..<fuzz.number(0...4) { members[fuzz.text(of: texts, max: 3)] = value(&fuzz, depth: depth + 1) }
            return .object(members)
        }
    }

    private static func written(_ value: JSONValue) -> [UInt8] {
        var writer = JSONWriter()
        write(value, to: &writer)
        return writer.finish()
    }

    private static func write(_ value: JSONValue, to json: inout JSONWriter) {
        switch value {
        case .null: json.null()
        case .bool(let flag): json.value(flag)
        case .int(let number): json.value(number)
        case .double(let number): json.value(number)
        case .string(let text): json.value(text)
        case .array(let items): json.array(items) { write($1, to: &$0) }
        case .object(let members):
            json.object { json in
                for (name, value) in members {
                    json.key(text: name)
                    write(value, to: &json)
                }
            }
        }
    }

    @Test("is read as it was written, and what is read of anything else is JSON in Foundation's eyes too")
    func json() throws {
        try Fuzz("json", rounds: 5_000).run { fuzz in
            let value = Self.value(&fuzz)
            let text = Self.written(value)
            let isHarmed = fuzz.number(0...3) > 0
            fuzz.input = isHarmed ? fuzz.mutated(text, words: Self.words) : text
            guard let read = try? JSONValue(parsing: fuzz.input) else {
                return try fuzz.check(isHarmed, "what was written is refused")
            }
            if !isHarmed { try fuzz.checkEqual(read, value, "what was written") }
            try fuzz.checkEqual(try JSONValue(parsing: Self.written(read)), read, "written anew")
            let isTheirs = try? JSONSerialization.jsonObject(with: Data(fuzz.input), options: .fragmentsAllowed)
            try fuzz.check(isTheirs != nil, "Foundation refuses it")
        }
    }
}
