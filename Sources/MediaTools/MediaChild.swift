import Foundation

/// The process that opens strangers' files: `martlet-worker media-child [--svg] [--ocr=LANGUAGES] ROOT…`. It is born
/// with two pipes, locks itself in, and answers one request after the other until its input ends. What a file does, it
/// does to this process.
public enum MediaChild {
    /// The word that makes a martlet program a media child, before any other argument.
    public static let argument = "media-child"

    private enum ExitCode {
        static let done: Int32 = 0
        static let noSandbox: Int32 = 70
        static let badRequest: Int32 = 71
    }

    /// Runs until the input ends. To be called first in `main`, before there is a second thread.
    /// - Parameter words: What a pool has given to it: options, then the folders in which requests may read and write.
    public static func run(_ words: some Sequence<String>) -> Never {
        var roots: [String] = []
        guard let options = ChildOptions(words, roots: &roots) else { exit(ExitCode.badRequest) }
        // Libraries print to the standard output; the answers go where they cannot.
        let output = dup(STDOUT_FILENO)
        let nothing = open("/dev/null", O_WRONLY | O_CLOEXEC)
        guard output >= 0, nothing >= 0, dup2(nothing, STDOUT_FILENO) >= 0 else { exit(ExitCode.noSandbox) }
        do {
            _ = try Sandbox.enter(roots: roots)
            let processor = try MediaProcessor(options)
            try Sandbox.lock()
            let hello = Sandbox.probe(readsScans: processor.readsScans)
            guard hello.networkDenied, hello.processesDenied else { exit(ExitCode.noSandbox) }
            try send(hello, to: output)
            try serve(processor, output: output)
        } catch Frames.Failure.ended {
            exit(ExitCode.done)
        } catch is MediaToolsError {
            exit(ExitCode.noSandbox)
        } catch {
            exit(ExitCode.badRequest)
        }
    }

    private static func serve(_ processor: MediaProcessor, output: Int32) throws -> Never {
        while true {
            let body = try Frames.read(from: STDIN_FILENO)
            let request = try JSONDecoder().decode(MediaRequest.self, from: body)
            // An empty frame: from here on, what happens is this file's doing.
            try Frames.write(Data(), to: output)
            try send(processor.process(request), to: output)
        }
    }

    private static func send(_ message: some Encodable, to output: Int32) throws {
        try Frames.write(JSONEncoder().encode(message), to: output)
    }
}
