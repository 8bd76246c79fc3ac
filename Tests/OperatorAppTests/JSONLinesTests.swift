import Foundation
import Testing

@testable import OperatorApp

@Suite("JSON lines")
struct JSONLinesTests {
    @Test(
        "each line is one record, with or without a line end after the last",
        arguments: ["{\"a\":1}\n{\"a\":2}\n", "{\"a\":1}\n{\"a\":2}", "\n{\"a\":1}\n\n{\"a\":2}\n\n"])
    func records(text: String) throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "\(UUID().uuidString).jsonl").path
        try Data(text.utf8).write(to: URL(filePath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        let reader = try RecordReader(path: path)
        var records: [String] = []
        while let item = try reader.next() {
            guard case .record(let record) = item else {
                Issue.record("\(item)")
                continue
            }
            records.append(String(decoding: record.bytes, as: UTF8.self))
        }
        #expect(records == ["{\"a\":1}", "{\"a\":2}"])
        #expect(!reader.isBroken)
    }
}
