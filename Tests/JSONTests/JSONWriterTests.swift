import Foundation
import JSON
import Testing

@Suite("JSON out")
struct JSONWriterTests {
    @Test("an escape is found wherever in a text it stands, and nothing else is touched")
    func escapes() throws {
        for scalar in ["\"", "\\", "\u{1F}", "\u{0}", "\n", " ", "!", "#", "[", "\u{7F}", "é", "ÿ", "😀", "\u{80}"] {
            for length in 0..<20 {
                let text = String(repeating: "a", count: length) + scalar + String(repeating: "ü", count: 19 - length)
                var json = JSONWriter()
                json.value(text)
                let bytes = json.finish()
                let read = try JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed) as? String
                #expect(read == text)
                var same = JSONWriter()
                Array(text.utf8).withUnsafeBufferPointer { same.value(utf8: $0) }
                #expect(same.finish() == bytes)
            }
        }
    }

    @Test("whole numbers of every width are exact")
    func numbers() {
        var json = JSONWriter()
        json.array([Int64.min, -10, -1, 0, 9, 10, Int64.max]) { $0.value($1) }
        json.value(UInt64.max)
        json.value(Int8.min)
        json.value(Int128.min)
        #expect(
            String(decoding: json.finish(), as: UTF8.self) == "[\(Int64.min),-10,-1,0,9,10,\(Int64.max)],"
                + "\(UInt64.max),-128,\(Int128.min)")
    }

    @Test("a document longer than was thought is whole")
    func growing() {
        var json = JSONWriter(capacity: 1)
        json.array(0..<10_000) { $0.value($1) }
        #expect(
            String(decoding: json.finish(), as: UTF8.self) == "[" + (0..<10_000).map(String.init).joined(separator: ",")
                + "]")
    }

    @Test("what is written reads back as the same values")
    func roundTrip() throws {
        let hostile = "quote \" slash \\ line\nreturn\r tab\t bell\u{7} emoji 😀 \u{2028} é"
        var json = JSONWriter()
        json.object { json in
            json.field("text", hostile)
            json.field("int", Int64.min)
            json.field("whole", 3.0)
            json.field("half", 0.5)
            json.field("nan", Double.nan)
            json.field("yes", true)
            json.field("none", orNull: String?.none)
            json.array("list", [1, 2, 3]) { $0.value($1) }
            json.array("empty", [Int]()) { $0.value($1) }
            json.object("inner") {
                $0.key(text: "a\"b")
                $0.value(1)
            }
            json.field("last", "x")
        }
        let object = try #require(
            try JSONSerialization.jsonObject(with: Data(json.finish())) as? [String: Any])
        #expect(object["text"] as? String == hostile)
        #expect(object["int"] as? Int64 == Int64.min)
        #expect(object["whole"] as? Int == 3)
        #expect(object["half"] as? Double == 0.5)
        #expect(object["nan"] is NSNull)
        #expect(object["list"] as? [Int] == [1, 2, 3])
        #expect((object["empty"] as? [Int])?.isEmpty == true)
        #expect((object["inner"] as? [String: Int]) == ["a\"b": 1])
        #expect(object["last"] as? String == "x")
    }

    @Test(
        "times have milliseconds and Z, and read back",
        arguments: [
            (0.0, "1970-01-01T00:00:00.000Z"), (951_782_399.999, "2000-02-28T23:59:59.999Z"),
            (951_782_400.0, "2000-02-29T00:00:00.000Z"), (-0.001, "1969-12-31T23:59:59.999Z"),
            (4_107_542_399.0, "2100-02-28T23:59:59.000Z"), (4_107_542_400.0, "2100-03-01T00:00:00.000Z"),
        ])
    func time(seconds: Double, text: String) {
        #expect(Timestamp.text(Date(timeIntervalSince1970: seconds)) == text)
        #expect(Timestamp.parse(text).map { abs($0.timeIntervalSince1970 - seconds) < 0.0005 } == true)
    }

    @Test("other times are read or refused")
    func parse() {
        #expect(Timestamp.parse("2027-01-31") == Date(timeIntervalSince1970: 1_801_353_600))
        #expect(Timestamp.parse("2027-01-31T01:00:00+01:00") == Date(timeIntervalSince1970: 1_801_353_600))
        for text in [
            "", "tomorrow", "2027-13-01", "2027-01-31T25:00:00Z", "2027-02-29", "2027-01-31T01:00:00",
            "2027-01-31T01:00:00+25:00", String(repeating: "1", count: 100),
        ] {
            #expect(Timestamp.parse(text) == nil, "\(text)")
        }
    }
}
