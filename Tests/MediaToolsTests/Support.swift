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

/// A processor with a folder of its own for the files that it is given.
struct DocumentReader {
    let scratch: Scratch
    let processor: MediaProcessor

    init() throws {
        scratch = try Scratch()
        processor = try MediaProcessor()
    }

    func process(_ bytes: [UInt8]) throws -> MediaAnswer {
        processor.process(try scratch.request(try scratch.file("input", bytes)))
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
