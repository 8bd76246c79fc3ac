import Foundation

/// An item of the GitHub Jobs API (docs of the API as quoted by its clients; `how_to_apply` is HTML as well).
enum GitHubJobs {
    static func posting(_ fields: RecordFields) throws(RecordFields.Mistake) -> SourcePosting {
        let place = try fields.text("location")
        let apply = try fields.text("how_to_apply")
        var html = try fields.text("description")
        if apply.contains(where: { !$0.isWhitespace }) { html += "<h2>How to apply</h2>\(apply)" }
        return SourcePosting(
            source: "github-jobs", externalID: try fields.key("id"), company: try fields.required("company"),
            title: try fields.required("title"), description: try SourceHTML.safe(html, field: "description"),
            employmentType: try fields.text("type"),
            environment: SourcePlace.environment(workplace: "", place: place), place: place,
            applyURL: firstLink(in: apply) ?? "", publishedAt: try fields.date("created_at"), closesAt: nil)
    }

    /// The first web address in a text or in an attribute.
    static func firstLink(in html: String) -> String? {
        guard let match = html.firstMatch(of: /https?:\/\/[^\s"'<>]+/) else { return nil }
        return String(match.0).replacing("&amp;", with: "&")
    }
}
