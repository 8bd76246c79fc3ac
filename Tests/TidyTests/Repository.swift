import Foundation

/// The files of this checkout that the rules look at.
struct Repository {
    static let current = Repository()

    let root: URL
    let manifest: PackageManifest
    /// All Swift files under Sources and Tests.
    let swiftFiles: [SwiftText]
    /// Everything written by hand whose lines are code: Swift, C headers, Python, shell, SQL.
    let codeFiles: [(path: String, lines: [Substring])]
    let migrations: [(name: String, text: String)]

    /// A file that cannot be read counts as empty, and the test that the checkout was found at all fails.
    private init() {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        func text(_ path: String) -> String {
            (try? String(contentsOf: root.appending(path: path), encoding: .utf8)) ?? ""
        }
        func files(under folder: String) -> [String] {
            let found = FileManager.default.enumerator(atPath: root.appending(path: folder).path)
            let paths = (found?.allObjects ?? []).compactMap { $0 as? String }
            return paths.filter { !$0.contains("__pycache__") && !$0.hasPrefix(".") }.sorted().map { "\(folder)/\($0)" }
        }
        self.root = root
        manifest = PackageManifest(text: text("Package.swift"))
        let sources = files(under: "Sources") + files(under: "Tests")
        swiftFiles = sources.filter { $0.hasSuffix(".swift") }.map { SwiftText(path: $0, text: text($0)) }
        migrations = files(under: "migrations").filter { $0.hasSuffix(".sql") }
            .map { (name: String($0.dropFirst("migrations/".count)), text: text($0)) }
        let code =
            sources.filter { [".swift", ".h", ".py"].contains(where: $0.hasSuffix) }
            + files(under: "ops/scripts") + migrations.map { "migrations/\($0.name)" } + ["Makefile", "Package.swift"]
        codeFiles = code.map { path in
            (path: path, lines: text(path).split(separator: "\n", omittingEmptySubsequences: false))
        }
    }

    /// The names of the folders right under a folder.
    func folders(in folder: String) -> Set<String> {
        let parent = root.appending(path: folder)
        let names = (try? FileManager.default.contentsOfDirectory(atPath: parent.path)) ?? []
        return Set(
            names.filter { name in
                var isFolder: ObjCBool = false
                let path = parent.appending(path: name).path
                return FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) && isFolder.boolValue
            })
    }
}
