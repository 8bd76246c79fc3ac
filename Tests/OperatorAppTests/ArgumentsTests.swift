import Testing

@testable import OperatorApp

@Suite("Command lines")
struct ArgumentsTests {
    static let syntax = CommandSyntax(
        "test", "Tests.", operands: "A [B]", count: 1...2,
        options: [
            .init("--name", "N", "a name"), .init("--count", "N", "a number"), .init("--dry-run", nil, "nothing"),
        ])

    @Test("options stand anywhere, with = or a blank; after -- all are operands")
    func accepted() throws {
        let one = try Arguments(["--name=x=y", "a", "--dry-run", "--count", "12", "b"], Self.syntax)
        #expect(one.operands == ["a", "b"] && one.value("--name") == "x=y" && one.has("--dry-run"))
        #expect(try one.integer("--count", in: 1...12) == 12)
        let two = try Arguments(["--", "--name", "-"], Self.syntax)
        #expect(two.operands == ["--name", "-"] && two.value("--name") == nil)
        #expect(try Arguments(["-h"], Self.syntax).has("--help"))
        #expect(try Arguments(["--name", "-x", "a"], Self.syntax).value("--name") == "-x")
    }

    @Test(
        "what is not understood is refused",
        arguments: [
            [], ["a", "b", "c"], ["a", "--unknown"], ["a", "--name"], ["a", "--dry-run=1"],
            ["a", "--name", "1", "--name=2"],
            ["a", "-x"],
        ])
    func refused(words: [String]) {
        #expect(throws: UsageError.self) { try Arguments(words, Self.syntax) }
    }

    @Test(
        "a number out of its range, or none, is refused",
        arguments: ["0", "13", "1.5", "x", "", "99999999999999999999"])
    func numbers(text: String) throws {
        let arguments = try Arguments(["a", "--count", text], Self.syntax)
        #expect(throws: UsageError.self) { try arguments.integer("--count", in: 1...12) }
    }

    @Test("help is for every command and ends well; no command, an unknown one and bad options are wrong usage")
    func help() async {
        #expect(await martlet(["--help"]).status == 0)
        #expect(await martlet([]).status == 64)
        for command in Operator.commands {
            let name = command.syntax.name
            let help = await martlet([name, "--help"])
            #expect(help.status == 0 && help.said.output.contains("Usage: martlet \(name)"))
            for option in command.syntax.options { #expect(help.said.output.contains(option.name)) }
            let wrong = await martlet([name, "--no-such-option"])
            #expect(wrong.status == 64 && wrong.said.output == "" && wrong.said.complaints.contains("--no-such-option"))
        }
        let version = await martlet(["--version"])
        #expect(version.status == 0 && version.said.output.wholeMatch(of: /martlet \d+\.\d+\.\d+(-dev)?\n/) != nil)
        #expect(await martlet(["--versions"]).status == 64)
        let unknown = await martlet(["nonsense"])
        #expect(unknown.status == 64 && unknown.said.complaints.contains("nonsense"))
    }

    @Test("without the database's address, or with one that is none, the configuration is what is wrong")
    func configuration() async throws {
        for words in [["migrate", "--migrations", "."], ["queue"], ["user", "show", "x"]] {
            let unset = await martlet(words)
            #expect(unset.status == 78 && unset.said.complaints.contains("MARTLET_DATABASE_URL"))
            #expect(await martlet(words, environment: ["MARTLET_DATABASE_URL": "nonsense"]).status == 78)
        }
    }
}
