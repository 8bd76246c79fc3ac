/// Prints what a shell needs to complete the command's words, from the same tables that `--help` is made of.
enum CompletionCommand: Command {
    static let syntax = CommandSyntax(
        "completion", "Prints completion for a shell.", operands: "bash|zsh|fish", count: 1...1,
        actions: ["bash", "zsh", "fish"],
        notes: """
            bash    martlet completion bash >/usr/share/bash-completion/completions/martlet
            zsh     martlet completion zsh >/usr/local/share/zsh/site-functions/_martlet
            fish    martlet completion fish >~/.config/fish/completions/martlet.fish
            """)

    static func run(_ arguments: Arguments, _ context: Operator) async throws -> Int32 {
        let syntaxes = Operator.commands.map { $0.syntax }
        switch arguments.operands.first {
        case "bash": context.terminal.write(ShellCompletion.bash(syntaxes))
        case "zsh": context.terminal.write(ShellCompletion.zsh(syntaxes))
        case "fish": context.terminal.write(ShellCompletion.fish(syntaxes))
        default: throw UsageError("martlet completion knows bash, zsh and fish")
        }
        return Operator.Status.success
    }
}

enum ShellCompletion {
    static func bash(_ syntaxes: [CommandSyntax]) -> String {
        let names = syntaxes.map(\.name).joined(separator: " ")
        var cases = ""
        for syntax in syntaxes {
            var values = ""
            for option in syntax.options where option.value != nil {
                let words = option.values.joined(separator: " ")
                // Where nothing is known of a value it may be a file.
                values += "            \(option.name)) words=\"\(words)\" known=yes ;;\n"
            }
            cases += """
                    \(syntax.name))
                        actions="\(syntax.actions.joined(separator: " "))"
                        options="\(syntax.options.map(\.name).joined(separator: " "))"
                        case "$before" in
                \(values)            esac ;;

                """
        }
        return """
            # Completion of martlet for bash. Made by: martlet completion bash
            _martlet() {
                local current="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD - 1]}"
                # "=" is a word of its own here: --kind=prune
                if [[ "$current" == "=" ]]; then
                    current=""
                elif [[ "$before" == "=" ]]; then
                    before="${COMP_WORDS[COMP_CWORD - 2]}"
                fi
                COMPREPLY=()
                if [[ "$COMP_CWORD" -eq 1 ]]; then
                    COMPREPLY=($(compgen -W "\(names) --help --version" -- "$current"))
                    return
                fi
                local words="" known="" actions="" options=""
                case "${COMP_WORDS[1]}" in
            \(cases)    esac
                if [[ -n "$known" ]]; then
                    [[ -n "$words" ]] || compopt -o default
                elif [[ "$current" == -* ]]; then
                    words="$options"
                elif [[ "$COMP_CWORD" -eq 2 && -n "$actions" ]]; then
                    words="$actions"
                else
                    compopt -o default
                fi
                COMPREPLY=($(compgen -W "$words" -- "$current"))
            }
            complete -F _martlet martlet

            """
    }

    static func zsh(_ syntaxes: [CommandSyntax]) -> String {
        func quoted(_ text: String) -> String { text.replacing("'", with: "'\\''") }
        func inBrackets(_ text: String) -> String {
            quoted(text).replacing("[", with: "\\[").replacing("]", with: "\\]").replacing(":", with: "\\:")
        }
        let commands = syntaxes.map { "        '\($0.name):\(quoted($0.summary))'" }.joined(separator: "\n")
        var cases = ""
        for syntax in syntaxes {
            let options = syntax.options.map { option in
                let value =
                    option.value.map { name in
                        ":\(name):" + (option.values.isEmpty ? "_files" : "(\(option.values.joined(separator: " ")))")
                    } ?? ""
                return "            '\(option.name)\(value.isEmpty ? "" : "=")[\(inBrackets(option.help))]\(value)'"
            }
            let first = syntax.actions.isEmpty ? "_files" : "(\(syntax.actions.joined(separator: " ")))"
            let operands = syntax.operandCount.upperBound == 0 ? [] : ["            '1: :\(first)' '*: :_files'"]
            let lines = (options + operands).joined(separator: " \\\n")
            cases += "        \(syntax.name)) _arguments \\\n\(lines) ;;\n"
        }
        return """
            #compdef martlet
            # Completion of martlet for zsh. Made by: martlet completion zsh
            _martlet() {
                local -a commands
                commands=(
            \(commands)
                )
                if (( CURRENT == 2 )); then
                    _describe command commands
                    return
                fi
                local command=$words[2]
                shift words
                (( CURRENT-- ))
                case $command in
            \(cases)    esac
            }
            _martlet "$@"

            """
    }

    static func fish(_ syntaxes: [CommandSyntax]) -> String {
        func quoted(_ text: String) -> String {
            "'" + text.replacing("\\", with: "\\\\").replacing("'", with: "\\'") + "'"
        }
        var lines = ["# Completion of martlet for fish. Made by: martlet completion fish"]
        for syntax in syntaxes {
            let here = "-n '__fish_seen_subcommand_from \(syntax.name)'"
            lines.append(
                "complete -c martlet -f -n __fish_use_subcommand -a \(syntax.name) -d \(quoted(syntax.summary))")
            if !syntax.actions.isEmpty {
                lines.append("complete -c martlet \(here) -f -a \(quoted(syntax.actions.joined(separator: " ")))")
            }
            for option in syntax.options {
                var line = "complete -c martlet \(here) -l \(option.name.dropFirst(2)) -d \(quoted(option.help))"
                if option.value != nil { line += " -r" }
                if !option.values.isEmpty { line += " -f -a \(quoted(option.values.joined(separator: " ")))" }
                lines.append(line)
            }
        }
        return lines.joined(separator: "\n") + "\n"
    }
}
