import Foundation
import Testing

@testable import OperatorApp

@Suite("Records of files")
struct RecordReaderTests {
    private func read(_ text: String, name: String = "a.json") async throws -> (items: [String], isBroken: Bool) {
        try await withFolder { folder in
            let reader = try RecordReader(path: folder.file(name, text))
            var items: [String] = []
            while let item = try reader.next() {
                switch item {
                case .record(let record):
                    items.append("\(record.line) \(record.index) " + String(decoding: record.bytes, as: UTF8.self))
                case .refused(let refusal): items.append("\(refusal.line) \(refusal.index) refused: \(refusal.reason)")
                }
            }
            return (items, reader.isBroken)
        }
    }

    @Test("arrays, arrays under jobs, and objects one after the other are taken apart, with their lines")
    func shapes() async throws {
        #expect(try await read(#"[{"a":1},{"b":"],}"}]"#).items == [#"1 1 {"a":1}"#, #"1 2 {"b":"],}"}"#])
        #expect(
            try await read("[\n{\"a\":\n1},\n\n {\"b\":[{}]}\n]\n").items == ["2 1 {\"a\":\n1}", "5 2 {\"b\":[{}]}"])
        #expect(
            try await read(#"{"meta":{"x":[1]}, "jobs" : [{"a":1}, {"b":2}], "more":[{"c":3}]}"#).items
                == [#"1 1 {"a":1}"#, #"1 2 {"b":2}"#])
        #expect(try await read("{\"a\":1}\n{\"b\":2}\n").items == ["1 1 {\"a\":1}", "2 2 {\"b\":2}"])
        #expect(try await read("// one\n// two [\n\n[{\"a\":1}]").items == ["4 1 {\"a\":1}"])
        #expect(try await read("\u{FEFF}[{\"a\":1}]").items == ["1 1 {\"a\":1}"])
        #expect(try await read("[1, \"x,]\", null]").items == ["1 1 1", "1 2 \"x,]\"", "1 3 null"])
        #expect(try await read(#"{"jobs":{"a":[1]}}"#).items == [#"1 1 {"jobs":{"a":[1]}}"#])
        for nothing in ["", "[]", "[ \n ]", "{\"jobs\":[]}", "// only\n"] {
            let read = try await read(nothing)
            #expect(read.items == [] && !read.isBroken, "\(nothing)")
        }
    }

    @Test("lines of .jsonl are records of their own, so that a broken one harms no other")
    func lines() async throws {
        let text = "{\"a\":1}\n\n{\"b\": {\n  \n// note\n{\"c\":3}"
        #expect(try await read(text, name: "a.jsonl").items == ["1 1 {\"a\":1}", "3 2 {\"b\": {", "6 3 {\"c\":3}"])
    }

    @Test("a file that ends too early gives what it has, and says that it is not all")
    func truncated() async throws {
        let whole = "[{\"a\":\"x\"},\n{\"b\":[1,2]},{\"c\":3}]"
        for length in 1..<whole.utf8.count {
            let read = try await read(String(whole.prefix(length)))
            #expect(read.isBroken, "\(length)")
            #expect(read.items.last?.contains("the file ends") == true, "\(length)")
        }
        #expect(try await read(whole).isBroken == false)
    }

    @Test("what is no JSON at all is refused at once", arguments: ["hello", "<html>", "%PDF-1.4", "\u{0}\u{1}", "42"])
    func noJSON(text: String) async throws {
        let read = try await read(text)
        #expect(read.isBroken && read.items.count == 1 && read.items[0].contains("neither"))
    }

    @Test("a record that is too large is refused without being kept, the others are read")
    func oversize() async throws {
        let large = String(repeating: "x", count: RecordReader.recordBytesMax)
        let read = try await read("[{\"a\":1},\n{\"b\":\"\(large)\"},\n{\"c\":3}]")
        #expect(read.items.count == 3 && read.items[1].hasPrefix("2 2 refused") && read.items[2] == "3 3 {\"c\":3}")
        let lines = try await self.read("{\"b\":\"\(large)\"}\n{\"c\":3}", name: "a.jsonl")
        #expect(lines.items.count == 2 && lines.items[0].hasPrefix("1 1 refused") && lines.items[1] == "2 2 {\"c\":3}")
    }

    @Test("records across the chunks of a large file are whole, wherever the chunks end")
    func chunks() async throws {
        let record = "{\"text\":\"\(String(repeating: "é\\\"]}", count: 700))\"}"
        let read = try await read("[" + Array(repeating: record, count: 300).joined(separator: ",\n") + "]")
        #expect(read.items.count == 300 && Set(read.items.map { $0.split(separator: "{", maxSplits: 1)[1] }).count == 1)
    }

    @Test("brackets that close nothing do not stop the rest from being read")
    func stray() async throws {
        let read = try await read("[{\"a\":1}, } , {\"b\":2}]")
        #expect(read.items.first == "1 1 {\"a\":1}" && read.items.contains { $0.hasSuffix("{\"b\":2}") })
    }
}
