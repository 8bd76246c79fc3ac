import Foundation
import Seeded
import Testing

@Suite("Fuzz targets") struct FuzzRunTests {
    private let name = "self"

    /// What the rounds of a target were given.
    private func inputs(_ environment: [String: String], rounds: UInt64 = 20) throws -> [[UInt8]] {
        var inputs: [[UInt8]] = []
        try Fuzz(name, rounds: rounds, isQuiet: true, environment: environment).run { fuzz in
            fuzz.input = fuzz.mutated(fuzz.bytes(fuzz.number(0...20)), words: ["word"])
            inputs.append(fuzz.input)
        }
        return inputs
    }

    @Test("have their rounds, the same each time; a first seed gives others, and one seed alone is that round again")
    func seeds() throws {
        let usual = try inputs([:])
        #expect(try usual.count == 20 && inputs([:]) == usual)
        #expect(try inputs(["MARTLET_FUZZ_FIRST": "11"], rounds: 10) == Array(usual[10...]))
        #expect(try inputs(["MARTLET_FUZZ_SEED": "7"]) == [usual[6]])
        #expect(Set(usual).count > 15)
    }

    @Test("go on for the seconds they are given")
    func seconds() throws {
        #expect(try inputs(["MARTLET_FUZZ_SECONDS": "0"]).isEmpty)
        // The first round alone may take longer on a busy machine.
        #expect(try ["0.05", "0.5", "5"].contains { try inputs(["MARTLET_FUZZ_SECONDS": $0], rounds: 1).count > 1 })
    }

    @Test("stop at a round that fails, which says how to run it again, and keeps what was read")
    func failure() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("fuzz-" + UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        var rounds = 0
        let failure = #expect(throws: FuzzFailure.self) {
            try Fuzz(name, rounds: 9, isQuiet: true, environment: ["MARTLET_FUZZ_FOLDER": folder.path]).run { fuzz in
                rounds += 1
                fuzz.input = Array("read \(fuzz.seed)".utf8)
                try fuzz.check(fuzz.seed != 3, "the third is wrong")
            }
        }
        #expect(rounds == 3 && failure?.seed == 3 && failure?.reason == "the third is wrong")
        let text = failure?.description ?? ""
        #expect(text.contains("make fuzz TARGET=self SEED=3") && text.contains("read 3"))
        #expect(failure?.kept.flatMap { try? String(contentsOfFile: $0, encoding: .utf8) } == "read 3")
    }

    @Test("cut bytes in pieces that are those bytes")
    func split() throws {
        try Fuzz(name, rounds: 100, isQuiet: true, environment: [:]).run { fuzz in
            let bytes = fuzz.bytes(fuzz.number(0...100))
            let pieces = fuzz.split(bytes)
            try fuzz.check(pieces.flatMap { $0 } == bytes && !pieces.contains([]), "\(pieces)")
        }
    }
}
