import Core
import Foundation
import SafeHTML

/// An item of Greenhouse's job board API (developers.greenhouse.io/job-board.html). `content` is HTML whose characters
/// have been escaped once more.
enum Greenhouse {
    static func posting(_ fields: RecordFields, company: String?) throws(RecordFields.Mistake) -> SourcePosting {
        let url = try fields.text("absolute_url")
        let place = try fields.child("location").text("name")
        var html = SafeHTML.unescapeOnce(try fields.text("content"))
        var departments: [String] = []
        for department in try fields.objects("departments") { departments.append(try department.text("name")) }
        if html.isEmpty, !departments.isEmpty {
            html = SourceHTML.paragraph("Department: " + departments.joined(separator: ", "))
        }
        let named = try fields.text("company_name")
        let published = try fields.date("first_published")
        let updated = try fields.date("updated_at")
        return SourcePosting(
            source: "greenhouse", externalID: try fields.key("id"),
            company: try Board.company(named: named, given: company, url: url, hosts: ["greenhouse.io"]),
            title: try fields.required("title"), description: try SourceHTML.safe(html, field: "content"),
            environment: SourcePlace.environment(workplace: "", place: place), place: place, applyURL: url,
            publishedAt: published ?? updated, closesAt: nil)
    }
}

/// An item of Lever's postings API (github.com/lever/postings-api).
enum Lever {
    static func posting(_ fields: RecordFields, company: String?) throws(RecordFields.Mistake) -> SourcePosting {
        let categories = try fields.child("categories")
        let place = try categories.text("location")
        let url = try fields.text("hostedUrl")
        let apply = try fields.text("applyUrl")
        var created: Date?
        if let milliseconds = try fields.number("createdAt") {
            guard (0...7_000_000_000_000).contains(milliseconds) else {
                throw RecordFields.Mistake("createdAt is out of range")
            }
            created = Date(timeIntervalSince1970: milliseconds / 1000)
        }
        return SourcePosting(
            source: "lever", externalID: try fields.key("id"),
            company: try Board.company(named: "", given: company, url: url, hosts: ["lever.co"]),
            title: try fields.required("text"),
            description: try SourceHTML.safe(try html(fields, categories), field: "description"),
            employmentType: try categories.text("commitment"),
            environment: SourcePlace.environment(workplace: try workplace(fields), place: place),
            place: place, salary: try salary(fields), applyURL: apply.isEmpty ? url : apply,
            publishedAt: created, closesAt: nil)
    }

    /// The parts that Lever shows one below the other.
    private static func html(
        _ fields: RecordFields, _ categories: RecordFields
    ) throws(RecordFields.Mistake) -> String {
        var html = try fields.text("description")
        if html.isEmpty { html = SafeHTML.fromPlainText(try fields.text("descriptionPlain")) }
        for part in try fields.objects("lists") {
            html += "<h2>\(SafeHTML.escaped(try part.text("text")))</h2><ul>\(try part.text("content"))</ul>"
        }
        html += try fields.text("additional")
        guard html.isEmpty else { return html }
        var facts: [String] = []
        for name in ["department", "team"] {
            let value = try categories.text(name)
            if !value.isEmpty { facts.append("\(name.capitalized): \(value)") }
        }
        return SourceHTML.paragraph(facts.joined(separator: ". "))
    }

    private static func workplace(_ fields: RecordFields) throws(RecordFields.Mistake) -> String {
        let text = try fields.text("workplaceType")
        return text == "unspecified" ? "" : text
    }

    /// `{"min": 1, "max": 2, "currency": "USD", "interval": "per-year-salary"}`. One that makes no sense is left out.
    private static func salary(_ fields: RecordFields) throws(RecordFields.Mistake) -> Salary? {
        let range = try fields.child("salaryRange")
        let interval = try range.text("interval")
        guard let period = Salary.Period.allCases.first(where: { interval.hasPrefix("per-\($0.rawValue)") }) else {
            return nil
        }
        func minor(_ name: String) throws(RecordFields.Mistake) -> Int64? {
            guard let amount = try range.number(name), amount >= 0, amount <= 1e10 else { return nil }
            return Int64(amount * 100)
        }
        return try? Salary(
            minimum: try minor("min"), maximum: try minor("max"), currency: try range.text("currency"), period: period)
    }
}

/// A record of the dump that has both.
enum MixedBoards {
    static func posting(_ fields: RecordFields) throws(RecordFields.Mistake) -> SourcePosting {
        let source = try fields.text("source")
        let raw = try fields.text("description")
        let html: String
        switch source {
        case "greenhouse": html = SafeHTML.unescapeOnce(raw)
        case "lever": html = SafeHTML.fromPlainText(raw)
        default: throw RecordFields.Mistake("source is neither greenhouse nor lever")
        }
        let place = try fields.text("locationName")
        return SourcePosting(
            source: source, externalID: try fields.key("id"), company: try fields.required("organization"),
            title: try fields.required("title"), description: try SourceHTML.safe(html, field: "description"),
            employmentType: try fields.text("employmentType"),
            environment: SourcePlace.environment(workplace: try fields.text("workplaceType"), place: place),
            place: place, applyURL: try fields.text("url"), publishedAt: try fields.date("timestamp"), closesAt: nil)
    }
}

/// Boards do not name the company in their records; their addresses do.
enum Board {
    static func company(
        named: String, given: String?, url: String, hosts: [String]
    ) throws(RecordFields.Mistake) -> String {
        if let given { return given }
        if !named.isEmpty { return named }
        guard let parts = URLComponents(string: url), let host = parts.host?.lowercased(), !host.isEmpty else {
            throw RecordFields.Mistake("the company is not named; give it with --company")
        }
        if hosts.contains(where: { host == $0 || host.hasSuffix("." + $0) }),
            let first = parts.path.split(separator: "/").first
        {
            return String(first)
        }
        return host.hasPrefix("www.") ? String(host.dropFirst(4)) : host
    }
}
