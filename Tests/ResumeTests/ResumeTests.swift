import Resume
import Seeded
import Testing

private func read(_ text: String, pages: [Int] = [0], links: [Resume.Link] = []) -> Resume {
    Resume.read(text, pageOffsets: pages, links: links, now: Resume.Month(year: 2026, month: 1))
}

@Suite("What a CV says") struct ResumeTests {
    @Test(
        "mail addresses are found, also hidden ones; what only looks like one is not",
        arguments: [
            ("Mail: a.b+c@mail.example.org.", ["a.b+c@mail.example.org"]), ("<x@y.de>;z@y.de", ["x@y.de", "z@y.de"]),
            ("jane (at) example (dot) org", ["jane@example.org"]), ("jane [at] example.org", ["jane@example.org"]),
            ("A@B.ORG a@b.org", ["A@B.ORG"]), ("a@b", []), ("@b.org", []), ("a@.org", []), ("a@b..org", []),
            ("meet me at example", []), ("a@b.o1", []), ("user@host", []),
        ] as [(String, [String])])
    func emails(text: String, expected: [String]) { #expect(read(text).emails.map(\.value) == expected) }

    @Test(
        "telephone numbers are found; dates, codes and accounts are none",
        arguments: [
            ("+49 (0)30 9018-20", ["+49 (0)30 9018-20"]), ("(415) 555-0132", ["(415) 555-0132"]),
            ("Tel.: 030 2019 4455", ["030 2019 4455"]), ("06 12 34 56 78", ["06 12 34 56 78"]),
            ("00961 3 123 456", ["00961 3 123 456"]), ("m: 12 34 56 78", ["12 34 56 78"]),
            ("+1\u{A0}604\u{2011}555\u{2011}0199", ["+1\u{A0}604\u{2011}555\u{2011}0199"]),
            ("2018 - 2020", []), ("03/2018 – 06/2021", []), ("01.02.1990", []), ("2018-05-01", []), ("12 34 56 78", []),
            ("ISBN 978-3-16-148410-0", []), ("DE89 3704 0044 0532 0130 00", []), ("No. 0123456789", []),
            ("12345678", []), ("+123456", []), ("+1234567890123456", []), ("0123456789a", []),
        ] as [(String, [String])])
    func phones(text: String, expected: [String]) { #expect(read(text).phones.map(\.value) == expected) }

    @Test(
        "links are found with and without a scheme; tools and sentences are none",
        arguments: [
            ("see https://example.org/a_b?c=d.", ["https://example.org/a_b?c=d"]),
            ("GitHub:github.com/jane", ["github.com/jane"]), ("(www.jane.studio)", ["www.jane.studio"]),
            ("jane.dev", ["jane.dev"]), ("ASP.NET, Node.js, Socket.io", []), ("the end.It went", []),
            ("javascript://x.org", []), ("jane@jane.dev", []), ("version 1.2.3", []), ("file.docx", []),
        ] as [(String, [String])])
    func links(text: String, expected: [String]) { #expect(read(text).links.map(\.value) == expected) }

    @Test("what stands behind a word counts once, with the word's place")
    func linksBehind() {
        let resume = read(
            "Mail\nProfile github.com/jane", pages: [0, 5],
            links: [
                Resume.Link(offset: 0, target: "mailto:jane@example.org?subject=x"),
                Resume.Link(offset: 5, target: "https://www.github.com/jane/"),
                Resume.Link(offset: 5, target: "https://jane.dev"), Resume.Link(offset: 5, target: "tel:+4930123456"),
                Resume.Link(offset: 5, target: "mailto:nobody"),
            ])
        #expect(resume.emails.map(\.value) == ["jane@example.org"] && resume.phones.map(\.value) == ["+4930123456"])
        #expect(resume.links.map(\.value) == ["github.com/jane", "https://jane.dev"])
        #expect(resume.links[1].place == Resume.Place(page: 2, offset: 5, length: 0))
    }

    @Test(
        "skills are told apart as the search tells them apart; words of a language are none",
        arguments: [
            ("C, C++, C#, .NET", ["C", "C++", "C#", ".NET"]), ("Node.JS / nodejs", ["Node.js"]),
            ("Objective-C", ["Objective-C"]), ("Go, R", ["Go", "R"]), ("golang", ["Go"]), ("c++11", ["C++"]),
            ("Java and JavaScript", ["Java", "JavaScript"]), ("REST APIs", ["REST"]), ("F# developer", ["F#"]),
            ("Amazon\nWeb Services", ["AWS"]), ("精通Java和Python", ["Java", "Python"]),
            ("Python and R.", ["Python", "R"]),
            ("Go to market", []), ("plan C", []), ("vitamin C, vitamin D", []), ("R&D", []), ("C-level", []),
            ("react quickly", []), ("we excel", []), ("net income", []), ("swift rust", []), ("J. C. Smith", []),
            ("Javanese", []), ("a.python@example.org", []), ("github.com/jane", []), ("scar", []),
        ] as [(String, [String])])
    func skills(text: String, expected: [String]) {
        #expect(read("Profile of work\n" + text + "\nthe end of it").skills.map(\.value) == expected)
    }

    @Test(
        "a name is at the top, beside a label, or in the mail address; headings and titles are none",
        arguments: [
            ("Curriculum Vitae\nJane Doe\nEngineer", "Jane Doe"), ("JANE DOE, MBA\nx", "JANE DOE"),
            ("Lebenslauf\nName: Zoë von Berg", "Zoë von Berg"), ("姓名：王小明", "王小明"),
            ("Senior Engineer\nAcme Tools\nmore\nmore\nmore\nmore\nmore\nmore\nJane Doe\njane.doe@x.org", "Jane Doe"),
            ("JANE\nDOE\njdoe.jane@x.org", "JANE DOE"), ("Dr. Jane O'Neill-Smith | Berlin", "Dr. Jane O'Neill-Smith"),
            ("Software Engineer\n2020", nil), ("Apache Kafka\nx", nil), ("", nil), ("some words in small letters", nil),
        ] as [(String, String?)])
    func names(text: String, expected: String?) { #expect(read(text).name?.value == expected) }

    @Test(
        "years are those stated, or those that stations cover together",
        arguments: [
            ("10+ years of experience", 10), ("Zehn Jahre Berufserfahrung", 10), ("expérience : 7 ans", 7),
            ("Experience\n2018 – 2021 A\n2019 – 2022 B", 4), ("Experience\n03/2018 – 02/2020 A", 2),
            ("Experience\nsince 2020 A", 6), ("Experience\nJan 2024 - present A", 2),
            ("Experience\n1.3.2018 bis 28.2.2020", 2), ("Experience\n2015-03 to 2018-02", 3),
            ("Education\n2010 – 2014 A", nil), ("34 years old", nil), ("Experience\n2021 – 2018", nil),
            ("I am 30 years. Experience matters", nil), ("Experience\n2018", nil),
        ] as [(String, Int?)])
    func years(text: String, expected: Int?) { #expect(read(text).experience?.years == expected) }

    @Test("degrees count by their words, those that mean other things only under education")
    func education() {
        let resume = read(
            """
            Experience
            Scrum Master, driving licence
            Education
            Ausbildung
            MSc Physics, 2015
            Master of nothing
            Abitur 2008
            Hobbies
            Master of ceremonies, PhD thesis read for fun
            """)
        #expect(resume.education.map(\.level) == [.master, .master, .school, .doctorate])
        #expect(resume.education[0].value == "MSc Physics, 2015")
    }

    @Test("languages count where they are listed, or beside how well they are spoken")
    func languages() {
        let resume = read("Languages\nEnglisch: C1\nfrançais (langue maternelle)\nпольский\nSkills\nJava")
        #expect(resume.languages.map(\.code) == ["en", "fr", "pl"])
        #expect(resume.languages.map(\.level) == [.fluent, .native, nil])
        #expect(read("Fluent German, basic Dutch").languages.map(\.code) == ["de", "nl"])
        #expect(read("An English garden with French windows").languages.isEmpty)
        #expect(read("we polish good code").languages.isEmpty)
    }

    @Test("the place of a finding has the page, and offsets are those of the whole text")
    func places() throws {
        let resume = read("Ärzte\nx\nJava", pages: [0, 7, 9])
        #expect(resume.skills.map(\.place) == [Resume.Place(page: 3, offset: 9, length: 4)])
        #expect(read("Java", pages: []).skills[0].place.page == 1)
    }

    @Test("terms of a posting are found by every spelling, with the line around; missing ones say so")
    func terms() {
        let finder = TermFinder(["Node.js", "nodejs", "Kubernetes", "team spirit", "C", "  ", "COBOL"])
        let results = finder.find(in: "Wrote Node JS on k8s.\nTeam Spirits!\nplan C\nC, Go", pageOffsets: [0, 22])
        #expect(results.map(\.term) == ["Node.js", "Kubernetes", "team spirit", "C", "COBOL"])
        #expect(results.map(\.places.count) == [1, 1, 1, 1, 0])
        #expect(results[0].places[0].excerpt == "Wrote Node JS on k8s.")
        #expect(results[3].places[0].place.page == 2 && results[3].places[0].excerpt == "C, Go")
        let often = TermFinder(["Java"]).find(in: String(repeating: "Java ", count: 50), pageOffsets: [0])
        #expect(often[0].places.count == TermFinder.placesMax)
        #expect(often[0].places.allSatisfy { $0.excerpt.utf8.count <= 150 })
    }
}

@Suite("Any text at all") struct ResumeFuzz {
    private static let pieces = [
        "Jane", " ", "\n", "@", ".", "example.org", "+49", "030", "123", "2018", " – ", "present", "C++", "Go", ",",
        "Education", "Experience:", "Languages", "English", "C1", "PhD", "http://", "www.", "(", ")", "[at]", "é", "王",
        "\u{FEFF}", "\u{1F600}", "e\u{301}", "\t", "|", "E X P", ":", "-", "/", "years", "experience", "Name:", "مرحبا",
        "\u{0}", "\r", "𝔘", "+", "#", "mar", "ß", "İ",
    ]

    @Test("whatever is read, findings lie in the text, on their page, within their limits")
    func resume() throws {
        try Fuzz("resume", rounds: 1_500).run { fuzz in
            let text = fuzz.text(of: Self.pieces, max: 120)
            fuzz.input = Array(text.utf8)
            let bytes = text.utf8.count
            let pages = [0, fuzz.number(0...bytes)]
            let links = [Resume.Link(offset: fuzz.number(0...bytes), target: "mailto:" + text)]
            let resume = read(text, pages: pages, links: links)
            var places = (resume.emails + resume.phones + resume.links + resume.skills).map(\.place)
            places += resume.education.map(\.place) + resume.languages.map(\.place)
            places += [resume.name?.place, resume.experience?.place].compactMap { $0 }
            for place in places {
                let isInside = place.offset >= 0 && place.length >= 0 && place.offset + place.length <= bytes
                try fuzz.check(isInside, "\(place) in \(bytes) bytes")
                try fuzz.checkEqual(place.page, place.offset >= pages[1] ? 2 : 1, "the page of \(place) in \(pages)")
            }
            try fuzz.check(resume.emails.count <= Resume.emailsMax, "too many addresses")
            try fuzz.check(resume.links.count <= Resume.linksMax, "too many links")
            _ = TermFinder([text]).find(in: text, pageOffsets: pages)
        }
    }

    @Test(
        "the worst texts take no longer than ten times an ordinary one of their size",
        arguments: [
            "a", "@", "a@", "1", "1 ", "+", "(", "a.", ".", "\n", " ", "C ", "C, ", "2018 - ", "jane (at) ", "http://",
            "Jane ", "E ", "English ", "a:", "10 years ", "É", "王", "Java/",
        ])
    func time(piece: String) {
        let size = 1 << 19
        let ordinary = String(repeating: "Worked with people on things in 2018. ", count: size / 38)
        let base = processorTime { _ = read(ordinary) }
        let text = String(repeating: piece, count: size / piece.utf8.count)
        let taken = processorTime { _ = read(text) }
        #expect(taken < base * 10 + .seconds(1), "\(piece): \(taken) instead of \(base)")
    }
}
