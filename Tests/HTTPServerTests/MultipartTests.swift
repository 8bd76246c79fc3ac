import EventLoop
import Testing

@testable import HTTPServer

/// What a multipart parser made of a body: each part's field name and content, then how it ended.
private func parse(
    _ input: String, boundary: String = "b", pieces: [Int] = [.max], limits: MultipartLimits = .init()
) -> [String] {
    var seen: [String] = []
    do throws(HTTPError) {
        var parser = try MultipartParser(boundary: boundary, limits: limits)
        var rest = Array(input.utf8)[...]
        var turn = 0
        repeat {
            let piece = rest.prefix(pieces[min(turn, pieces.count - 1)])
            turn += 1
            rest = rest.dropFirst(piece.count)
            parser.feed(Array(piece))
            loop: while true {
                switch try parser.next() {
                case .needsMore: break loop
                case .partBegin(let headers):
                    seen.append(headers.map { "\($0.name)=\($0.value)" }.joined(separator: "|") + ">")
                case .partData(let data): seen[seen.count - 1] += String(decoding: data, as: UTF8.self)
                case .partEnd: seen[seen.count - 1] += "<"
                case .end: seen.append("end")
                }
            }
        } while !rest.isEmpty
        try parser.finish()
    } catch {
        seen.append("\(error.status)")
    }
    return seen
}

@Suite("Multipart bodies")
struct MultipartTests {
    static let accepted: [(String, [String])] = [
        ("--b\r\nA: 1\r\n\r\nx\r\n--b--\r\n", ["A=1>x<", "end"]),
        ("--b\r\nA: 1\r\n\r\nx\r\n--b--", ["A=1>x<", "end"]),
        ("--b\r\nA: 1\r\n\r\nx\r\n--b\r\nB: 2\r\n\r\ny\r\n--b--\r\n", ["A=1>x<", "B=2>y<", "end"]),
        ("preamble\r\n--b\r\n\r\nx\r\n--b--epilogue --b\r\n", [">x<", "end"]),
        ("--b \t\r\nA: 1\r\n\r\n\r\n--b--", ["A=1><", "end"]),
        ("--b\r\nA: 1\r\n\r\n--b--", ["A=1><", "end"]),
        ("--b\r\nA: 1\r\n\r\n\r\n\r\n--b--", ["A=1>\r\n<", "end"]),
        ("--b\r\nA: 1\r\n\r\n--b \r\n--bx\r\n--b--", ["A=1><", "400"]),
        ("--b\r\nA: 1\r\n\r\n-b--b\r--b\n--b\r\n-b\r\n--B\r\n--b--", ["A=1>-b--b\r--b\n--b\r\n-b\r\n--B<", "end"]),
        ("--b--\r\n", ["end"]),
        ("--b\r\nA:\r\nB: x\t\r\n\r\nx\r\n--b--", ["A=|B=x>x<", "end"]),
    ]

