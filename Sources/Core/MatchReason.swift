import Foundation

/// Why a posting is in an alert's mail, in words of the person who saved the search.
public struct MatchReason: Sendable {
    public let search: PostingSearch
    /// The search's words and phrases that the posting has.
    public let wordsFound: [String]
    /// From the middle of the search's circle, when it has one.
    public let distanceKm: Double?
    public let company: String

    public init(search: PostingSearch, wordsFound: [String], distanceKm: Double?, company: String) {
        self.search = search
        self.wordsFound = wordsFound
        self.distanceKm = distanceKm
        self.company = company
    }

    public var text: String {
        var parts: [String] = []
        if !wordsFound.isEmpty {
            parts.append("it has " + wordsFound.map { "“\($0)”" }.joined(separator: ", "))
        } else if !search.q.isEmpty {
            parts.append("it matches “\(search.q)”")
        }
        if !search.placeName.isEmpty { parts.append("in \(search.placeName)") }
        if let place = search.place {
            let radius = Int(place.radiusKm.rounded())
            parts.append(
                distanceKm.map { "\(Int($0.rounded())) km from your place (within \(radius) km)" }
                    ?? "within \(radius) km of your place")
        }
        if let remote = search.remote { parts.append(remote.label) }
        if let kind = search.kind { parts.append(kind.label) }
        if let salary = search.salaryAtLeast, salary > 0 { parts.append("at least \(Self.grouped(salary)) a year") }
        if search.companyID != nil { parts.append("from \(company)") }
        return parts.joined(separator: "; ")
    }

    /// 60000 → 60,000.
    private static func grouped(_ number: Int32) -> String {
        var digits = Array(String(number))
        for index in stride(from: digits.count - 3, to: 0, by: -3) { digits.insert(",", at: index) }
        return String(digits)
    }
}

extension Remoteness {
    /// In a sentence.
    public var label: String {
        switch self {
        case .onSite: "on site"
        case .hybrid: "partly remote"
        case .remote: "remote"
        }
    }
}

extension EmploymentKind {
    /// In a sentence.
    public var label: String {
        switch self {
        case .fullTime: "full time"
        case .partTime: "part time"
        case .contract: "contract"
        case .consultancy: "consultancy"
        case .internship: "internship"
        case .longTerm: "long term"
        case .shortTerm: "short term"
        case .temporary: "temporary"
        case .other: "other type of work"
        }
    }
}
