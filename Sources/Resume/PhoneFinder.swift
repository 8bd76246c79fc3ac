/// Telephone numbers: runs of digits and what people put between them, told from dates, codes and accounts by how they
/// begin, how they are grouped, and what stands before them.
struct PhoneFinder {
    private static let bytesMax = 40
    /// A country's number and a person's (E.164).
    private static let digitsMax = 15
    /// Lines at the top of a CV in which people say how to reach them.
    private static let headLines = 20

    private static let labels: Set<String> = [
        "phone", "telephone", "tel", "mobile", "cell", "cellphone", "mob", "call", "whatsapp", "ph", "telefon",
        "handy", "mobil", "mobilfunk", "telefonnummer", "rufnummer", "fon", "telephone", "portable", "telefono",
        "movil", "celular", "cellulare", "telefone", "telemovel", "mobiel", "telefoon", "komorka", "komorkowy",
        "telefonu", "puhelin", "телефон", "тел", "моб", "мобильный", "telefonszam", "m", "t", "p", "电话", "手机",
    ]
    private static let notNumbers: Set<String> = [
        "isbn", "issn", "iban", "doi", "id", "nr", "no", "number", "patent", "vat", "ust", "matrikelnummer", "pesel",
        "nip", "ssn", "konto", "bic", "license", "licence", "plz",
    ]

    private let page: PageText
    private let passed: [Range<Int>]

    /// - Parameter passed: where no number is looked for, rising.
    init(_ page: PageText, passing passed: [Range<Int>]) {
        self.page = page
        self.passed = passed
    }

    func find() -> [Range<Int>] {
        var numbers: [Range<Int>] = []
        var next = passed[...]
        for (number, line) in page.lines.enumerated() {
            var index = line.range.lowerBound
            while index < line.range.upperBound {
                while let first = next.first, first.upperBound <= index { next = next.dropFirst() }
                if let first = next.first, first.contains(index) {
                    index = first.upperBound
                    continue
                }
                let end = min(line.range.upperBound, next.first?.lowerBound ?? .max)
                guard let run = run(from: index, end: end) else {
                    index += 1
                    continue
                }
                index = run.upperBound
                if isNumber(run, line: line, isHead: number < Self.headLines) { numbers.append(run) }
            }
        }
        return numbers
    }

    // MARK: Runs

    /// Digits and marks from there on, when a run begins there.
    private func run(from start: Int, end: Int) -> Range<Int>? {
        let bytes = page.bytes
        guard isStart(bytes[start]), start == 0 || !isInside(bytes[start - 1]) else { return nil }
        var last = start
        var index = start
        var gap = 0
        while index < end, index - start < Self.bytesMax {
            let byte = bytes[index]
            if byte.isDigit {
                (last, gap) = (index + 1, 0)
            } else if let length = mark(at: index) {
                gap += 1
                // Two spaces stand between columns.
                guard gap <= 3, !(byte == 32 && index > start && bytes[index - 1] == 32) else { break }
                index += length
                continue
            } else {
                break
            }
            index += 1
        }
        guard last > start + 5 else { return nil }
        // Letters right behind it make it a code.
        guard last == bytes.count || !isInside(bytes[last]) else { return start..<last + 1 }
        return start..<last
    }

    private func isStart(_ byte: UInt8) -> Bool { byte.isDigit || byte == 0x2B || byte == 0x28 }
    /// Of a longer word.
    private func isInside(_ byte: UInt8) -> Bool {
        byte.isDigit || (0x41...0x5A).contains(byte & 0xDF) || byte == 0x2B || byte == 0x5F || byte == 0x23
    }

    /// The length of a mark that may stand in a number.
    private func mark(at index: Int) -> Int? {
        let bytes = page.bytes
        switch bytes[index] {
        case 0x20, 0x28, 0x29, 0x2B, 0x2D, 0x2E, 0x2F: return 1
        // A space that does not break; hyphens and dashes.
        case 0xC2 where index + 1 < bytes.count && bytes[index + 1] == 0xA0: return 2
        case 0xE2 where index + 2 < bytes.count && bytes[index + 1] == 0x80:
            return (0x90...0x93).contains(bytes[index + 2]) || bytes[index + 2] == 0xAF ? 3 : nil
        default: return nil
        }
    }

    // MARK: Judgement

    private func isNumber(_ run: Range<Int>, line: PageText.Line, isHead: Bool) -> Bool {
        let groups = page.bytes[run].split { !$0.isDigit }.map { String(decoding: $0, as: UTF8.self) }
        let digits = groups.joined()
        guard (7...Self.digitsMax).contains(digits.count), page.bytes[run.upperBound - 1].isDigit else { return false }
        let label = label(before: run, line: line)
        if let label, Self.notNumbers.contains(label) { return false }
        guard !Self.isDate(groups, label: label) else { return false }
        if page.bytes[run].prefix(2).contains(0x2B) { return digits.count >= 8 }
        if let label, Self.labels.contains(label) { return true }
        // 555.123.4567, and with the country's 1 before it.
        let shape = groups.map(\.count)
        if shape == [3, 3, 4] || shape == [1, 3, 3, 4] && groups[0] == "1" { return true }
        if digits.hasPrefix("00") { return digits.count >= 11 && groups.count > 1 }
        if digits.hasPrefix("0") { return (9...12).contains(digits.count) && (groups.count > 1 || digits.count >= 10) }
        return isHead && (shape == [3, 3, 3] || shape == [3, 2, 2, 2])
    }

    private static func isDate(_ groups: [String], label: String?) -> Bool {
        let isYear = { (group: String) in group.count == 4 && (group.hasPrefix("19") || group.hasPrefix("20")) }
        let years = groups.filter(isYear).count
        // 2018 - 2020, 03/2018 - 06/2020, 01.02.1990, 2018-05-01
        if years == 2, groups.count <= 6 { return true }
        guard years == 1, label.map({ !labels.contains($0) }) ?? true else { return false }
        return groups.count <= 3 && groups.allSatisfy { $0.count <= 2 || isYear($0) }
    }

    /// The word before it, when nothing but marks stands between.
    private func label(before run: Range<Int>, line: PageText.Line) -> String? {
        guard let token = page.words(line).last(where: { $0.range.upperBound <= run.lowerBound }) else { return nil }
        // The end of an address is no label.
        let isPart = token.range.lowerBound > 0 && [0x2E, 0x40].contains(page.bytes[token.range.lowerBound - 1])
        return run.lowerBound - token.range.upperBound <= 4 && !isPart ? token.key : nil
    }
}

extension UInt8 {
    var isDigit: Bool { (0x30...0x39).contains(self) }
}
