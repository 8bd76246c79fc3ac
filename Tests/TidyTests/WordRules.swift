import Foundation

/// What is not written in Swift sources, and where.
enum WordRules {
    /// `@unchecked Sendable` outside the event loop hides the crash it causes.
    static func uncheckedSendable(_ file: SwiftText) -> [Finding] {
        guard !file.path.hasPrefix("Sources/EventLoop/") else { return [] }
        return find(
            /@unchecked\s+Sendable/, in: file, having: "@unchecked", "@unchecked Sendable belongs to EventLoop only.")
    }

    /// What ends the process on a value that was not foreseen. Tests may.
    static func crashes(_ file: SwiftText) -> [Finding] {
        find(/\btry!/, in: file, having: "!", "try! ends the process.")
            + find(/\bas!/, in: file, having: "!", "as! ends the process.")
            + find(/\bfatalError\s*\(/, in: file, having: "fatalError", "fatalError ends the process.")
            + find(/[A-Za-z0-9_)\]>]!(?!=)/, in: file, having: "!", "A forced unwrap ends the process.")
    }

    /// One word, one thing: postings, applications and work items; nothing is just a "job".
    static func typesNamedJob(_ file: SwiftText) -> [Finding] {
        find(
            /\b(?:struct|class|enum|actor|protocol|typealias)\s+Jobs?\b/, in: file, having: "Job",
            "A posting, a work item or an application, but nothing is just a job.")
    }

    /// A test waits for a signal with a deadline, never on a clock.
    static func sleeps(_ file: SwiftText) -> [Finding] {
        find(
            /(?:\b(?:Task\.sleep|Thread\.sleep|usleep\s*\(|nanosleep\s*\()|(?:^|[^.\w])sleep\s*\()/, in: file,
            having: "sleep", "A test waits for a signal, not for time.")
    }

    /// SQL is written in CorePostgres, in the driver, in migrations and in tests.
    static func sql(_ file: SwiftText) -> [Finding] {
        let home = ["Sources/CorePostgres/", "Sources/Postgres/", "Tests/"]
        guard !home.contains(where: file.path.hasPrefix) else { return [] }
        let words = ["SELECT", "INSERT", "UPDATE", "DELETE"]
        return file.literals.compactMap { literal in
            guard words.contains(where: literal.text.contains) else { return nil }
            let statement = /\b(?:SELECT\s[\s\S]+\sFROM\s|INSERT\s+INTO\s|UPDATE\s+[\w.]+\s+SET\s|DELETE\s+FROM\s)/
            guard literal.text.firstMatch(of: statement) != nil else { return nil }
            return Finding(path: file.path, line: literal.line, "SQL belongs in CorePostgres.")
        }
    }

    /// Unfinished work is an issue, not a comment. Looks at the whole text, of any language.
    static func unfinished(path: String, lines: [Substring]) -> [Finding] {
        // Put together here so that this file passes its own rule.
        let marks = ["TO" + "DO", "FIX" + "ME"]
        return lines.enumerated().compactMap { offset, line in
            marks.contains(where: line.contains)
                ? Finding(path: path, line: offset + 1, "Unfinished work is an issue, not a comment.") : nil
        }
    }

    /// - Parameter word: stands in every match; lines without it are passed by, as patterns are slow.
    private static func find(
        _ pattern: some RegexComponent, in file: SwiftText, having word: String, _ message: String
    ) -> [Finding] {
        file.codeLines.enumerated().compactMap { offset, line in
            guard strstr(line, word) != nil, line.firstMatch(of: pattern) != nil else { return nil }
            return Finding(path: file.path, line: offset + 1, message)
        }
    }
}
