/// Mail addresses, telephone numbers and links.
struct ContactFinder {
    /// A number, an address or a link that is longer is none. Also what keeps the time in proportion to the text.
    private static let localBytesMax = 64
    private static let domainBytesMax = 190
    private static let linkBytesMax = Resume.Finding.valueBytesMax

    struct Found {
        var emails: [Resume.Finding] = []
        var phones: [Resume.Finding] = []
        var links: [Resume.Finding] = []
        /// Where they stand, rising; no skill is looked for in them.
        var ranges: [Range<Int>] = []
    }

    private let page: PageText
    private var found = Found()

    init(_ page: PageText) { self.page = page }

    /// - Parameter links: where the document links to.
    func find(links: [Resume.Link]) -> Found {
        var finder = self
        finder.findEmails()
        finder.findLinks()
        finder.found.ranges.sort { $0.lowerBound < $1.lowerBound }
        for number in PhoneFinder(page, passing: finder.found.ranges).find() {
            Self.add(page.finding(number), to: &finder.found.phones, most: Resume.phonesMax, by: Self.digits)
        }
        for link in links { finder.add(link) }
        return finder.found
    }

    private static func add(
        _ finding: Resume.Finding, to list: inout [Resume.Finding], most: Int, by key: (String) -> String
    ) {
        let new = key(finding.value)
        guard list.count < most, !new.isEmpty, !list.contains(where: { key($0.value) == new }) else { return }
        list.append(finding)
    }

    /// What makes two numbers the same. Without the national zero, which the international form may name.
    static func digits(_ number: String) -> String {
        number.replacing("(0)", with: "").filter(\.isNumber)
    }

    /// What makes two links the same.
    static func address(_ link: String) -> String {
        var key = link.lowercased()
        for start in ["https://", "http://", "www."] where key.hasPrefix(start) { key.removeFirst(start.count) }
        while key.hasSuffix("/") { key.removeLast() }
        return key
    }

    private mutating func add(_ link: Resume.Link) {
        let colon = link.target.firstIndex(of: ":") ?? link.target.startIndex
        let rest = String(link.target[colon...].dropFirst())
        let value = String(rest.prefix { $0 != "?" })
        let place = page.place(link.offset..<link.offset)
        switch link.target[..<colon].lowercased() {
        case "mailto":
            guard
                let range = Self.email(
                    in: Array(value.utf8),
                    at: value.utf8.firstIndex(of: 0x40).map { at in
                        value.utf8.distance(from: value.startIndex, to: at)
                    }), range.count == value.utf8.count
            else { return }
            Self.add(
                Resume.Finding(value: value, place: place), to: &found.emails, most: Resume.emailsMax
            ) { $0.lowercased() }
        case "tel":
            guard (7...15).contains(Self.digits(value).count), value.utf8.count <= 30 else { return }
            Self.add(
                Resume.Finding(value: value, place: place), to: &found.phones, most: Resume.phonesMax, by: Self.digits)
        default:
            guard link.target.utf8.count <= Self.linkBytesMax else { return }
            Self.add(
                Resume.Finding(value: link.target, place: place), to: &found.links, most: Resume.linksMax,
                by: Self.address)
        }
    }

    // MARK: Mail

    private mutating func findEmails() {
        for index in page.bytes.indices where page.bytes[index] == UInt8(ascii: "@") {
            guard let range = Self.email(in: page.bytes, at: index) else { continue }
            found.ranges.append(range)
            Self.add(page.finding(range), to: &found.emails, most: Resume.emailsMax) { $0.lowercased() }
        }
        findHiddenEmails()
    }

    /// The address around an `@` (RFC 5321, as far as people have such ones).
    private static func email(in bytes: [UInt8], at place: Int?) -> Range<Int>? {
        guard let place else { return nil }
        var start = place
        while start > 0, place - start < localBytesMax, isLocal(bytes[start - 1]) { start -= 1 }
        while start < place, !isAlphanumeric(bytes[start]) { start += 1 }
        var end = place + 1
        while end < bytes.count, end - place < domainBytesMax, isDomain(bytes[end]) { end += 1 }
        while end > place + 1, !isAlphanumeric(bytes[end - 1]) { end -= 1 }
        guard start < place, isHost(bytes[(place + 1)..<end]) else { return nil }
        return start..<end
    }

    /// Labels between dots, the last one of letters.
    private static func isHost(_ bytes: ArraySlice<UInt8>) -> Bool {
        let labels = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard labels.count >= 2, let last = labels.last, (2...24).contains(last.count) else { return false }
        return labels.allSatisfy { !$0.isEmpty && $0.count <= 63 } && last.allSatisfy(isLetter)
    }

    /// `jane (at) example (dot) org`, which is written against those who collect addresses.
    private mutating func findHiddenEmails() {
        let tokens = page.tokens
        for index in tokens.indices.dropFirst() where tokens[index].key == "at" {
            guard isBracketed(index), index + 1 < tokens.count, tokens[index + 1].line == tokens[index].line else {
                continue
            }
            let range = Self.word(in: page.bytes, around: tokens[index - 1].range)
            var domain = page.text(Self.word(in: page.bytes, around: tokens[index + 1].range))
            var end = Self.word(in: page.bytes, around: tokens[index + 1].range).upperBound
            if index + 3 < tokens.count, tokens[index + 2].key == "dot", isBracketed(index + 2) {
                domain += "." + page.text(tokens[index + 3].range)
                end = tokens[index + 3].range.upperBound
            }
            let address = page.text(range) + "@" + domain
            let bytes = Array(address.utf8)
            guard let whole = Self.email(in: bytes, at: bytes.firstIndex(of: 0x40)), whole.count == bytes.count else {
                continue
            }
            found.ranges.append(range.lowerBound..<end)
            Self.add(
                page.finding(range.lowerBound..<end, value: address), to: &found.emails, most: Resume.emailsMax
            ) { $0.lowercased() }
        }
    }

