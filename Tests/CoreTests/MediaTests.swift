import Core
import Testing

@Suite("Media")
struct MediaTests {
    @Test("what is said about a file has bounds, and a name without anything to see is none")
    func info() throws {
        let long = String(repeating: "ä", count: 1000)
        let info = try Media.Info(name: "a/b/cat.png", alternativeText: " A cat ", caption: long)
        #expect(info.name == "cat.png" && info.alternativeText == "A cat" && info.caption == long)
        #expect(try Media.Info(name: " \u{202E}", alternativeText: nil, caption: nil) == .none)
        for (name, alternative, caption) in [
            (String(repeating: "n", count: 256), "", ""), ("", long + "ä", ""), ("", "", long + "ä"),
            ("", "a\u{0}b", ""),
        ] {
            let error = #expect(throws: AppError.self) {
                _ = try Media.Info(name: name, alternativeText: alternative, caption: caption)
            }
            #expect(error?.code == .invalid && error?.issues.count == 1)
        }
    }

    @Test("each use takes one kind of file")
    func use() {
        #expect(MediaUse.logo(.init(1)).kind == .logo)
        #expect(MediaUse.profile(.init(1)).kind == .profile)
        #expect(MediaUse.cv(.init(1)).kind == .cv)
    }
}
