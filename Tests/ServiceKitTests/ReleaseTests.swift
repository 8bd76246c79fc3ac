import Foundation
import Synchronization
import Testing

@testable import ServiceKit

@Suite("What a service is asked by its arguments")
struct ServiceArgumentsTests {
    @Test("nothing, health, help and version are understood; everything else is not")
    func words() {
        #expect(ServiceArguments([]) == .run)
        #expect(ServiceArguments(["health"]) == .health)
        #expect(ServiceArguments(["--help"]) == .help && ServiceArguments(["-h"]) == .help)
        #expect(ServiceArguments(["--version"]) == .version)
        for word in ["", "--port", "run", "Health", "--health", "-v", "--help=x"] {
            #expect(ServiceArguments([word]) == .unknown(word))
        }
        #expect(ServiceArguments(["health", "now"]) == .unknown("now"))
        #expect(ServiceArguments(["--help", "--help"]) == .unknown("--help"))
    }

    @Test("what is asked for is answered with a status, and nothing is built")
    func statuses() async {
        let builds = Mutex(0)
        func status(_ words: String...) async -> Int32 {
            let arguments = ["program"] + words
            return await ServiceRunner.run("asked", "Is asked.", environment: [:], arguments: arguments) { _, _ in
                builds.withLock { $0 += 1 }
                return Service(start: {}, stop: { _ in })
            }
        }
        #expect(await status("--help") == 0)
        #expect(await status("--version") == 0)
        #expect(await status("\u{1B}[2J") == 64)
        #expect(builds.withLock { $0 } == 0)
    }
}

@Suite("The version")
struct ReleaseTests {
    /// The numbers of `X.Y.Z`; nil for anything else.
    private func numbers(_ text: String) -> [Int]? {
        guard text.wholeMatch(of: /(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)/) != nil else { return nil }
        return text.split(separator: ".").compactMap { Int($0) }
    }

    @Test("it is later than the newest release of the list, whose commit is one before this")
    func later() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let list = root.deletingLastPathComponent().appending(path: "docs/releases.md")
        let rows = try String(contentsOf: list, encoding: .utf8).split(separator: "\n").compactMap { line in
            numbers(line.split(separator: "|").first?.trimmingCharacters(in: .whitespaces) ?? "")
        }
        let newest = try #require(rows.last)
        #expect(rows.allSatisfy { !newest.lexicographicallyPrecedes($0) })
        let plain = Release.version.hasSuffix("-dev") ? Release.version.dropLast(4) : Release.version[...]
        let ours = try #require(numbers(String(plain)), "\(Release.version)")
        #expect(newest.lexicographicallyPrecedes(ours), "\(Release.version)")
    }
}