    private func isBracketed(_ index: Int) -> Bool {
        let range = page.tokens[index].range
        guard range.lowerBound > 0, range.upperBound < page.bytes.count else { return false }
        let pair = (page.bytes[range.lowerBound - 1], page.bytes[range.upperBound])
        return pair == (0x28, 0x29) || pair == (0x5B, 0x5D)
    }

    private static func word(in bytes: [UInt8], around range: Range<Int>) -> Range<Int> {
        var (start, end) = (range.lowerBound, range.upperBound)
        while start > 0, range.lowerBound - start < localBytesMax, isDomain(bytes[start - 1]) { start -= 1 }
        while end < bytes.count, end - range.upperBound < localBytesMax, isDomain(bytes[end]) { end += 1 }
        while end > range.upperBound, !isAlphanumeric(bytes[end - 1]) { end -= 1 }
        return start..<end
    }

    // MARK: Links

    /// People leave the scheme out; a word with a dot is a link when it names one of these, or has a known ending.
    private static let hosts: Set<String> = [
        "linkedin.com", "github.com", "gitlab.com", "bitbucket.org", "xing.com", "stackoverflow.com", "behance.net",
        "dribbble.com", "medium.com", "kaggle.com", "orcid.org", "twitter.com", "x.com", "facebook.com", "t.me",
        "instagram.com", "youtube.com", "codepen.io", "leetcode.com", "hackerrank.com", "researchgate.net",
        "scholar.google.com", "about.me", "dev.to", "huggingface.co", "codeberg.org",
    ]
    private static let endings: Set<String> = [
        "com", "org", "net", "io", "dev", "me", "info", "eu", "de", "at", "ch", "fr", "es", "it", "nl", "be", "pl",
        "cz", "pt", "br", "uk", "us", "ca", "app", "design", "page", "site", "online", "tech", "blog", "co", "se", "dk",
    ]
    /// Names of tools that look like hosts.
    private static let tools: Set<String> = [
        "asp.net", "vb.net", "ado.net", "ml.net", "socket.io", "draw.io", "net.core",
    ]

    private mutating func findLinks() {
        let bytes = page.bytes
        var index = 0
        while index < bytes.count {
            guard Self.isLink(bytes[index]) else {
                index += 1
                continue
            }
            let start = index
            while index < bytes.count, Self.isLink(bytes[index]) { index += 1 }
            var range = start..<index
            while let last = range.last, Self.isTail(bytes[last]) { range = range.lowerBound..<last }
            while let first = range.first, Self.isHead(bytes[first]) { range = (first + 1)..<range.upperBound }
            if let link = link(in: range) {
                found.ranges.append(link)
                Self.add(page.finding(link), to: &found.links, most: Resume.linksMax, by: Self.address)
            }
        }
    }

    private func link(in range: Range<Int>) -> Range<Int>? {
        guard range.count >= 4, range.count <= Self.linkBytesMax, !page.bytes[range].contains(0x40) else { return nil }
        var text = Substring(String(decoding: page.bytes[range], as: UTF8.self))
        var start = range.lowerBound
        // "GitHub:github.com/jane"
        if !text.contains("://"), let colon = text.lastIndex(of: ":"), text[colon...].contains(".") {
            start += text[...colon].utf8.count
            text = text[text.index(after: colon)...]
        }
        let lower = text.lowercased()
        let hasScheme = lower.hasPrefix("http://") || lower.hasPrefix("https://")
        guard hasScheme || !lower.contains("://") else { return nil }
        let address = Self.address(lower)
        let host = address.prefix { $0 != "/" && $0 != "?" && $0 != "#" && $0 != ":" }
        guard Self.isHost(ArraySlice(host.utf8)) else { return nil }
        if hasScheme || lower.hasPrefix("www.") { return start..<range.upperBound }
        let name = host.split(separator: ".").suffix(2).joined(separator: ".")
        if Self.hosts.contains(name) || Self.hosts.contains(String(host)) { return start..<range.upperBound }
        guard Self.endings.contains(String(host.split(separator: ".").last ?? "")), !Self.tools.contains(String(host))
        else { return nil }
        // A sentence that ends without a space before the next one has a capital there.
        return text.prefix(host.count).allSatisfy { !$0.isUppercase } ? start..<range.upperBound : nil
    }

    // MARK: Bytes

    private static func isLetter(_ byte: UInt8) -> Bool {
        (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
    }
    private static func isAlphanumeric(_ byte: UInt8) -> Bool { isLetter(byte) || (0x30...0x39).contains(byte) }
    private static func isDomain(_ byte: UInt8) -> Bool { isAlphanumeric(byte) || byte == 0x2D || byte == 0x2E }
    private static func isLocal(_ byte: UInt8) -> Bool {
        isDomain(byte) || byte == 0x5F || byte == 0x2B || byte == 0x25
    }
    /// RFC 3986, without what stands around a link in a text.
    private static func isLink(_ byte: UInt8) -> Bool {
        isDomain(byte) || "_~:/?#@!$&'*+=%()".utf8.contains(byte)
    }
    private static func isTail(_ byte: UInt8) -> Bool { ".:/?#!'*=()&-".utf8.contains(byte) && byte != 0x2F }
    private static func isHead(_ byte: UInt8) -> Bool { !isAlphanumeric(byte) }
}
