import EventLoop
import Seeded
import Testing

@testable import HTTPServer

/// A form made by chance, and how it stands in a body.
private struct RandomForm {
    struct Part: Equatable {
        let name: String
        let filename: String?
        let type: String?
        let content: [UInt8]

        /// As browsers write it (HTML, "multipart/form-data encoding algorithm"); a backslash as RFC 9110 has it.
        private static func quoted(_ text: String) -> String {
            // Scalar by scalar: for Swift a CRLF is one character.
            let escapes: [Unicode.Scalar: String] = ["\\": "\\\\", "\"": "%22", "\r": "%0D", "\n": "%0A"]
            return "\"" + text.unicodeScalars.map { escapes[$0] ?? String($0) }.joined() + "\""
        }

        var lines: [String] {
            let file = filename.map { "; filename=" + Self.quoted($0) } ?? ""
            let disposition = "Content-Disposition: form-data; name=" + Self.quoted(name) + file
            return [disposition] + (type.map { ["Content-Type: " + $0] } ?? [])
        }
    }

    let boundary: String
    let parts: [Part]
    private(set) var body: [UInt8] = []
    /// Where each part's content begins in the body.
    private(set) var starts: [Int] = []

    private static let letters = Array("abcXYZ019'()+_,-./:=?").map(String.init)
    private static let nameParts = [
        "a", "cv", "../", "é", "😀", "\u{202E}", "\"", "\r\n", "\\", "CON", ";", "=", " ", "名", "n0",
    ]

    init(_ fuzz: inout FuzzCase) {
        boundary = fuzz.pick(Self.letters) + fuzz.text(of: Self.letters, max: 69)
        var parts: [Part] = []
        for _ in 0..<fuzz.number(0...4) {
            let isFile = fuzz.once(in: 2)
            parts.append(
                Part(
                    name: fuzz.text(of: Self.nameParts, max: 5),
                    filename: isFile ? fuzz.text(of: Self.nameParts, max: 60) : nil,
                    type: fuzz.once(in: 2) ? fuzz.pick(["application/pdf", "a/b; charset=\"c\"", "x"]) : nil,
                    content: Self.content(&fuzz, boundary)))
        }
        self.parts = parts
        encode(&fuzz)
    }

    /// Bytes full of what almost is the boundary, which it must not be.
    private static func content(_ fuzz: inout FuzzCase, _ boundary: String) -> [UInt8] {
        let almost = [
            "\r\n--" + boundary.dropLast(), "\n--" + boundary, "\r--" + boundary, "\r\n-" + boundary, "--", "\r\n",
            "\r\n\r\n", "\r", "x", "--" + boundary + "--",
        ]
        var content: [UInt8] = []
        for _ in 0..<fuzz.number(0...12) {
            content += fuzz.once(in: 3) ? fuzz.bytes(fuzz.number(0...200)) : Array(fuzz.pick(almost).utf8)
        }
        let isBoundary = (bytes("\r\n") + content).contains(sequence: bytes("\r\n--" + boundary))
        return isBoundary ? bytes("no boundary") : content
    }

    private mutating func encode(_ fuzz: inout FuzzCase) {
        if fuzz.once(in: 4) { body += bytes("For old readers.\r\n") }
        for part in parts {
            body += bytes("--" + boundary + (fuzz.once(in: 8) ? " \t" : "") + "\r\n")
            body += part.lines.flatMap { bytes($0 + "\r\n") } + bytes("\r\n")
            starts.append(body.count)
            body += part.content + bytes("\r\n")
        }
        body += bytes("--" + boundary + "--")
        if fuzz.once(in: 2) { body += bytes("\r\n") }
        if fuzz.once(in: 8) { body += fuzz.bytes(30) }
    }
}

/// What a parser made of a body.
private struct ReadForm: Equatable {
    struct Part: Equatable {
        var lines: [String]
        var content: [UInt8] = []
        var isWhole = false
    }

    var parts: [Part] = []
    /// `end`, or the status of the refusal.
    var outcome = ""
    /// The most of a content that was held back at once, when everything that was there had been asked for.
    var heldBytes = 0

