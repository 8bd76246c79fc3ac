/// Looks for the terms of a posting in a text: a skill of our list by any of its spellings, anything else by its words.
public struct TermFinder: Sendable {
    /// Places told of one term.
    public static let placesMax = 5
    /// Terms looked for at once.
    public static let termsMax = 100
    /// Of the text around a term that is told with it, on each side, in UTF-8.
    static let aroundBytesMax = 60

    public struct Place: Sendable, Equatable {
        public let place: Resume.Place
        /// The line it stands in, or the part around it.
        public let excerpt: String
    }

    public struct Result: Sendable, Equatable {
        public let term: String
        /// In the order of the text; empty when the term is missing.
        public let places: [Place]
    }

    private let list: SkillList
    private let terms: [String]

    public init(_ terms: [String]) {
        var seen: Set<String> = []
        var skills: [SkillList.Skill] = []
        var kept: [String] = []
        for term in terms where kept.count < Self.termsMax {
            let keys = Fold.keys(term)
            guard !keys.isEmpty else { continue }
            let known = SkillList.known.skill(named: term)
            guard seen.insert(known?.name ?? keys.joined(separator: " ")).inserted else { continue }
            kept.append(term)
            skills.append(known ?? SkillList.Skill(name: term, needsCase: false, needsList: false, spellings: [keys]))
        }
        self.terms = kept
        list = SkillList(skills)
    }

    /// - Parameter pageOffsets: as for `Resume.read`.
    public func find(in text: String, pageOffsets: [Int]) -> [Result] {
        let page = PageText(text, pageOffsets: pageOffsets)
        var places: [[Place]] = Array(repeating: [], count: terms.count)
        var index = 0
        while index < page.tokens.count {
            guard let match = list.match(at: index, of: page) else {
                index += 1
                continue
            }
            if places[match.skill].count < Self.placesMax {
                let range = page.tokens[index].range.lowerBound..<page.tokens[index + match.count - 1].range.upperBound
                let line = page.lines[page.tokens[index].line].range
                places[match.skill].append(Place(place: page.place(range), excerpt: Self.excerpt(range, line, page)))
            }
            index += match.count
        }
        return zip(terms, places).map { Result(term: $0, places: $1) }
    }

    private static func excerpt(_ range: Range<Int>, _ line: Range<Int>, _ page: PageText) -> String {
        var start = max(line.lowerBound, range.lowerBound - aroundBytesMax)
        var end = min(max(line.upperBound, range.upperBound), range.upperBound + aroundBytesMax)
        // Not in the middle of a character.
        while start > line.lowerBound, page.bytes[start] & 0xC0 == 0x80 { start -= 1 }
        while end < page.bytes.count, page.bytes[end] & 0xC0 == 0x80 { end += 1 }
        return page.text(start..<end)
    }

    /// The skills that a posting's text names, by the names of our list.
    public static func skills(in text: String) -> [String] {
        SkillFinder(PageText(text, pageOffsets: []), passing: []).find().map(\.value)
    }
}
