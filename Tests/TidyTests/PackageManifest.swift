/// The targets of Package.swift and what each may import, read from its text: `module("X", ["A", "B"])` and friends.
struct PackageManifest {
    /// Target name → names of the targets it depends on.
    private(set) var dependencies: [String: Set<String>] = [:]
    /// The targets that only wrap C: system libraries, and what is compiled from a distribution's C sources.
    private(set) var cLibraries: Set<String> = []

    init(text: String) {
        // Comments may hold brackets and quotation marks.
        let text = text.split(separator: "\n", omittingEmptySubsequences: false)
            .map { $0.replacing(/^\s*\/\/.*$/, with: "") }.joined(separator: "\n")
        for match in text.matches(of: /\b(?:module|program|tests)\(\s*"([^"]+)",\s*\[([^\]]*)\]/) {
            dependencies[String(match.1)] = Self.names(in: match.2)
        }
        for match in text.matches(of: /\blibrary\("([^"]+)"/) {
            dependencies[String(match.1)] = []
            cLibraries.insert(String(match.1))
        }
        for match in text.matches(of: /\.target\(\s*name:\s*"([^"]+)",\s*(?:dependencies:\s*\[([^\]]*)\])?/) {
            dependencies[String(match.1)] = Self.names(in: match.2 ?? "")
            // Swift modules of Sources are declared by `module`; a plain target there is one of C.
            if text[match.range.upperBound...].prefix(while: { $0 != ")" }).contains("path: \"Sources/") {
                cLibraries.insert(String(match.1))
            }
        }
    }

    private static func names(in list: Substring) -> Set<String> {
        Set(list.matches(of: /"([^"]+)"/).map { String($0.1) })
    }
}
