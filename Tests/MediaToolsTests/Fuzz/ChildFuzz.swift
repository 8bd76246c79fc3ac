import Foundation
import Resume
import Seeded
import Synchronization
import Testing

@testable import MediaTools

/// What goes between a worker and its children, from either side.
@Suite("The children, by chance", .serialized) struct ChildFuzz {
    let scratch: Scratch

    init() throws {
        scratch = try Scratch()
        // Writing to a child that has ended is to be an error, as in the pool's threads.
        signal(SIGPIPE, SIG_IGN)
    }

    private func configuration(_ executable: String = workerProgram) -> MediaChildPool.Configuration {
        var configuration = MediaChildPool.Configuration(executable: executable, roots: [scratch.path])
        configuration.children = 1
        return configuration
    }

    private static func framed(_ message: [UInt8]) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: message.count >> (24 - $0 * 8)) } + message
    }

    // MARK: Frames

    @Test("messages come out of a pipe as they went in, however they are cut; one that is cut off or too long is none")
    func messages() throws {
        try Fuzz("messages", rounds: 400).run { fuzz in
            let messages = (0..<fuzz.number(0...4)).map { _ in
                fuzz.bytes(fuzz.once(in: 10) ? fuzz.number(0...90_000) : fuzz.number(0...300))
            }
            let whole = messages.flatMap(Self.framed)
            // Cut off, or followed by a length that nobody may ask for.
            let end = fuzz.number(0...2)
            let rest: [UInt8] = end == 1 ? [UInt8(fuzz.number(1...255)), 0, 0, 1] : []
            fuzz.input = end == 2 ? Array(whole.dropLast(fuzz.number(0...whole.count))) : whole + rest
            let (read, failure) = try Self.read(fuzz.split(fuzz.input, sizeMax: 20_000))
            try fuzz.checkEqual(failure, end == 1 ? .tooLong : .ended, "how it ended")
            try fuzz.check(read == Array(messages.prefix(read.count)), "other messages than were written")
            let lost = messages.count - read.count
            try fuzz.check(lost == 0 || end == 2, "\(lost) messages lost")
        }
    }

    /// What a reader makes of these writes to a pipe.
    private static func read(_ pieces: [[UInt8]]) throws -> ([[UInt8]], Frames.Failure) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw FuzzCase.Broken(description: "no pipe") }
        let (output, input) = (ends[0], ends[1])
        defer { close(output) }
        let writer = Thread {
            for piece in pieces {
                var sent = 0
                while sent < piece.count {
                    let count = piece[sent...].withUnsafeBytes { write(input, $0.baseAddress, $0.count) }
                    if count <= 0 { break }
                    sent += count
                }
            }
            close(input)
        }
        writer.start()
        var messages: [[UInt8]] = []
        do throws(Frames.Failure) {
            while true { messages.append(Array(try Frames.read(from: output))) }
        } catch {
            // Whoever still writes is not to wait for a reader.
            var rest = [UInt8](repeating: 0, count: 1 << 16)
            while Glibc.read(output, &rest, rest.count) > 0 {}
            return (messages, error)
        }
    }

    // MARK: A child that is asked nonsense

    @Test("a child takes a request, or ends by itself; it neither hangs nor is it ended by a signal")
    func requests() throws {
        let file = try scratch.file("cv.pdf", Samples.pdf(pages: ["Curriculum"]))
        let request = MediaRequest(
            kind: .any, path: file, outputDirectory: try scratch.folder(),
            resumeIn: Resume.Month(year: 2026, month: 11))
        let good = Array(try JSONEncoder().encode(request))
        let words = ["null", "\"\"", "{}", "\"kind\":", "\"/proc/self/environ\"", "-1", "1e99", "\\u0000", "/../"]
        try Fuzz("requests", rounds: 30).run { fuzz in
            let child = try ChildProcess(configuration(), ChildOptions())
            for _ in 0..<10 {
                fuzz.input = fuzz.once(in: 4) ? good : fuzz.mutated(good, words: words)
                do throws(ChildProcess.Failure) {
                    let deadline = ContinuousClock.now + .seconds(60)
                    _ = try child.process(Data(fuzz.input), deadline: deadline, onTaken: { _ in })
                    let asked = try? JSONDecoder().decode(MediaRequest.self, from: Data(fuzz.input))
                    if asked == nil { return try Self.fail("an answer to what is no request") }
                } catch {
                    // It ended when it could not read the request, before it took anything.
                    if error == .gone, fuzz.input != good { return }
                    throw error
                }
            }
        }
    }

    private static func fail(_ reason: String) throws(ChildProcess.Failure) { throw .notStarted(reason) }

    // MARK: A child that answers nonsense

    @Test("a child that says anything at all is one crashed file, or an answer, and never harms who listens")
    func answers() throws {
        let image = MediaImage(
            source: .jpeg, width: 1, height: 1, frames: 1,
            original: MediaVariant(name: .original, type: .jpeg, width: 1, height: 1, bytes: 1), variants: [])
        let document = MediaDocument(type: .pdf, pages: 1, textOutcome: .extracted, text: "a", pageOffsets: [0])
        let said: [MediaAnswer] = [.image(image), .document(document), .rejected(.broken), .failed("disk")]
        let hello = try Self.message(MediaHello(networkDenied: true, processesDenied: true, filesDenied: true))
        let program = scratch.path + "/child"
        let words = scratch.path + "/words"
        // It listens before it answers: one that is gone by then has not taken the request.
        let script = """
            #!/bin/sh
            head -c \(hello.count) \(words)
            head -c 5 >/dev/null
            exec tail -c +\(hello.count + 1) \(words)
            """
        try Data(script.utf8).write(to: URL(fileURLWithPath: program))
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: program)
        try Fuzz("answers", rounds: 200).run { fuzz in
            let answer = fuzz.pick(said)
            let frames = [hello, Self.framed([]), try Self.message(answer)]
            var spoken = frames
            let isHarmed = fuzz.number(0...3) > 0
            // The hello is left whole most times: behind it more can go wrong.
            let first = fuzz.once(in: 6) ? 0 : 1
            if isHarmed {
                let rest = spoken[first...].flatMap { $0 }
                spoken = Array(spoken[..<first]) + [fuzz.mutated(rest, words: ["\0\0\0\0", "{}", "null"])]
            }
            fuzz.input = spoken.flatMap { $0 }
            try Data(fuzz.input).write(to: URL(fileURLWithPath: words))
            do throws(ChildProcess.Failure) {
                var configuration = configuration(program)
                // One that says too little is waited for.
                if isHarmed, first == 0 { configuration.startDeadline = .milliseconds(200) }
                let child = try ChildProcess(configuration, ChildOptions())
                let deadline = ContinuousClock.now + .seconds(60)
                let heard = try child.process(Data("{}".utf8), deadline: deadline, onTaken: { _ in })
                if !isHarmed, heard != answer { try Self.fail("heard \(heard), said was \(answer)") }
            } catch {
                switch error {
                case .gone, .crashed: try fuzz.check(isHarmed, "\(error) without cause")
                case .notStarted(let reason): try fuzz.check(isHarmed && first == 0, reason)
                case .timedOut, .givenUp: throw error
                }
            }
        }
    }

    private static func message(_ value: some Encodable) throws -> [UInt8] {
        framed(Array(try JSONEncoder().encode(value)))
    }

    // MARK: Files

    @Test("harmed files get an answer each, and the children stay within 256 MiB")
    func files() async throws {
        let peak = Mutex(0)
        var probe = MediaChildPool.Probe()
        probe.peakKiB = { kib in peak.withLock { $0 = max($0, kib) } }
        _ = try MediaProcessor()
        let samples = try [
            Samples.image(.jpeg, width: 64, height: 48, in: scratch),
            Samples.image(.png, width: 64, height: 48, in: scratch),
            Samples.image(.webp, width: 64, height: 48, in: scratch), Samples.gif(width: 60, height: 40, frames: 3),
            Samples.tiff(width: 40, height: 30), Samples.pdf(pages: ["Curriculum", "Vitae"]),
            WordFile(body: WordFile.paragraph("Curriculum")).bytes(in: scratch),
            OpenDocumentFile(body: OpenDocumentFile.paragraph("Curriculum")).bytes(in: scratch),
            LegacyWordFile(narrow: Array("Curriculum\r".utf8)).bytes(), Array(#"{\rtf1 Curriculum}"#.utf8),
        ]
        let pool = MediaChildPool(configuration(), probe: probe)
        let words = ["endobj", "stream", "<< /Length 99999999 >>", "/Kids [1 0 R]", "IDAT", "PK\u{1}\u{2}", "IHDR"]
        do {
            try await Fuzz("files", rounds: 300).runAsync { fuzz in
                let sample = fuzz.pick(samples)
                // What it is shows in its first bytes.
                let headBytes = fuzz.once(in: 4) ? 0 : 8
                fuzz.input = sample.prefix(headBytes) + fuzz.mutated(Array(sample.dropFirst(headBytes)), words: words)
                let request = try scratch.request(scratch.file("fuzz", fuzz.input))
                let answer = try await pool.process(request)
                if case .failed(let reason) = answer { try fuzz.check(false, reason) }
                try fuzz.check(answer.rejection != .crashed, "it ended its child")
                try fuzz.check(answer.rejection != .timedOut, "it took too long")
                let peak = peak.withLock { $0 }
                try fuzz.check(peak <= 256 << 10, "\(peak) KiB")
                try FileManager.default.removeItem(atPath: request.outputDirectory)
            }
        } catch {
            await pool.shutdown()
            throw error
        }
        await pool.shutdown()
    }
}
