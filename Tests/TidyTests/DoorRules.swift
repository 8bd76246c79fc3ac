/// Which module may import which. SwiftPM lets transitive imports through, so these rules are the guard.
enum DoorRules {
    /// What any module may import beside its dependencies: it comes with the toolchain and opens no socket and no file
    /// of ours. The C library is left to those whose work is system calls.
    static let toolchain: Set<String> = [
        "Dispatch", "Foundation", "FoundationEssentials", "Synchronization", "Testing",
    ]
    static let systemCallers: Set<String> = [
        "Crypto", "EventLoop", "HTTPServer", "MediaStore", "MediaTools", "OperatorApp", "Postgres", "SafeHTML",
        "ServiceKit", "TestSupport", "Transfer", "WebSocket", "WorkerApp",
    ]

    static let apps: Set<String> = ["ChatApp", "GatewayApp", "OperatorApp", "WorkerApp"]

    /// The modules that a file imports, with the line of each.
    static func imports(of file: SwiftText) -> [(line: Int, module: String)] {
        file.codeLines.enumerated().compactMap { offset, line in
            guard line.contains("import ") else { return nil }
            // The words before "import" are attributes and access levels; of "import struct A.B" the module is A.
            guard let match = line.firstMatch(of: /^\s*(?:@?\w+\s+)*?import\s+(?:[a-z]+\s+)?(\w+)/) else { return nil }
            return (line: offset + 1, module: String(match.1))
        }
    }

    static func check(_ file: SwiftText, target: String, manifest: PackageManifest) -> [Finding] {
        guard manifest.dependencies[target] != nil else {
            return [Finding(path: file.path, line: 1, "Package.swift has no target \(target).")]
        }
        return imports(of: file).compactMap { line, module in
            guard let reason = refusal(of: module, in: target, manifest: manifest) else { return nil }
            return Finding(path: file.path, line: line, "\(target) imports \(module): \(reason)")
        }
    }

    private static func refusal(of module: String, in target: String, manifest: PackageManifest) -> String? {
        if manifest.cLibraries.contains(target) { return "a C library's target imports nothing." }
        if apps.contains(target) {
            if module == "CorePostgres" || module == "Postgres" { return "SQL stays behind Core's protocols." }
            if manifest.cLibraries.contains(module) { return "C libraries have wrappers." }
            if apps.contains(module) { return "the apps do not know each other." }
        }
        if target == "Core", !["Foundation", "FoundationEssentials"].contains(module) {
            return "Core stands on Foundation only."
        }
        if manifest.dependencies[target]?.contains(module) == true || toolchain.contains(module) { return nil }
        if module == "Glibc", systemCallers.contains(target) || target.hasSuffix("Tests") { return nil }
        return "Package.swift does not list it."
    }
}
