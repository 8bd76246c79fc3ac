import Czip
import Foundation
import Synchronization
import Testing

@testable import MediaTools

/// Files from comparable systems, each through a real child of its own. Skipped where the machine does not have them.
@Suite(.enabled(if: sharedFiles != nil)) struct SharedFilesTests {
    static let folder = sharedFiles ?? ""
    let scratch: Scratch
    init() throws { scratch = try Scratch() }

    /// Every file below the folder, but for the note that says what they are.
    private func names() -> [String] {
        let all = FileManager.default.enumerator(atPath: Self.folder)?.compactMap { $0 as? String } ?? []
        return all.filter { name in
            var isFolder: ObjCBool = false
            let isThere = FileManager.default.fileExists(atPath: Self.folder + "/" + name, isDirectory: &isFolder)
            return isThere && !isFolder.boolValue && name != "SOURCES.md"
        }.sorted()
    }

    /// Gives each file to a new child, and looks at the most memory that child had. The kernel's mark for the child's
    /// own pages (VmHWM) tells: `ru_maxrss` of a spawned program begins with the size of whoever spawned it.
    private func process(
        _ names: [String], change: (inout MediaChildPool.Configuration) -> Void = { _ in },
        _ check: (String, MediaRequest, MediaAnswer) throws -> Void
    ) async throws {
        let peak = Mutex(0)
        var probe = MediaChildPool.Probe()
        probe.peakKiB = { kib in peak.withLock { $0 = kib } }
        var configuration = MediaChildPool.Configuration(
            executable: workerProgram, roots: [scratch.path, Self.folder])
        configuration.filesPerChildMax = 1
        configuration.children = 1
        change(&configuration)
        let pool = MediaChildPool(configuration, probe: probe)
        for name in names {
            peak.withLock { $0 = 0 }
            let request = try scratch.request(Self.folder + "/" + name)
            do { try check(name, request, try await pool.process(request)) } catch {
                await pool.shutdown()
                throw error
            }
            let kib = peak.withLock { $0 }
            // Nought would be a child that was gone before it answered.
            #expect(kib > 0 && kib <= 256 << 10, "\(name): \(kib) KiB")
        }
        await pool.shutdown()
    }

    @Test("every file has a row, every row a file")
    func complete() {
        let files = names()
        #expect(files == SharedFileTable.rows.keys.sorted())
        #expect(files.filter { $0.hasSuffix(".svg") } == SharedFileTable.drawings.keys.sorted())
    }

    @Test("every file is taken with its sizes or its text, or refused with its reason, and leaves nothing behind")
    func table() async throws {
        try await process(names()) { name, request, answer in
            #expect(SharedFileTable.Outcome(answer) == SharedFileTable.rows[name], "\(name)")
            let written = try FileManager.default.contentsOfDirectory(atPath: request.outputDirectory)
            let announced = answer.image.map { image in ([image.original] + image.variants).map(\.file) } ?? []
            #expect(written.sorted() == announced.sorted(), "\(name)")
            // The text is in the answer; the file lies where it lay.
            #expect(FileManager.default.fileExists(atPath: request.path))
        }
        let folders = try FileManager.default.contentsOfDirectory(atPath: scratch.path)
        #expect(folders.allSatisfy { $0.hasPrefix("out") }, "\(folders)")
    }

    @Test("where they are drawn, every SVG becomes a PNG without anything of its text, or is refused with its reason")
    func drawings() async throws {
        let names = SharedFileTable.drawings.keys.sorted()
        try await process(names, change: { $0.rasterizesSVG = true }) { name, request, answer in
            #expect(SharedFileTable.Outcome(answer) == SharedFileTable.drawings[name], "\(name)")
            let written = try FileManager.default.contentsOfDirectory(atPath: request.outputDirectory)
            let announced = answer.image.map { image in ([image.original] + image.variants).map(\.file) } ?? []
            #expect(written.sorted() == announced.sorted(), "\(name)")
            for file in written {
                let bytes = try Data(contentsOf: URL(fileURLWithPath: request.outputDirectory + "/" + file))
                #expect(bytes.starts(with: [0x89, 0x50, 0x4E, 0x47]))
                for word in ["script", "alert", "svg"] { #expect(bytes.range(of: Data(word.utf8)) == nil) }
            }
        }
    }

    @Test("an application/msword has the words that two other readers find in it")
    func legacyWord() async throws {
        try await process(["docs/tv_valid_legacy_word_document.doc"]) { _, _, answer in
            // As catdoc and antiword have it.
            let expected = "This is a test additional document for the Teaching Vacancies job listing upload flow."
            #expect(words(answer.document?.text ?? "") == words(expected))
        }
    }

    @Test("the text of every good PDF has the words of pdftotext in their order", .enabled(if: pdftotext != nil))
    func pdfReference() async throws {
        let good = SharedFileTable.rows.filter { $0.value.isDocument(.pdf) }.keys.sorted()
        #expect(good.count >= 12)
        try await process(good) { name, _, answer in
            let ours = try #require(answer.document).text
            var theirs = String(
                decoding: try run(try #require(pdftotext), [Self.folder + "/" + name, "-"]), as: UTF8.self)
            // The one difference: a word divided by a soft hyphen is put together by us, and left in two by pdftotext.
            theirs = theirs.replacing("\u{AD}\n", with: "")
            #expect(words(ours) == words(theirs), "\(name)")
        }
    }

    @Test("the text of every good DOCX has the words that stand in its main part, in their order")
    func wordReference() async throws {
        let good = SharedFileTable.rows.filter { $0.value.isDocument(.docx) }.keys.sorted()
        #expect(good.count >= 4)
        try await process(good) { name, _, answer in
            let theirs = try Self.plainWords(ofWord: Self.folder + "/" + name)
            #expect(words(try #require(answer.document).text) == words(theirs), "\(name)")
        }
    }

    /// Another reader, as simple as can be: what stands in `w:t`, with an end of line for each paragraph. None of these
    /// files has headers, notes or changes, which it would not find.
    private static func plainWords(ofWord path: String) throws -> String {
        let archive = try #require(zip_open(path, ZIP_RDONLY, nil))
        defer { zip_discard(archive) }
        let part = try #require(zip_fopen(archive, "word/document.xml", 0))
        defer { zip_fclose(part) }
        var bytes = [UInt8](repeating: 0, count: 4 << 20)
        bytes.removeLast(bytes.count - Int(zip_fread(part, &bytes, zip_uint64_t(bytes.count))))
        let markup = String(decoding: bytes, as: UTF8.self)
        var text = ""
        for match in markup.matches(of: /<w:t(?: [^>]*)?>([^<]*)<\/w:t>|<\/w:p>|<w:tab\/>|<w:br\/>/) {
            text += match.output.1.map(String.init) ?? "\n"
        }
        for (name, character) in [("lt", "<"), ("gt", ">"), ("quot", "\""), ("apos", "'"), ("amp", "&")] {
            text = text.replacing("&\(name);", with: character)
        }
        return text
    }

    @Test("variants have the sizes of vipsthumbnail's", .enabled(if: vipsthumbnail != nil))
    func sizeReference() async throws {
        let good = SharedFileTable.rows.filter { $0.value.isImage }.keys.sorted()
        #expect(good.count >= 28)
        try await process(good) { name, request, answer in
            let image = try #require(answer.image)
            for (variant, box) in SharedFileTable.boxes {
                let ours = image.variants.first { $0.name == variant }
                let output = request.outputDirectory + "/reference.png"
                let program = try #require(vipsthumbnail)
                // ">" leaves alone what fits: then there is no variant of ours.
                _ = try run(program, [request.path, "--size", box + ">", "-o", output])
                let theirs = try Self.sizeOfPNG(output)
                let expected = ours.map { "\($0.width)x\($0.height)" } ?? "\(image.width)x\(image.height)"
                let difference = SharedFileTable.differences["\(name) \(variant)"]
                #expect(difference?.theirs ?? expected == theirs, "\(name) \(variant): \(expected)")
                #expect(difference == nil || difference?.ours == expected, "\(name) \(variant)")
            }
        }
    }

    private static func sizeOfPNG(_ path: String) throws -> String {
        let bytes = Array(try Data(contentsOf: URL(fileURLWithPath: path)).prefix(24))
        let sides = [16, 20].map { start in bytes[start..<(start + 4)].reduce(0) { $0 << 8 | Int($1) } }
        return "\(sides[0])x\(sides[1])"
    }

    private func words(_ text: String) -> [String] { text.split(whereSeparator: \.isWhitespace).map(String.init) }

}

/// What another program says.
func run(_ program: String, _ arguments: [String]) throws -> Data {
    let process = Process()
    let output = Pipe()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    let data = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return data
}

/// The references for text and sizes, when this machine has them: `make test` installs them.
private let pdftotext = reference("/usr/bin/pdftotext", for: "the text of PDFs")
private let vipsthumbnail = reference("/usr/bin/vipsthumbnail", for: "the sizes of variants")

func reference(_ path: String, for what: String) -> String? {
    if FileManager.default.isExecutableFile(atPath: path) { return path }
    print("SKIPPED: \(path) is not there, so nothing is compared with it for \(what).")
    return nil
}
