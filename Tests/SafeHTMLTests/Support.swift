import Foundation

@testable import SafeHTML

/// Why `html` is not what the sanitiser may write, or nil when it is: only the allowed tags, letter for letter, each
/// closed where it was opened. It knows nothing of how the sanitiser works.
func fault(in html: String) -> String? {
    var open: [String] = []
    var rest = html[...]
    while let start = rest.firstIndex(where: { $0 == "<" || $0 == ">" }) {
        guard rest[start] == "<", let end = rest[start...].firstIndex(of: ">") else { return "a bare \(rest[start])" }
        let tag = String(rest[rest.index(after: start)..<end])
        rest = rest[rest.index(after: end)...]
        if tag == "br" || tag == "hr" { continue }
        if tag.hasPrefix("/") {
            guard open.popLast() == String(tag.dropFirst()) else { return "<\(tag)> closes nothing" }
        } else if allowed.contains(tag) {
            open.append(tag)
        } else if tag.wholeMatch(of: link) != nil {
            open.append("a")
        } else {
            return "<\(tag)>"
        }
    }
    return open.isEmpty ? nil : "\(open) left open"
}

private let allowed: Set<String> = [
    "p", "ul", "ol", "li", "strong", "b", "em", "i", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre", "code",
]

nonisolated(unsafe) private let link =
    /a href="(?i:https?:\/\/|mailto:)[^"<>\s\\]+" rel="noopener nofollow ugc"/
