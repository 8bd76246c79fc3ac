/// Months and years as CVs write them: 2018, 03/2018, 1.3.2018, 2018-03, March 2018, März 2018, "marzo de 2018".
struct DateReader {
    struct Date: Equatable {
        /// Months since the year 0; of a year alone its first.
        let month: Int
        let isYearAlone: Bool
        /// The token after it.
        let next: Int
    }

    private static let years = 1950...2100

    /// The first letters of months, without accents.
    private static let months: [String: Int] = {
        let names = """
            january jan janvier enero gennaio januar januari styczen stycznia leden ledna sty ene gen janv janeiro
            february feb fevrier febrero febbraio februar februari luty lutego unor fev fevr fevereiro febr
            march mar mars marzo marz maerz maart marzec marca brezen brezna mrz marco mae
            april apr avril abril aprile kwiecien kwietnia duben dubna abr avr kwi
            may mai mayo maggio mei maj maja kveten kvetna mag maio maja
            june jun juin junio giugno juni czerwiec czerwca cerven cervna giu junho cze
            july jul juillet julio luglio juli lipiec lipca cervenec lug juil julho lip
            august aug aout agosto augustus sierpien sierpnia srpen ago augusti sie
            september sep sept septembre septiembre settembre wrzesien wrzesnia zari set setembro wrz septiembre
            october oct octobre octubre ottobre oktober okt pazdziernik pazdziernika rijen ott outubro out paz
            november nov novembre noviembre listopad listopada novembro lis novembre november
            december dec decembre diciembre dicembre dezember dez dic grudzien grudnia prosinec dezembro gru
            """
        var months: [String: Int] = [:]
        for (index, line) in names.split(whereSeparator: \.isNewline).enumerated() {
            for name in line.split(separator: " ") { months[String(name)] = index }
        }
        return months
    }()

    private let page: PageText

    init(_ page: PageText) { self.page = page }

    /// The date that begins with that token.
    func date(at index: Int) -> Date? {
        let tokens = page.tokens
        guard index < tokens.count else { return nil }
        if let month = Self.months[tokens[index].key] {
            var next = index + 1
            if next < tokens.count, ["de", "of", "del"].contains(tokens[next].key) { next += 1 }
            guard let year = year(at: next), tokens[next].line == tokens[index].line,
                page.gap(after: next - 1).count <= 3
            else { return nil }
            return Date(month: year * 12 + month, isYearAlone: false, next: next + 1)
        }
        if let year = year(at: index) {
            if let month = small(at: index + 1), (1...12).contains(month), tokens[index + 1].range.count == 2,
                isJoined(index, by: "-./"), !isJoined(index + 1, by: "-")
            {
                return Date(month: year * 12 + month - 1, isYearAlone: false, next: index + 2)
            }
            return Date(month: year * 12, isYearAlone: true, next: index + 1)
        }
        guard let first = small(at: index), isJoined(index, by: "./-") else { return nil }
        if let year = year(at: index + 1), (1...12).contains(first) {
            return Date(month: year * 12 + first - 1, isYearAlone: false, next: index + 2)
        }
        guard let second = small(at: index + 1), isJoined(index + 1, by: "./-"), let year = year(at: index + 2) else {
            return nil
        }
        let month = (1...12).contains(second) ? second : first
        guard (1...12).contains(month) else { return nil }
        return Date(month: year * 12 + month - 1, isYearAlone: false, next: index + 3)
    }

    private func year(at index: Int) -> Int? {
        guard index < page.tokens.count, page.tokens[index].key.utf8.count == 4,
            let year = Int(page.tokens[index].key), Self.years.contains(year)
        else { return nil }
        return year
    }

    private func small(at index: Int) -> Int? {
        guard index < page.tokens.count, page.tokens[index].key.utf8.count <= 2 else { return nil }
        return Int(page.tokens[index].key).flatMap { $0 <= 31 ? $0 : nil }
    }

    /// Whether one of these marks stands alone behind the token.
    private func isJoined(_ index: Int, by marks: String) -> Bool {
        let gap = page.gap(after: index)
        return gap.count == 1 && gap.allSatisfy { marks.utf8.contains($0) }
    }
}

/// How long somebody has worked: what they say themselves, or what their stations of work cover together.
struct ExperienceFinder {
    private static let yearsMax = 60

    private static let present: Set<String> = [
        "present", "current", "currently", "now", "today", "date", "ongoing", "heute", "jetzt", "laufend", "aktuell",
        "aujourd", "actuel", "actuellement", "present", "actualidad", "actual", "presente", "oggi", "attuale", "heden",
        "obecnie", "dzis", "teraz", "atual", "hoje", "soucasnost", "dosud", "nuvarande", "nu", "настоящее", "сейчас",
        "至今", "现在", "halen", "prezent", "momento",
    ]
    private static let until: Set<String> = [
        "to", "until", "till", "bis", "a", "au", "hasta", "al", "tot", "do", "ate", "through", "по", "aux", "en",
    ]
    private static let since: Set<String> = [
        "since", "seit", "depuis", "desde", "dal", "od", "sinds", "from", "ab", "с",
    ]
    private static let yearWords: Set<String> = [
        "year", "years", "yrs", "yr", "jahre", "jahren", "jahr", "ans", "annees", "anos", "anni", "jaar", "lat", "let",
        "roku", "ar", "лет",
    ]
    private static let experienceWords: Set<String> = [
        "experience", "erfahrung", "berufserfahrung", "experiencia", "esperienza", "ervaring", "werkervaring",
        "doswiadczenia", "doswiadczenie", "praxe", "erfarenhet", "expertise", "experienced", "опыта", "berufspraxis",
        "praxiserfahrung", "zkusenosti",
    ]
    private static let numbers: [String: Int] = {
        let lists = [
            "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen",
            "ein zwei drei vier funf sechs sieben acht neun zehn elf zwolf dreizehn vierzehn funfzehn",
            "un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze",
            "uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince",
        ]
        var numbers: [String: Int] = ["twenty": 20, "zwanzig": 20, "vingt": 20, "veinte": 20, "cinque": 5, "dieci": 10]
        for list in lists {
            for (index, word) in list.split(separator: " ").enumerated() { numbers[String(word)] = index + 1 }
        }
        return numbers
    }()