    /// - Parameter starts: where each part's content begins, if that is known.
    init(_ pieces: [[UInt8]], boundary: String, starts: [Int] = []) {
        var fed = 0
        do throws(HTTPError) {
            var parser = try MultipartParser(boundary: boundary)
            for piece in pieces {
                parser.feed(piece)
                fed += piece.count
                try take(&parser)
                if outcome.isEmpty, let part = parts.last, !part.isWhole, starts.count >= parts.count {
                    heldBytes = max(heldBytes, fed - starts[parts.count - 1] - part.content.count)
                }
            }
            try parser.finish()
        } catch {
            outcome = "\(error.status)"
        }
    }

    private mutating func take(_ parser: inout MultipartParser) throws(HTTPError) {
        while true {
            switch try parser.next() {
            case .needsMore: return
            case .partBegin(let headers): parts.append(Part(lines: headers.map { "\($0.name): \($0.value)" }))
            case .partData(let data): parts[parts.count - 1].content += data
            case .partEnd: parts[parts.count - 1].isWhole = true
            case .end: outcome = "end"
            }
        }
    }

    static func == (one: ReadForm, other: ReadForm) -> Bool { one.parts == other.parts && one.outcome == other.outcome }

    /// The same form with another boundary.
    func encoded(_ boundary: String) -> [UInt8] {
        let mark = "--" + boundary
        return parts.flatMap { part in
            bytes(mark + "\r\n") + part.lines.flatMap { bytes($0 + "\r\n") } + bytes("\r\n") + part.content
                + bytes("\r\n")
        } + bytes(mark + "--")
    }
}

extension [UInt8] {
    fileprivate func contains(sequence: [UInt8]) -> Bool {
        indices.contains { self[$0...].starts(with: sequence) }
    }
}

@Suite("Multipart bodies, by chance") struct MultipartFuzz {
    private static let words = [
        "\r\n--b\r\n", "\r\n\r\n", "--", "--\r\n", "Content-Disposition: form-data; name=x", "\"", "\r", "\n", ": ",
        "filename*=UTF-8''x", "%22", ";", "\0",
    ]

    @Test("give the same parts however they are cut, the parts that were sent, and the same once more")
    func multipart() async throws {
        let loop = EventLoop(name: "fuzz")
        do {
            try await Fuzz("multipart", rounds: 2_000).runAsync { fuzz in
                let form = RandomForm(&fuzz)
                let isHarmed = fuzz.once(in: 2)
                fuzz.input = isHarmed ? fuzz.mutated(form.body, words: Self.words) : form.body
                let whole = ReadForm([fuzz.input], boundary: form.boundary)
                for _ in 0..<2 {
                    let pieces = fuzz.split(fuzz.input)
                    let cut = ReadForm(pieces, boundary: form.boundary, starts: isHarmed ? [] : form.starts)
                    try fuzz.checkEqual(cut, whole, "in pieces of \(pieces.map(\.count).prefix(20))")
                    // A boundary that is almost there, and the line end before it.
                    let heldMax = form.boundary.utf8.count + 4
                    try fuzz.check(cut.heldBytes <= heldMax, "\(cut.heldBytes) bytes of content were held back")
                }
                if !isHarmed { try await Self.asSent(form, whole, &fuzz, loop) }
                guard whole.outcome == "end" else { return }
                // No content has this, as no piece of one is so long.
                let other = String(repeating: "z", count: 70)
                let again = ReadForm([whole.encoded(other)], boundary: other)
                try fuzz.checkEqual(again, whole, "written anew")
            }
        } catch {
            await loop.stop()
            throw error
        }
        await loop.stop()
    }

    private static func asSent(
        _ form: RandomForm, _ whole: ReadForm, _ fuzz: inout FuzzCase, _ loop: EventLoop
    ) async throws {
        try fuzz.checkEqual(whole.outcome, "end", "its end")
        try fuzz.checkEqual(whole.parts.map(\.content), form.parts.map(\.content), "contents")
        let type = "multipart/form-data; boundary=\"\(form.boundary)\""
        var reader = try MultipartReader(
            try HTTPRequest(.post, "/", headers: ["Content-Type": type], body: fuzz.input, on: loop))
        for sent in form.parts {
            let part = try await reader.nextPart()
            // One in two is skipped, which must not harm the next.
            let content = fuzz.once(in: 2) ? try await reader.collect(max: sent.content.count) : sent.content
            let read = part.map {
                RandomForm.Part(name: $0.name, filename: $0.filename, type: $0.contentType, content: content)
            }
            try fuzz.checkEqual(read, sent, "a part as the reader gives it")
        }
        try fuzz.check(try await reader.nextPart() == nil, "a part too many")
    }
}
