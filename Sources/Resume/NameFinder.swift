/// Whose CV it is: a line near the top that looks like a name, the more so when the mail address has it.
struct NameFinder {
    private static let linesMax = 40
    /// Lines in which a name needs no mail address to be believed.
    private static let headLines = 6
    private static let wordsMax = 5

    private static let labels: Set<String> = [
        "name", "full name", "nom", "nom et prenom", "nombre", "nombre y apellidos", "nome", "nome e cognome", "naam",
        "imie i nazwisko", "jmeno", "namn", "navn", "nimi", "имя", "фио", "vor und nachname", "vorname name", "姓名",
        "first name s surname s", "surname s first name s", "surname first name", "氏名", "candidate", "bewerber",
    ]
    /// Parts of names that are written small.
    private static let particles: Set<String> = [
        "de", "da", "do", "dos", "das", "del", "della", "di", "la", "le", "van", "von", "der", "den", "ten", "ter",
        "zu", "zum", "af", "av", "bin", "ibn", "al", "el", "y", "e", "i", "st",
    ]
    /// What stands at the top of a CV and is no name.
    private static let notNames: Set<String> = Set(
        """
        curriculum vitae resume cv lebenslauf bewerbung curriculo hoja vida zivotopis cover letter page seite profile
        profil summary contact kontakt experience education skills engineer developer manager designer consultant
        analyst architect administrator assistant director officer specialist technician nurse teacher student
        accountant scientist senior junior lead head chief professor lecturer intern trainee programmer software data
        product project marketing sales web full stack entwickler entwicklerin ingenieur ingenieurin berater beraterin
        leiter leiterin kaufmann kauffrau ingenieure ingeniero ingeniera desarrollador desarrolladora developpeur
        developpeuse responsable chef gerente analista sviluppatore impiegato impiegata contabile street strasse
        road avenue rue calle via university universitat universite school college gmbh inc ltd llc company
        address phone email mobile about objective personal details references languages the and for with
        europass confidential application bewerbungsunterlagen informatiker krankenschwester pflegefachfrau koch
        driver clerk cook chef waiter mechanic electrician welder lawyer editor writer journalist ontwikkelaar
        programista inzynier ksiegowa specjalista kierownik asystent berlin london paris madrid
        """.split(whereSeparator: \.isWhitespace).map(String.init))

    private let page: PageText
    private let mails: [String]

    /// - Parameter emails: those of the CV.
    init(_ page: PageText, emails: [String]) {
        self.page = page
        mails = emails.map { mail in Fold.key(mail.prefix { $0 != "@" }) }
    }

    func find() -> Resume.Finding? {
        let lines = page.lines.prefix { $0.range.lowerBound < page.bytes.count }.prefix(Self.linesMax)
        for line in lines {
            if let range = labelled(line), isName(range) != nil { return page.finding(range) }
        }
        var best: (score: Int, range: Range<Int>)?
        var filled = 0
        var former: Range<Int>?
        for line in lines where !line.tokens.isEmpty {
            filled += 1
            for range in candidates(line, former: former) {
                guard let words = isName(range) else { continue }
                let owned = words.contains { word in word.count >= 3 && mails.contains { $0.contains(word) } }
                let isWhole = words.count > 1
                guard owned || isWhole && filled <= Self.headLines else { continue }
                let score = (owned ? 100 : 0) + (isWhole ? 20 : 0) + (mailed(words) ? 30 : 0) - filled
                if score > best?.score ?? .min { best = (score, range) }
            }
            former = line.tokens.count == 1 ? page.trimmed(line.range) : nil
        }
        guard let best, isName(best.range)?.count ?? 0 > 1 else { return nil }
        return page.finding(best.range)
    }

    /// The line, its part before a mark that ends a name, and the line together with the one before, when each is a
    /// single word: large letters at the top.
    private func candidates(_ line: PageText.Line, former: Range<Int>?) -> [Range<Int>] {
        let whole = page.trimmed(line.range)
        var found = [whole]
        for index in line.tokens.dropLast() {
            let gap = page.gap(after: index)
            let ends =
                gap.contains { $0 == UInt8(ascii: ",") || $0 == UInt8(ascii: "|") || $0 == 9 }
                || gap.count > 1 && gap.contains { $0 == UInt8(ascii: "-") || $0 >= 0x80 }
                || gap.count > 2 && gap.allSatisfy { $0 == 32 }
            guard ends else { continue }
            found.append(whole.lowerBound..<page.tokens[index].range.upperBound)
            break
        }
        if let former, line.tokens.count <= 2 { found.append(former.lowerBound..<whole.upperBound) }
        return found
    }

    /// What stands behind "Name:".
    private func labelled(_ line: PageText.Line) -> Range<Int>? {
        let words = page.words(line)
        for (count, index) in words.indices.prefix(Self.wordsMax).enumerated() {
            let gap = page.gap(after: index)
            guard gap.contains(where: { $0 == UInt8(ascii: ":") || $0 == 9 || $0 >= 0x80 }) else { continue }
            guard Self.labels.contains(words.prefix(count + 1).map(\.key).joined(separator: " ")),
                index + 1 < line.tokens.upperBound
            else { return nil }
            return page.tokens[index + 1].range.lowerBound..<page.trimmed(line.range).upperBound
        }
        return nil
    }

    /// The words of a name, titles left out; nil for what is none.
    private func isName(_ range: Range<Int>) -> [String]? {
        let first = page.tokens.partitioning { $0.range.lowerBound >= range.lowerBound }
        let tokens = page.tokens[first...].prefix { $0.range.upperBound <= range.upperBound }
        guard (1...Self.wordsMax).contains(tokens.count), range.count <= 80 else { return nil }
        var words: [String] = []
        for token in tokens {
            guard !Self.notNames.contains(token.key), !page.bytes[token.range].contains(where: \.isDigit) else {
                return nil
            }
            if ["dr", "prof", "mr", "mrs", "ms", "ing", "dipl", "med", "herr", "frau", "mag"].contains(token.key) {
                continue
            }
            let initial = PageText.scalar(page.bytes, at: token.range.lowerBound).scalar
            let hasCapital = initial.properties.isUppercase || !initial.properties.isCased
            guard hasCapital || Self.particles.contains(token.key) else { return nil }
            words.append(token.key)
        }
        // Only what stands in names between words.
        let rest = page.bytes[range].enumerated().allSatisfy { _, byte in
            byte >= 0x80 || byte == 32 || byte == 10 || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "'")
                || byte == UInt8(ascii: "-") || (0x41...0x5A).contains(byte & 0xDF)
        }
        guard rest, !words.isEmpty, SkillFinder(PageText(words: page.text(range)), passing: []).find().isEmpty else {
            return nil
        }
        return words
    }

    /// Whether an address is made of the words: jane.doe, jdoe, doej.
    private func mailed(_ words: [String]) -> Bool {
        guard let first = words.first, let last = words.last, words.count > 1, let initial = first.first else {
            return false
        }
        return mails.contains { mail in
            let letters = mail.filter(\.isLetter)
            return letters.contains(first) && letters.contains(last) || letters == "\(initial)\(last)"
                || letters == last + "\(initial)"
        }
    }
}

extension Array {
    /// The first index of those for which it is so; they come after all others.
    func partitioning(_ isSo: (Element) -> Bool) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if isSo(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
