import Core
import Postgres
import SafeHTML
import TestSupport
import Testing

@testable import CorePostgres

@Suite("Descriptions as lists search them")
struct EntryDescriptionTests {
    private static let samples = [
        "<p>Hello</p>", "a<b>b</b>c <i>d</i>e", "<h1>Who</h1>we<br>are<hr><h3>What</h3>",
        "no markup at all, 1 < 2 & so on",
        "<ul><li>one</li><li>two<ol><li>deep</li><li>deeper</li></ol></li></ul>after",
        #"<a href="https://x.example/?a=1&b=%3E>">R&amp;D</a>,<a href="mailto:a@b.example">mail</a>"#,
        "<pre>  two  spaces\n\tand a tab\n</pre>", "<table><tr><td>left</td><td>right</td></tr></table>",
        "&amp;lt;b&amp;gt; &lt;script&gt; &quot;quoted&quot; &#39;s", "<blockquote><p>cited</p></blockquote>text",
        "<div>\n  <p>\n    spread\n    out\n  </p>\n</div>", "C<em>++</em>, .<code>NET</code>, <code>a<b</code>",
        "\u{1F680} <strong>\u{E9}lan</strong>\u{A0}vital \u{2003}wide", "<script>alert(1)</script><style>p{}</style>x",
        "<p></p><p> </p>", "", "<li>stray<li>items", "100% _sure_ \\ <>< ><> &gt;&lt;",
    ]

    @Test("the words that are searched are those that are shown, but for marks of lists and the width of white space")
    func agreement() async throws {
        try await withTestDatabase { db, database in
            try await EntryWorld.fill(database)
            let words = try #require(EntryColumns.expression(.posting(.description), now: EntryWorld.now))
            for sample in Self.samples {
                for safe in [try SafeHTML.sanitise(sample), SafeHTML.fromPlainText(sample)] {
                    try await db.write.execute("UPDATE job_postings SET description = \(safe) WHERE id = 1")
                    let searched = try await db.short.first("SELECT \(words) FROM job_postings p WHERE p.id = 1") {
                        try $0.get(0, as: String.self)
                    }
                    #expect(searched == Self.words(of: SafeHTML.text(ofSafe: safe)), "\(safe)")
                }
            }
        }
    }

    private static func words(of text: String) -> String {
        let lines = text.split(separator: "\n").map { $0.replacing(/^(• |[0-9]+\. )+/, with: "") }
        return lines.joined(separator: " ").split(whereSeparator: { " \t\n\r".contains($0) }).joined(separator: " ")
    }
}
