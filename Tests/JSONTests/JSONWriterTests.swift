import Foundation
import JSON
import Testing

@Suite("JSON out")
struct JSONWriterTests {
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
