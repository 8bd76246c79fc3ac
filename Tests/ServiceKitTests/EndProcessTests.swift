import Foundation
import ServiceKit
import Testing

@Suite("The end of a process")
struct EndProcessTests {
    @Test("it has its status and its last words, and runs nothing that is registered for an exit")
    func end() async throws {
        let result = try await #require(processExitsWith: .exitCode(7), observing: [\.standardOutputContent]) {
            atexit { abort() }
            print("last words", terminator: "")
            endProcess(7)
        }
        #expect(String(decoding: result.standardOutputContent, as: UTF8.self).contains("last words"))
    }
}
