import Foundation

/// What the command line of a service asks for: little, as settings are environment variables.
enum ServiceArguments: Equatable {
    case run, health, help, version
    /// The first word that is not understood.
    case unknown(String)

    /// EX_USAGE of sysexits.h.
    static let usageStatus: Int32 = 64

    /// - Parameter words: without the program's name. One at most has a meaning.
    init(_ words: some Collection<String>) {
        let known: [String: ServiceArguments] = [
            HealthCommand.argument: .health, "--help": .help, "-h": .help, "--version": .version,
        ]
        guard let first = words.first else {
            self = .run
            return
        }
        let strange = known[first] == nil ? first : words.dropFirst().first
        self = strange.map { .unknown($0) } ?? known[first] ?? .run
    }

    /// Does what was asked for other than to run.
    /// - Returns: the exit status; nil: the service is to run.
    func answer(_ name: String, _ summary: String, _ environment: inout Environment) -> Int32? {
        switch self {
        case .run: return nil
        case .health: return HealthCommand.run(name, &environment)
        case .help: FileHandle.standardOutput.write(Data(Self.help(name, summary).utf8))
        case .version: FileHandle.standardOutput.write(Data("\(Release.line(of: name))\n".utf8))
        case .unknown(let word):
            // Quoted, so that no word can move the cursor.
            let complaint = "\(name): it takes no \(String(reflecting: word)); \(name) --help says what it takes\n"
            FileHandle.standardError.write(Data(complaint.utf8))
            return Self.usageStatus
        }
        return 0
    }

    static func help(_ name: String, _ summary: String) -> String {
        """
        Usage: \(name) [health | --version | --help]

        \(summary)

        Without an argument it serves until SIGTERM or SIGINT. It is configured by environment variables only: the
        README of Martlet lists them under "Configuration", and martlet check says whether they are right.

          health     asks the \(name) that runs with the same settings whether it is ready
          --version  prints its version
          --help     prints this

        Exit status: 0 done, or stopped in order; 1 it could not start, or is not ready; 64 the command line is
        wrong; 78 the configuration is wrong, and all mistakes have been told.

        """
    }
}
