import Core
import Crypto
import Foundation
import SafeHTML

/// A posting as a source gives it, before the rules of Core have been applied.
struct SourcePosting {
    var source: String
    var externalID: String
    var company: String
    var title: String
    /// Safe HTML.
    var description: String
    var employmentType = ""
    var environment = ""
    var place = ""
    var salary: Salary?
    var applyURL = ""
    /// nil where the source does not say.
    var publishedAt: Date?
    var closesAt: Date?

    /// Applies the rules.
    /// - Throws: `AppError` with the reason for which it is refused.
    func accept(_ context: MappingContext) throws -> ImportedPosting {
        let isPast = closesAt.map { $0 <= context.now } ?? false
        let renewed = isPast ? context.renewDays.map { context.now.addingTimeInterval(Double($0) * 86_400) } : nil
        let terms = try JobPosting.Terms(
            employmentType: Self.line(employmentType), environment: Self.line(environment), place: Self.line(place),
            salary: salary, applyURL: link(applyURL))
        let draft = try JobPosting.Draft(
            title: Self.line(title), safeDescription: description, terms: terms, state: .published,
            validThrough: renewed ?? closesAt)
        let company = try Company.Draft.name.accept(Self.line(company))
        return ImportedPosting(
            source: source, externalID: externalID, companyName: company, draft: draft,
            // A posting of tomorrow would stand before all others until then.
            publishedAt: min(publishedAt ?? context.now, context.now),
            contentHash: hash(draft, company: company, isRenewed: renewed != nil))
    }

    /// Tabs and line ends come with what people paste into a title; a space is meant. What else is no text is refused.
    private static func line(_ text: String) -> String {
        let text = SourceText.mended(text)
        guard text.utf8.contains(where: { $0 == 0x09 || $0 == 0x0A || $0 == 0x0D }) else { return text }
        return text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }

    /// Sources have links that are none ("http:", mail addresses). The posting is worth more than its link.
    private func link(_ text: String) -> String {
        (try? WebLink.accept(text, field: JobPosting.Terms.applyURL)) ?? ""
    }

    /// Of everything the source said, and whether it was renewed; not of the day until which, which differs each time.
    private func hash(_ draft: JobPosting.Draft, company: String, isRenewed: Bool) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(draft.description.utf8.count + 512)
        func add(_ text: String) {
            bytes.append(contentsOf: text.utf8)
            bytes.append(0)
        }
        for text in [
            company, draft.title, draft.description, draft.terms.employmentType, draft.terms.environment,
            draft.terms.place, draft.terms.applyURL,
        ] { add(text) }
        if let salary = draft.terms.salary {
            add("\(salary.minimum ?? -1) \(salary.maximum ?? -1) \(salary.currency) \(salary.period.rawValue)")
        }
        add("\(publishedAt?.timeIntervalSince1970 ?? 0) \(closesAt?.timeIntervalSince1970 ?? 0) \(isRenewed)")
        return SHA256.hash(bytes)
    }
}

enum SourceText {
    /// UTF-8 that somebody has once read as Latin-1 ("â\u{80}\u{93}" for a dash). Only where C1 control characters
    /// give it away: no text has those. What does not become UTF-8 again becomes spaces.
    static func mended(_ text: String) -> String {
        guard hasC1(text) else { return text }
        var result = ""
        var run: [UInt8] = []
        func flush() {
            if let mended = String(validating: run, as: UTF8.self) {
                result += mended
            } else {
                for byte in run { result.unicodeScalars.append(byte < 0xA0 ? " " : Unicode.Scalar(byte)) }
            }
            run = []
        }
        for scalar in text.unicodeScalars {
            if (0x80...0xFF).contains(scalar.value) {
                run.append(UInt8(scalar.value))
            } else {
                if !run.isEmpty { flush() }
                result.unicodeScalars.append(scalar)
            }
        }
        flush()
        return result
    }

    private static func hasC1(_ text: String) -> Bool {
        var isAfterC2 = false
        for byte in text.utf8 {
            if isAfterC2, byte < 0xA0 { return true }
            isAfterC2 = byte == 0xC2
        }
        return false
    }
}

/// HTML on its way from a source.
enum SourceHTML {
    /// - Throws: `RecordFields.Mistake` when it is beyond the sanitiser's limits.
    static func safe(_ html: String, field: String) throws(RecordFields.Mistake) -> String {
        guard !html.isEmpty else { return "" }
        do throws(SafeHTML.Failure) {
            return try SafeHTML.sanitise(SourceText.mended(html))
        } catch {
            switch error {
            case .tooLarge: throw RecordFields.Mistake("\(field) is too large")
            case .tooManyTags: throw RecordFields.Mistake("\(field) has too many tags")
            case .tooComplex: throw RecordFields.Mistake("\(field) is too deeply nested")
            }
        }
    }

    static func paragraph(_ text: String) -> String { text.isEmpty ? "" : "<p>\(SafeHTML.escaped(text))</p>" }

    static func list(_ items: [String]) -> String {
        items.isEmpty ? "" : "<ul>" + items.map { "<li>\(SafeHTML.escaped($0))</li>" }.joined() + "</ul>"
    }
}

/// "Remote" and "Hybrid", where a source says it with the place only ("Remote - US").
enum SourcePlace {
    static func environment(workplace: String, place: String) -> String {
        if !workplace.isEmpty { return workplace }
        let words = place.lowercased().split { !$0.isLetter }
        if words.contains("hybrid") { return "Hybrid" }
        if words.contains("remote") || words.contains("anywhere") { return "Remote" }
        return ""
    }
}
