import Foundation
import Resume
import Seeded
import Synchronization
import Testing

@testable import MediaTools

/// CVs that are pictures, through real children. Skipped where tesseract is not installed.
@Suite(.enabled(if: hasTesseract)) struct ScanTests {
    let scratch: Scratch
    init() throws { scratch = try Scratch() }

    private let pages = ["Curriculum Vitae of Jane Doe", "jane@example.org Swift, PostgreSQL"]

    /// What becomes of a CV, and whether somebody was told of a scan that was not read.
    private func read(
        _ file: String, kind: MediaRequest.Kind = .cv, limits: MediaLimits = MediaLimits(),
        probe: MediaChildPool.Probe = MediaChildPool.Probe(),
        change: (inout MediaChildPool.Configuration) -> Void = { _ in }
    ) async throws -> (document: MediaDocument, failures: [String]) {
        let failures = Mutex<[String]>([])
        let peak = Mutex(0)
        var probe = probe
        probe.peakKiB = { kib in peak.withLock { $0 = max($0, kib) } }
        var configuration = MediaChildPool.Configuration(
            executable: workerProgram, roots: [scratch.path] + (sharedFiles.map { [$0] } ?? []))
        configuration.children = 1
        configuration.scanLanguages = ["eng"]
        configuration.scanFailed = { reason in failures.withLock { $0.append(reason) } }
        change(&configuration)
        let pool = MediaChildPool(configuration, probe: probe)
        let request = MediaRequest(
            kind: kind, path: file, outputDirectory: try scratch.folder(), limits: limits,
            resumeIn: Resume.Month(year: 2026, month: 1))
        let answer: MediaAnswer
        do { answer = try await pool.process(request) } catch {
            await pool.shutdown()
            throw error
        }
        await pool.shutdown()
        let kib = peak.withLock { $0 }
        #expect(kib > 0 && kib <= 256 << 10, "\(kib) KiB")
        return (try #require(answer.document), failures.withLock { $0 })
    }

    private func words(_ text: String) -> [String] {
        text.split(whereSeparator: \.isWhitespace).map(String.init)
    }

    @Test("the words of a scan are read, page by page, and what they say as a CV with its place")
    func known() async throws {
        let (document, failures) = try await read(scan(pages))
        #expect(document.textOutcome == .scanned && document.pages == 2 && failures.isEmpty)
        #expect(words(document.text) == words(pages.joined(separator: " ")))
        try #require(document.pageOffsets.count == 2)
        let second = String(decoding: Array(document.text.utf8)[document.pageOffsets[1]...], as: UTF8.self)
        #expect(words(second) == words(pages[1]))
        let email = try #require(document.resume?.emails.first)
        #expect(email.value == "jane@example.org" && email.place.page == 2)
        #expect(document.resume.map { Set($0.skills.map(\.value)) } == ["Swift", "PostgreSQL"])
    }

    @Test("the photograph of a CV is read as well as it can be", .enabled(if: sharedFiles != nil))
    func shared() async throws {
        let file = try #require(sharedFiles) + "/pdf/gen_resume_no_text_layer.pdf"
        let (document, _) = try await read(file)
        #expect(document.textOutcome == .scanned && document.pageOffsets == [0])
        #expect(document.text.contains("Bachelor of Arts in Computer Science"))
        #expect(document.text.contains("Developed a REST API using FastAPI and PostgreSQL"))
        let resume = try #require(document.resume)
        #expect(resume.name?.value == "Jake Gutierrez")
        let skills = resume.skills.map(\.value)
        for skill in ["Java", "FastAPI", "PostgreSQL", "React", "Docker"] { #expect(skills.contains(skill)) }
    }

    @Test("a picture without words is what it was: a document that people can look at")
    func wordless() async throws {
        // A whole page of specks is the most that a reader can be given.
        var generator = SeededGenerator(seed: 5)
        let (width, height) = (2480, 3508)
        let grey = [UInt8](unsafeUninitializedCapacity: width * height) { buffer, filled in
            for index in stride(from: 0, to: width * height, by: 8) {
                buffer.baseAddress.map { UnsafeMutableRawPointer($0 + index) }?
                    .storeBytes(of: generator.next(), as: UInt64.self)
            }
            filled = width * height
        }
        let picture = PageImage(width: width, height: height, dotsPerInch: 300, grey: grey)
        let (document, failures) = try await read(try scratch.file("noise.pdf", Self.pdf([picture])))
        #expect(document.textOutcome == .none && document.text.isEmpty && failures.isEmpty)
    }

    @Test("only CVs are read, and only where it is wanted and the language is there")
    func unwanted() async throws {
        let file = try scan(pages)
        #expect(try await read(file, kind: .any).document.textOutcome == .none)
        #expect(try await read(file, change: { $0.scanLanguages = [] }).document.textOutcome == .none)
        #expect(try await read(file, change: { $0.scanLanguages = ["xyz"] }).document.textOutcome == .none)
        let typed = try scratch.file("typed.pdf", Samples.pdf(pages: pages))
        #expect(try await read(typed).document.textOutcome == .extracted)
    }

    @Test("of a long scan the first pages are read, of one that takes too long what there was time for")
    func limits() async throws {
        let file = try scan(pages)
        var limits = MediaLimits()
        limits.scanPagesMax = 1
        let (first, _) = try await read(file, limits: limits)
        #expect(first.textOutcome == .scanned && first.pages == 2 && first.pageOffsets == [0])
        #expect(words(first.text) == words(pages[0]))
        limits.scanSecondsMax = 0
        #expect(try await read(file, limits: limits).document.textOutcome == .none)
    }

    @Test("a reader that ends or does not answer costs no CV, and somebody is told")
    func failures() async throws {
        let file = try scan(pages)
        let taken = Mutex<[pid_t]>([])
        var probe = MediaChildPool.Probe()
        probe.taken = { pid in
            let count = taken.withLock { pids in
                pids.append(pid)
                return pids.count
            }
            if count == 2 { kill(pid, SIGKILL) }
            if count == 4 { kill(pid, SIGSTOP) }
        }
        let (crashed, reasons) = try await read(file, probe: probe)
        #expect(crashed.textOutcome == .none && reasons == ["crashed"])
        let (late, others) = try await read(file, probe: probe, change: { $0.scanDeadline = .seconds(1) })
        #expect(late.textOutcome == .none && others == ["timedOut"])
        #expect(Set(taken.withLock { $0 }).count == 4)
    }

    @Test("scans leave a child to what takes moments, and the end of the pool ends them")
    func admission() async throws {
        let file = try scan(pages)
        let (taken, continuation) = AsyncStream<pid_t>.makeStream()
        var probe = MediaChildPool.Probe()
        // The second that takes the first CV is its reader, which stops here for good.
        let count = Mutex(0)
        probe.taken = { pid in
            guard
                count.withLock({
                    $0 += 1
                    return $0 == 2
                })
            else { return }
            kill(pid, SIGSTOP)
            continuation.yield(pid)
        }
        var configuration = MediaChildPool.Configuration(executable: workerProgram, roots: [scratch.path])
        configuration.scanLanguages = ["eng"]
        configuration.scanDeadline = .seconds(600)
        let pool = MediaChildPool(configuration, probe: probe)
        func request(_ path: String) throws -> MediaRequest {
            MediaRequest(kind: .cv, path: path, outputDirectory: try scratch.folder(), limits: MediaLimits())
        }
        let first = Task { [request = try request(file)] in try await pool.process(request) }
        var iterator = taken.makeAsyncIterator()
        let reader = try #require(await iterator.next())
        await #expect(throws: MediaPoolError.scansBusy) { try await pool.process(try request(file)) }
        let typed = try scratch.file("typed.pdf", Samples.pdf(pages: pages))
        #expect(try await pool.process(try request(typed)).document?.textOutcome == .extracted)
        // Not in ten minutes.
        await pool.shutdown()
        await #expect(throws: MediaPoolError.shutDown) { try await first.value }
        #expect(kill(reader, 0) == -1)
    }

    // MARK: Scans

    /// A PDF whose pages are pictures of these words.
    private func scan(_ pages: [String]) throws -> String {
        // Whatever font stands in for it has letters of the same width: those of another one would stand apart.
        let words = Samples.pdf(pages: pages, font: "Courier")
        guard let typed = OpenFile(path: try scratch.file("words.pdf", words)) else {
            throw CocoaError(.fileNoSuchFile)
        }
        let pdf = try PDFFile(typed, pagesMax: 10)
        return try scratch.file("scan.pdf", Self.pdf(try pages.indices.map { try #require(pdf.picture(of: $0)) }))
    }

    private static func pdf(_ pictures: [PageImage]) -> [UInt8] {
        var objects: [[UInt8]] = ["<< /Type /Catalog /Pages 2 0 R >>"].map { Array($0.utf8) }
        let kids = pictures.indices.map { "\(3 + $0 * 3) 0 R" }.joined(separator: " ")
        objects.append(Array("<< /Type /Pages /Count \(pictures.count) /Kids [\(kids)] >>".utf8))
        for (index, picture) in pictures.enumerated() {
            let (number, across, down) = (3 + index * 3, picture.width * 72 / 300, picture.height * 72 / 300)
            objects.append(
                Array(
                    ("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 \(across) \(down)] /Contents \(number + 1) 0 R "
                        + "/Resources << /XObject << /I \(number + 2) 0 R >> >> >>").utf8))
            let drawing = "q \(across) 0 0 \(down) 0 0 cm /I Do Q"
            objects.append(Array("<< /Length \(drawing.utf8.count) >>\nstream\n\(drawing)\nendstream".utf8))
            objects.append(
                Array(
                    ("<< /Type /XObject /Subtype /Image /Width \(picture.width) /Height \(picture.height) "
                        + "/ColorSpace /DeviceGray /BitsPerComponent 8 /Length \(picture.grey.count) >>\nstream\n").utf8
                )
                    + picture.grey + Array("\nendstream".utf8))
        }
        // Readers find the objects without a table, too.
        var pdf = Array("%PDF-1.4\n".utf8)
        for (index, object) in objects.enumerated() {
            pdf += Array("\(index + 1) 0 obj\n".utf8) + object + Array("\nendobj\n".utf8)
        }
        return pdf + Array("trailer\n<< /Size \(objects.count + 1) /Root 1 0 R >>\n%%EOF\n".utf8)
    }
}

@Suite struct ScanLanguagesTests {
    @Test("languages are tesseract's names, four at most")
    func names() {
        #expect(ScanLanguages.list("eng") == ["eng"])
        #expect(ScanLanguages.list("eng+deu+chi_sim+fra") == ["eng", "deu", "chi_sim", "fra"])
        for text in ["eng+deu+chi_sim+fra+spa", "", "eng+", "../eng", "eng deu", "eng,deu", "en\0g"] {
            #expect(ScanLanguages.list(text) == nil, "\(text)")
        }
        #expect(ScanLanguages.installed(of: ["no_such"]).isEmpty)
    }

    @Test("a child's options survive its command line, and no other word is taken")
    func options() {
        var options = ChildOptions()
        for languages in [[], ["eng"], ["eng", "deu"]] {
            options.scanLanguages = languages
            options.rasterizesSVG.toggle()
            var roots: [String] = []
            #expect(ChildOptions(options.words + ["/a", "/b"], roots: &roots) == options && roots == ["/a", "/b"])
        }
        var roots: [String] = []
        #expect(ChildOptions(["--png", "/a"], roots: &roots) == nil)
        #expect(ChildOptions(["a"], roots: &roots) == nil)
    }
}

private let hasTesseract: Bool = {
    if !ScanLanguages.installed(of: ["eng"]).isEmpty { return true }
    print("SKIPPED: tesseract-ocr is not installed, so no scan is read.")
    return false
}()
