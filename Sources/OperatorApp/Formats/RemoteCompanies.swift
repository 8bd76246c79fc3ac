import Core
import Crypto
import Foundation

/// A company of the list remoteintech/remote-jobs: front matter as members, the page as Markdown in `body`.
enum RemoteCompanies {
    static func company(_ fields: RecordFields) throws -> ImportedCompany {
        let website = try fields.text("website")
        var category: [String] = []
        for name in ["remote_policy", "region"] {
            let value = try fields.text(name)
            if !value.isEmpty { category.append(value) }
        }
        let draft = try Company.Draft(
            name: try fields.required("title"), category: category.joined(separator: ", "),
            bio: try fields.text("body"),
            website: (try? WebLink.accept(website, field: Company.Draft.website)) ?? "")
        let hash = SHA256.hash(
            [draft.name, draft.category, draft.bio, draft.website].joined(separator: "\0"))
        return ImportedCompany(
            source: "remoteintech", externalID: try fields.key("slug"), draft: draft, contentHash: hash)
    }
}
