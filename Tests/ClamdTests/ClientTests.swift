import EventLoop
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Clamd

@Suite struct ClamdClientTests {
    private let pool = OffloadPool(name: "clamd-test", threads: 4, queueMax: 64)

    /// Its servers live as long as the test.
    private final class Kept: Sendable {
        let servers = Mutex<[FakeClamd]>([])
    }

    private let kept = Kept()

    private func client(_ clamd: FakeClamd, seconds: Int = 30) -> ClamdClient {
        kept.servers.withLock { $0.append(clamd) }
        return ClamdClient(.socket(path: clamd.path), offload: pool, scanSecondsMax: seconds)
    }

    /// A file that is gone when the test is.
    private final class File: Sendable {
        let path = NSTemporaryDirectory() + "scanned-" + String(UInt64.random(in: .min ... .max), radix: 16)
        init(_ bytes: [UInt8]) throws { try Data(bytes).write(to: URL(fileURLWithPath: path)) }
        deinit { unlink(path) }
    }

    @Test("a file goes out in pieces of a known size, with an empty one at its end", arguments: [0, 1, 65536, 65537])
    func pieces(count: Int) async throws {
        let clamd = try FakeClamd { descriptor in
            let bytes = FakeClamd.read(descriptor)
            FakeClamd.say("stream: OK\0", to: descriptor)
            return bytes
        }
        let content = [UInt8](repeating: 7, count: count)
        let file = try File(content)
        #expect(try await client(clamd).scan(file: file.path) == .clean)
        var wanted = ClamdExchange.instream
        for piece in stride(from: 0, to: count, by: 65536).map({ content[$0..<min(count, $0 + 65536)] }) {
            wanted += ClamdExchange.lengthPrefix(piece.count) + piece
        }
        try await eventually { clamd.received == [wanted + ClamdExchange.end] }
    }

    @Test("what is found has its name; an answer may come a byte at a time")
    func found() async throws {
        let clamd = try FakeClamd { descriptor in
            let bytes = FakeClamd.read(descriptor)
            for character in "stream: Eicar FOUND\0" { FakeClamd.say(String(character), to: descriptor) }
            return bytes
        }
        let one = try File([1])
        #expect(try await client(clamd).scan(file: one.path) == .infected("Eicar"))
    }

    @Test("a clamd that leaves in the middle of a file, or of its answer, has said nothing", arguments: [20, 100_000])
    func leaves(after count: Int) async throws {
        let clamd = try FakeClamd { FakeClamd.read($0, bytesMax: count) }
        let file = try File([UInt8](repeating: 1, count: 4 << 20))
        await #expect(throws: ClamdError.closed) { try await client(clamd).scan(file: file.path) }
        let half = try FakeClamd { descriptor in
            let bytes = FakeClamd.read(descriptor)
            FakeClamd.say("stream: O", to: descriptor)
            return bytes
        }
        await #expect(throws: ClamdError.garbage("\"stream: O\"")) {
            try await client(half).scan(file: file.path)
        }
    }

    @Test("a clamd that says in the middle of a file why it takes no more is understood; one that says OK is not")
    func early() async throws {
        let file = try File([UInt8](repeating: 1, count: 4 << 20))
        for (answer, error) in [
            ("INSTREAM size limit exceeded. ERROR\0", ClamdError.streamTooLong),
            ("stream: OK\0", .garbage("\"stream: OK\"")),
        ] {
            let clamd = try FakeClamd { descriptor in
                let bytes = FakeClamd.read(descriptor, bytesMax: 1000)
                FakeClamd.say(answer, to: descriptor)
                return bytes
            }
            await #expect(throws: error) { try await client(clamd).scan(file: file.path) }
        }
    }

    @Test("a clamd that hangs is given its time: before the file, in its middle, and after it", arguments: [0, 1, 2])
    func hangs(stage: Int) async throws {
        let released = DispatchSemaphore(value: 0)
        let clamd = try FakeClamd { descriptor in
            var bytes: [UInt8] = []
            if stage == 1 { bytes = FakeClamd.read(descriptor, bytesMax: 1000) }
            if stage == 2 { bytes = FakeClamd.read(descriptor) }
            released.wait()
            return bytes
        }
        defer { released.signal() }
        let file = try File([UInt8](repeating: 1, count: 4 << 20))
        await #expect(throws: ClamdError.timedOut) { try await client(clamd, seconds: 1).scan(file: file.path) }
    }

    @Test("an answer without an end is left at its limit")
    func endless() async throws {
        let clamd = try FakeClamd { descriptor in
            let bytes = FakeClamd.read(descriptor)
            FakeClamd.say(String(repeating: "stream: OK\0", count: 1000), to: descriptor)
            return bytes
        }
        let one = try File([1])
        let error = await #expect(throws: ClamdError.self) { try await client(clamd).scan(file: one.path) }
        guard case .garbage = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test("nobody there, and a file that is not there, are different things")
    func away() async throws {
        let nobody = ClamdClient(.socket(path: NSTemporaryDirectory() + "nobody"), offload: pool)
        for client in [nobody, ClamdClient(.tcp(host: "127.0.0.1", port: 9), offload: pool)] {
            let error = await #expect(throws: ClamdError.self) { try await client.probe() }
            guard case .unreachable = error else {
                Issue.record("\(String(describing: error))")
                continue
            }
        }
        let clamd = try FakeClamd { FakeClamd.read($0) }
        let error = await #expect(throws: ClamdError.self) { try await client(clamd).scan(file: "/nowhere/at/all") }
        guard case .unreadable = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        await #expect(throws: ClamdError.unreadable("it is no file")) { try await client(clamd).scan(file: "/") }
    }

    @Test("a ping and the version, from one that is clamd and one that is not")
    func version() async throws {
        let clamd = try FakeClamd { descriptor in
            let bytes = FakeClamd.read(descriptor)
            FakeClamd.say(bytes == ClamdExchange.ping ? "PONG\0" : "ClamAV 1.4.6\0", to: descriptor)
            return bytes
        }
        #expect(try await client(clamd).version() == "ClamAV 1.4.6")
        let other = try FakeClamd { descriptor in
            let bytes = FakeClamd.read(descriptor)
            FakeClamd.say("+OK\r\n", to: descriptor)
            return bytes
        }
        await #expect(throws: ClamdError.garbage("\"+OK??\"")) { try await client(other).version() }
    }
}