    @Test("are taken apart whatever the pieces they come in", arguments: accepted)
    func parts(body: String, expected: [String]) {
        #expect(parse(body) == expected)
        #expect(parse(body, pieces: [1]) == expected)
        for split in 1..<body.utf8.count { #expect(parse(body, pieces: [split, .max]) == expected, "at \(split)") }
    }

    @Test(
        "are refused when malformed or cut off",
        arguments: [
            "", "x", "--b", "--b\r\n", "--b\r\nA: 1", "--b\r\nA: 1\r\n\r\n", "--b\r\nA: 1\r\n\r\nx",
            "--c\r\n\r\nx\r\n--c--",
            "--b\r\nA: 1\r\n\r\nx\r\n--b", "--b\r\nA: 1\r\n\r\nx\r\n--b-", "--b\r\nA: 1\r\n\r\nx\n--b--\n",
            "--bx\r\n\r\n\r\n--b--", "--b\n\r\n\r\nx\r\n--b--", "--b\r\nA 1\r\n\r\nx\r\n--b--",
            "--b\r\n: 1\r\n\r\nx\r\n--b--", "--b\r\nA: 1\r\n B\r\n\r\nx\r\n--b--", "--b\r\nA: \u{0}\r\n\r\nx\r\n--b--",
            "--b\r\nA: 1\rB: 2\r\n\r\nx\r\n--b--", "--b\r\nA: 1\nB: 2\r\n\r\nx\r\n--b--",
        ])
    func refused(body: String) {
        #expect(parse(body).last == "400", "\(parse(body))")
        #expect(parse(body, pieces: [1]).last == "400")
    }

    @Test("hold their limits, and pass just within them")
    func limits() {
        var limits = MultipartLimits()
        limits.partsMax = 2
        limits.partHeadBytesMax = 20
        limits.preambleBytesMax = 10
        let part = "--b\r\n\r\nx\r\n"
        #expect(parse(part + part + "--b--", limits: limits).last == "end")
        #expect(parse(part + part + part + "--b--", limits: limits).last == "413")
        for pieces in [[Int.max], [1]] {
            let fits = "--b\r\nA: 345678901234567\r\n\r\nx\r\n--b--"
            #expect(parse(fits, pieces: pieces, limits: limits).last == "end")
            let large = "--b\r\nA: 3456789012345678901\r\n\r\nx\r\n--b--"
            #expect(parse(large, pieces: pieces, limits: limits).last == "400")
            let endless = "--b\r\nA: " + String(repeating: "x", count: 99)
            #expect(parse(endless, pieces: pieces, limits: limits).last == "400")
        }
        for pieces in [[Int.max], [1]] {
            #expect(parse("12345678\r\n--b--", pieces: pieces, limits: limits).last == "end")
            #expect(parse("123456789\r\n--b--", pieces: pieces, limits: limits).last == "400")
        }
        #expect(parse("123456789012345678901234567890", pieces: [1], limits: limits).last == "400")
    }

    @Test("have boundaries of 1 to 70 characters")
    func boundary() {
        let long = String(repeating: "a", count: 70)
        #expect(parse("--\(long)\r\n\r\nx\r\n--\(long)--", boundary: long) == [">x<", "end"])
        for bad in ["", long + "a", "a ", "a\r\n", "a\"", "é"] {
            #expect(parse("", boundary: bad) == ["400"], "\(bad)")
        }
    }

    @Test(
        "header values have parameters, quoted or not",
        arguments: [
            ("form-data; name=a", ["name": "a"]), ("form-data;name=\"a;b\" ; x=y", ["name": "a;b", "x": "y"]),
            ("form-data; name=\"a\\\"b\\\\c\\d\"", ["name": "a\"b\\c\\d"]), ("form-data", [:]), ("form-data;", [:]),
            ("form-data; NAME=\"é\"; filename*=UTF-8''x", ["name": "é", "filename*": "UTF-8''x"]),
        ])
    func headerValue(text: String, expected: [String: String]) {
        #expect(HeaderValue(text)?.parameters == expected)
    }

    @Test(
        "header values that are malformed are nothing",
        arguments: [
            "", "; a=b", "form-data; name", "form-data; =a", "form-data; name=", "form-data; name=\"a", "a; b=c d",
            "a; b=1; b=2",
        ])
    func headerValueRefused(text: String) {
        #expect(HeaderValue(text) == nil)
    }
}

@Suite("The reader of multipart requests")
struct MultipartReaderTests {
    private func request(_ body: String, type: String = "multipart/form-data; boundary=b", on loop: EventLoop) throws
        -> HTTPRequest
    {
        try HTTPRequest(.post, "/", headers: ["Content-Type": type], body: Array(body.utf8), on: loop)
    }

    @Test("gives names, file names and contents, and skips what is not asked for")
    func reads() async throws {
        let loop = EventLoop(name: "multipart")
        let disposition = "--b\r\nContent-Disposition: form-data; "
        let body =
            disposition + "name=\"a%22b\"\r\n\r\none\r\n" + disposition
            + "name=cv; filename=\"x%0D%0A%25.pdf\"; filename*=UTF-8''evil\r\n"
            + "Content-Type: application/pdf\r\n\r\nskipped\r\n"
            + disposition + "name=c\r\n\r\nthree\r\n--b--\r\n"
        var reader = try MultipartReader(try request(body, type: "Multipart/Form-Data; Boundary=\"b\"", on: loop))
        let first = try await reader.nextPart()
        #expect(first?.name == "a\"b" && first?.filename == nil && first?.contentType == nil)
        #expect(try await reader.collect(max: 3) == bytes("one"))
        #expect(try await reader.next() == nil)
        let second = try await reader.nextPart()
        #expect(second?.name == "cv" && second?.filename == "x\r\n%25.pdf")
        #expect(second?.contentType == "application/pdf")
        #expect(try await reader.nextPart()?.name == "c")
        await #expect(throws: HTTPError.self) { try await reader.collect(max: 4) }
        #expect(try await reader.nextPart() == nil)
        #expect(try await reader.nextPart() == nil)
        await loop.stop()
    }

    @Test("refuses other types, missing boundaries and parts without a name")
    func refuses() async throws {
        let loop = EventLoop(name: "multipart")
        for (type, status) in [
            ("application/json", 415), ("multipart/mixed; boundary=b", 415), ("multipart/form-data", 400),
            ("multipart/form-data; boundary=\"\"", 400), ("multipart/form-data; boundary=b; boundary=c", 415),
        ] {
            let request = try request("", type: type, on: loop)
            do {
                _ = try MultipartReader(request)
                Issue.record("\(type) was taken")
            } catch { #expect(error.status == status) }
        }
        for head in ["", "Content-Disposition: attachment; name=a", "Content-Disposition: form-data"] {
            var reader = try MultipartReader(try request("--b\r\n\(head)\r\n\r\nx\r\n--b--", on: loop))
            do {
                _ = try await reader.nextPart()
                Issue.record("\(head) was taken")
            } catch { #expect((error as? HTTPError)?.status == 400) }
        }
        await loop.stop()
    }
}
