import Foundation
import Testing

@testable import ServiceKit

@Suite("Logs")
struct LogTests {
    @Test("what an error quotes is logged without the mail addresses in it")
    func addresses() {
        for (text, logged) in [
            ("550 5.1.1 <ada@example.org>: no such user", "550 5.1.1 <•••>: no such user"),
            ("Key (email)=(Ada.L+x@example.org) already exists.", "Key (email)=(•••) already exists."),
            ("ada@example.org", "•••"), ("a@b, c@d", "•••, •••"), ("é@ü.de", "•••"),
            ("nobody @ home", "nobody @ home"), ("@", "@"), ("", ""), ("no address", "no address"),
        ] { #expect(Log.withoutAddresses(text) == logged) }
    }

    @Test("whoever waits for the last lines has them, however often the log was idle before")
    func lastLines() throws {
        let pipe = Pipe()
        let sink = LogSink(descriptor: pipe.fileHandleForWriting.fileDescriptor)
        let log = Log(service: "test", sink: sink)
        for round in 0..<200 {
            log.info("first")
            #expect(!pipe.fileHandleForReading.availableData.isEmpty)
            log.info("last")
            sink.flush()
            var look = pollfd(fd: pipe.fileHandleForReading.fileDescriptor, events: Int16(POLLIN), revents: 0)
            try #require(poll(&look, 1, 0) == 1, "round \(round)")
            #expect(!pipe.fileHandleForReading.availableData.isEmpty)
        }
    }
}
