/// The skills we know, each with the ways to write it. The data is in `SkillData`: a line each, `Name | alias, alias |
/// marks`; a line that begins with the bar has more aliases. `case`: the name counts only as it is written here,
/// because in small letters it is a word of a language; `list`: and only where things are listed, because with a
/// capital it is one too. Aliases always count.
struct SkillList: Sendable {
    struct Skill: Sendable {
        let name: String
        let needsCase: Bool
        let needsList: Bool
        /// Every way to write it, as the keys of its words.
        var spellings: [[String]]
    }

    static let known = SkillList(SkillData.all)

    let skills: [Skill]
    /// By the first word of a spelling: which skill, and which of its spellings; longer ones first.
    private let byFirst: [String: [(skill: Int, spelling: Int)]]
    private let byName: [String: Int]
    /// First and last words of skills that need no list themselves.
    private let sureWords: Set<String>

    init(_ lines: [String]) {
        var skills: [Skill] = []
        for line in lines.joined(separator: "\n").split(whereSeparator: \.isNewline) {
            let parts = line.split(separator: "|", omittingEmptySubsequences: false).map { Self.trimmed($0) }
            let aliases = (parts.count > 1 ? parts[1] : "").split(separator: ",").map { Fold.keys(Self.trimmed($0)) }
            if parts[0].isEmpty {
                skills[skills.count - 1].spellings += aliases
                continue
            }
            let marks = parts.count > 2 ? parts[2] : ""
            skills.append(
                Skill(
                    name: parts[0], needsCase: marks.contains("case"), needsList: marks.contains("list"),
                    spellings: [Fold.keys(parts[0])] + aliases))
        }
        self.init(skills)
    }

    init(_ skills: [Skill]) {
        self.skills = skills
        var byFirst: [String: [(skill: Int, spelling: Int)]] = [:]
        var byName: [String: Int] = [:]
        var sureWords: Set<String> = []
        for (index, skill) in skills.enumerated() {
            for (number, spelling) in skill.spellings.enumerated() {
                byFirst[spelling[0], default: []].append((index, number))
                byName[spelling.joined(separator: " ")] = index
                guard !skill.needsList else { continue }
                // "Objective C" makes no letter a skill.
                sureWords.formUnion([spelling[0], spelling[spelling.count - 1]].filter { $0.utf8.count > 1 })
            }
        }
        self.byFirst = byFirst.mapValues { entries in
            entries.sorted {
                skills[$0.skill].spellings[$0.spelling].count > skills[$1.skill].spellings[$1.spelling].count
            }
        }
        self.byName = byName
        self.sureWords = sureWords
    }

    private static func trimmed(_ text: Substring) -> String {
        String(text.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
    }

    /// The skill of that name, however written.
    func skill(named name: String) -> Skill? { byName[Fold.keys(name).joined(separator: " ")].map { skills[$0] } }

    /// Whether that token begins or ends a skill that is one wherever it stands. Names have a capital.
    func isSure(_ index: Int, of page: PageText) -> Bool {
        let token = page.tokens[index]
        let first = PageText.scalar(page.bytes, at: token.range.lowerBound).scalar
        return sureWords.contains(token.key) && (first.properties.isUppercase || first == ".")
    }

    /// The skill that is written from that token on, and in how many tokens.
    func match(at index: Int, of page: PageText) -> (skill: Int, count: Int)? {
        guard let entries = byFirst[page.tokens[index].key] else { return nil }
        for entry in entries {
            let skill = skills[entry.skill]
            let spelling = skill.spellings[entry.spelling]
            guard Self.stands(spelling, at: index, of: page) else { continue }
            if entry.spelling == 0, skill.needsCase || skill.needsList {
                let range =
                    page.tokens[index].range.lowerBound..<page.tokens[index + spelling.count - 1].range.upperBound
                if skill.needsCase, !page.bytes[range].elementsEqual(skill.name.utf8) { continue }
                if skill.needsList, !ListPlace(page).holds(index, count: spelling.count) { continue }
            }
            return (entry.skill, spelling.count)
        }
        return nil
    }

    /// Whether these words stand there, one after the other.
    static func stands(_ keys: [String], at index: Int, of page: PageText) -> Bool {
        guard index + keys.count <= page.tokens.count else { return false }
        for (offset, key) in keys.enumerated() {
            let present = page.tokens[index + offset].key
            // The last word may be one of many of its kind: APIs.
            let isPlural = offset == keys.count - 1 && key.utf8.count > 2 && present == key + "s"
            guard present == key || isPlural else { return false }
            if offset > 0, !isJoint(page.gap(after: index + offset - 1)) { return false }
        }
        return true
    }

    /// What may stand between two words of one name: a space, a hyphen, a line end, a dot.
    private static func isJoint(_ gap: ArraySlice<UInt8>) -> Bool {
        gap.count <= 3 && gap.allSatisfy { " -./\n_".utf8.contains($0) || $0 == 0xC2 || $0 == 0xA0 }
    }
}

/// Whether a word stands in a list: between commas, bullets, slashes, line ends or "and", or beside another skill.
struct ListPlace {
    private static let conjunctions: Set<String> = [
        "and", "or", "und", "oder", "et", "ou", "y", "o", "e", "i", "en", "och",
    ]

