/// What a command understands. `--help` is made from it, so neither can be forgotten.
struct CommandSyntax: Sendable {
    struct Option: Sendable {
        let name: String
        /// What to call its value in the help; nil for a switch.
        let value: String?
        let help: String
        /// What its value may be, where that is known; for completion.
        let values: [String]

        init(_ name: String, _ value: String? = nil, _ help: String, values: [String] = []) {
            self.name = name
            self.value = value
            self.help = help
            self.values = values
        }
    }

    let name: String
    let summary: String
    /// What comes after the name in the usage line.
    let operands: String
    let operandCount: ClosedRange<Int>
    /// What the first operand may be, where that is known; for completion.
    let actions: [String]
    let options: [Option]
    /// A few sentences for the end of the help.
    let notes: String

    init(
        _ name: String, _ summary: String, operands: String = "", count: ClosedRange<Int> = 0...0,
        actions: [String] = [], options: [Option] = [], notes: String = ""
    ) {
        self.name = name
        self.summary = summary
        self.operands = operands
        operandCount = count
        self.actions = actions
        self.options =
            options + [
                Option("--json", nil, "print one JSON document instead of words"), Option("--help", nil, "show this"),
            ]
        self.notes = notes
    }

    var help: String {
        var text = "Usage: martlet \(name)" + (operands.isEmpty ? "" : " \(operands)") + " [options]\n\n\(summary)\n\n"
        let left = options.map { "  \($0.name)" + ($0.value.map { " \($0)" } ?? "") }
        let width = (left.map(\.count).max() ?? 0) + 2
        for (option, name) in zip(options, left) {
            text += name + String(repeating: " ", count: width - name.count) + option.help + "\n"
        }
        return notes.isEmpty ? text : text + "\n\(notes)\n"
    }
}

/// A command line that cannot be understood. Ends the process with EX_USAGE.
struct UsageError: Error, Equatable, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// A command line, read by a command's syntax.
struct Arguments: Sendable {
    private(set) var operands: [String] = []
    private var values: [String: String] = [:]

    /// Options may stand anywhere; `--name value` and `--name=value` are the same; after `--` all are operands.
    init(_ words: [String], _ syntax: CommandSyntax) throws(UsageError) {
        var rest = words[...]
        while let word = rest.popFirst() {
            guard word.hasPrefix("-"), word != "-" else {
                operands.append(word)
                continue
            }
            if word == "--" {
                operands.append(contentsOf: rest)
                break
            }
            let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            let name = parts[0] == "-h" ? "--help" : parts[0]
            guard let option = syntax.options.first(where: { $0.name == name }) else {
                throw UsageError("martlet \(syntax.name) has no option \(name)")
            }
            guard values[name] == nil else { throw UsageError("\(name) is given twice") }
            if option.value == nil {
                guard parts.count == 1 else { throw UsageError("\(name) takes no value") }
                values[name] = ""
            } else if parts.count == 2 {
                values[name] = parts[1]
            } else {
                guard let value = rest.popFirst() else { throw UsageError("\(name) needs a value") }
                values[name] = value
            }
        }
        guard has("--help") || syntax.operandCount.contains(operands.count) else {
            throw UsageError(
                operands.count < syntax.operandCount.lowerBound
                    ? "martlet \(syntax.name) needs \(syntax.operands)"
                    : "martlet \(syntax.name) does not take \"\(operands[syntax.operandCount.upperBound])\"")
        }
    }

    func has(_ name: String) -> Bool { values[name] != nil }
    func value(_ name: String) -> String? { values[name] }

    func required(_ name: String) throws(UsageError) -> String {
        guard let value = values[name], !value.isEmpty else { throw UsageError("\(name) is needed") }
        return value
    }

    func integer(_ name: String, in range: ClosedRange<Int>) throws(UsageError) -> Int? {
        guard let text = values[name] else { return nil }
        guard let value = Int(text), range.contains(value) else {
            throw UsageError("\(name) must be a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return value
    }
}
