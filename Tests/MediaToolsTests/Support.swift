import Foundation
import Testing

@testable import MediaTools

/// A folder for one test, removed with it.
final class Scratch {
    let path: String
    private var count = 0

    init() throws {
        path = NSTemporaryDirectory() + "martlet-media-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func file(_ name: String, _ bytes: [UInt8]) throws -> String {
        let file = path + "/" + name
        try Data(bytes).write(to: URL(fileURLWithPath: file))
        return file
    }

    func folder() throws -> String {
        count += 1
        let folder = path + "/out\(count)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        return folder
    }

    func request(
        _ file: String, kind: MediaRequest.Kind = .any, limits: MediaLimits = MediaLimits()
    ) throws -> MediaRequest {
        MediaRequest(kind: kind, path: file, outputDirectory: try folder(), limits: limits)
    }
}

extension MediaAnswer {
    var image: MediaImage? { if case .image(let image) = self { image } else { nil } }
    var document: MediaDocument? { if case .document(let document) = self { document } else { nil } }
    var rejection: Rejection? { if case .rejected(let rejection) = self { rejection } else { nil } }
}

/// The folder of files from comparable systems, when this machine has it.
let sharedFiles: String? = {
    let environment = ProcessInfo.processInfo.environment["MARTLET_SHARED"]
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
    let folders = [environment, root.appendingPathComponent("../shared").standardized.path].compactMap { $0 }
    return folders.map { $0 + "/files" }.first { FileManager.default.fileExists(atPath: $0 + "/SOURCES.md") }
}()

/// The program whose `media-child` is the child: built beside these tests.
let workerProgram: String = {
    let tests = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    return URL(fileURLWithPath: tests).deletingLastPathComponent().appendingPathComponent("martlet-worker").path
}()

/// SplitMix64: the same numbers in every run, so that a failure can be repeated.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64
    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