    private let page: PageText

    init(_ page: PageText) { self.page = page }

    func holds(_ index: Int, count: Int) -> Bool {
        if isBesideSkill(index, step: -1) || isBesideSkill(index + count - 1, step: 1) { return true }
        let before = index > 0 ? page.gap(after: index - 1) : page.bytes[..<page.tokens[index].range.lowerBound]
        let after = page.gap(after: index + count - 1)
        let isSkills = page.lines[page.tokens[index].line].section == .skills
        return isEdge(before, neighbour: index - 1, isSkills) && isEdge(after, neighbour: index + count, isSkills)
    }

    private func isEdge(_ gap: ArraySlice<UInt8>, neighbour: Int, _ isSkills: Bool) -> Bool {
        guard page.tokens.indices.contains(neighbour) else { return true }
        if Self.separates(gap) { return true }
        // Only spaces between: listed if the neighbour only joins, or if all the line is a list.
        guard gap.allSatisfy({ $0 == 32 }) else { return false }
        return isSkills || Self.conjunctions.contains(page.tokens[neighbour].key)
    }

    /// Whether the next word, an "and" passed over, is of a skill, with nothing but a mark between.
    private func isBesideSkill(_ index: Int, step: Int) -> Bool {
        var next = index + step
        guard page.tokens.indices.contains(next), isNear(index, next) else { return false }
        if Self.conjunctions.contains(page.tokens[next].key) {
            guard page.tokens.indices.contains(next + step), isNear(next, next + step) else { return false }
            next += step
        }
        return SkillList.known.isSure(next, of: page)
    }

    private func isNear(_ one: Int, _ other: Int) -> Bool {
        let gap = page.gap(after: min(one, other))
        return gap.count <= 2 && gap.allSatisfy { " ,/;|\n".utf8.contains($0) }
    }

    private static func separates(_ gap: ArraySlice<UInt8>) -> Bool {
        let bytes = Array(gap)
        for (index, byte) in bytes.enumerated() {
            switch byte {
            case UInt8(ascii: ","), UInt8(ascii: ";"), UInt8(ascii: ":"), UInt8(ascii: "|"), UInt8(ascii: "("),
                UInt8(ascii: ")"), UInt8(ascii: "["), UInt8(ascii: "]"), UInt8(ascii: "/"), 9, 10:
                return true
            // A dot ends a sentence, and with it a list; in a name it has no space behind it.
            case UInt8(ascii: "."): if index == bytes.count - 1 ? false : bytes[index + 1] == 10 { return true }
            // With space around it, not as in C-level and R&D.
            case UInt8(ascii: "-"), UInt8(ascii: "&"), UInt8(ascii: "*"), UInt8(ascii: "+"):
                if bytes.count > 1 { return true }
            // Bullets, dashes and their like.
            case 0xC2: if index + 1 < bytes.count, bytes[index + 1] == 0xB7 { return true }
            case 0xE2...0xEF: return bytes.count > 3 || byte == 0xE2
            default: break
            }
        }
        return false
    }
}

/// The skills that a text names, each where it does so first.
struct SkillFinder {
    private let page: PageText
    private let list: SkillList
    private let passed: [Range<Int>]

    /// - Parameter passed: where no skill is looked for, rising: in addresses.
    init(_ page: PageText, passing passed: [Range<Int>], list: SkillList = .known) {
        self.page = page
        self.passed = passed
        self.list = list
    }

    func find() -> [Resume.Finding] {
        var findings: [Resume.Finding] = []
        var seen: Set<Int> = []
        var next = passed[...]
        var index = 0
        while index < page.tokens.count, findings.count < Resume.skillsMax {
            let start = page.tokens[index].range.lowerBound
            while let first = next.first, first.upperBound <= start { next = next.dropFirst() }
            guard next.first?.contains(start) != true, let match = list.match(at: index, of: page) else {
                index += 1
                continue
            }
            if seen.insert(match.skill).inserted {
                let end = page.tokens[index + match.count - 1].range.upperBound
                findings.append(page.finding(start..<end, value: list.skills[match.skill].name))
            }
            index += match.count
        }
        return findings
    }
}