    private let page: PageText
    private let now: Int

    init(_ page: PageText, now: Resume.Month) {
        self.page = page
        self.now = now.count
    }

    func find() -> Resume.Experience? { stated() ?? covered() }

    // MARK: What is said

    private func stated() -> Resume.Experience? {
        let tokens = page.tokens
        for index in tokens.indices.dropFirst() where Self.yearWords.contains(tokens[index].key) {
            guard let years = number(before: index), page.lines[tokens[index].line].section != .education else {
                continue
            }
            let near = max(0, index - 6)..<min(tokens.count, index + 9)
            guard
                let word = near.first(where: {
                    Self.experienceWords.contains(tokens[$0].key) && abs(tokens[$0].line - tokens[index].line) <= 1
                }), !isSentenceBetween(min(word, index), max(word, index))
            else { continue }
            let range = tokens[index - 1].range.lowerBound..<tokens[index].range.upperBound
            return Resume.Experience(years: years, basis: .stated, place: page.place(range))
        }
        return nil
    }

    private func number(before index: Int) -> Int? {
        let key = page.tokens[index - 1].key
        guard let number = Int(key) ?? Self.numbers[key], (1...Self.yearsMax).contains(number) else { return nil }
        return page.gap(after: index - 1).count <= 3 ? number : nil
    }

    private func isSentenceBetween(_ first: Int, _ last: Int) -> Bool {
        (first..<last).contains { index in
            let gap = Array(page.gap(after: index))
            return gap.count > 1 && gap[0] == UInt8(ascii: ".") && gap[1] <= 32
        }
    }

    // MARK: What the stations cover

    /// Stations read; nobody has had more.
    private static let stationsMax = 200

    private func covered() -> Resume.Experience? {
        var stations: [(months: Range<Int>, place: Range<Int>)] = []
        for line in page.lines where line.section == .experience {
            var index = line.tokens.lowerBound
            while index < line.tokens.upperBound, stations.count < Self.stationsMax {
                if let station = station(at: index, line: line) {
                    stations.append((station.months, station.place))
                    index = station.next
                } else {
                    index += 1
                }
            }
        }
        guard let first = stations.first else { return nil }
        var months = 0
        var end = Int.min
        for station in stations.map(\.months).sorted(by: { $0.lowerBound < $1.lowerBound }) {
            months += max(0, station.upperBound - max(station.lowerBound, end))
            end = max(end, station.upperBound)
        }
        let years = months / 12
        guard (0...Self.yearsMax).contains(years) else { return nil }
        return Resume.Experience(years: years, basis: .dates, place: page.place(first.place))
    }

    private func station(
        at index: Int, line: PageText.Line
    ) -> (months: Range<Int>, place: Range<Int>, next: Int)? {
        let reader = DateReader(page)
        let tokens = page.tokens
        if Self.since.contains(tokens[index].key), let begin = reader.date(at: index + 1),
            begin.month <= now, begin.next <= line.tokens.upperBound
        {
            let isOpen = begin.next >= tokens.count || end(after: begin, line: line) == nil
            if isOpen { return (begin.month..<(now + 1), place(index, begin.next), begin.next) }
        }
        guard let begin = reader.date(at: index), begin.next <= line.tokens.upperBound,
            let end = end(after: begin, line: line)
        else { return nil }
        if let month = end.month, month < begin.month { return nil }
        // Of years alone the end is not counted: 2018 – 2021 are three.
        let last = end.month.map { end.isYearAlone ? max($0, begin.month + 6) : $0 + 1 } ?? now + 1
        guard begin.month < min(last, now + 1) else { return nil }
        return (begin.month..<min(last, now + 1), place(index, end.next), end.next)
    }

    private func place(_ first: Int, _ next: Int) -> Range<Int> {
        page.tokens[first].range.lowerBound..<page.tokens[next - 1].range.upperBound
    }

    /// What follows a dash or "to": a date, or the word for today (without a month).
    private func end(
        after begin: DateReader.Date, line: PageText.Line
    ) -> (month: Int?, isYearAlone: Bool, next: Int)? {
        var index = begin.next
        guard index < line.tokens.upperBound else { return nil }
        let gap = page.gap(after: index - 1)
        let hasDash = gap.contains { $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "~") || $0 >= 0x80 }
        if !hasDash {
            guard gap.allSatisfy({ $0 == 32 }), Self.until.contains(page.tokens[index].key) else { return nil }
            index += 1
        }
        // "à ce jour", "bis heute", "to the present day"
        for word in index..<min(index + 2, line.tokens.upperBound) where Self.present.contains(page.tokens[word].key) {
            return (nil, false, word + 1)
        }
        guard gap.count <= 8, let date = DateReader(page).date(at: index), date.next <= line.tokens.upperBound else {
            return nil
        }
        return (date.month, date.isYearAlone, date.next)
    }
}
