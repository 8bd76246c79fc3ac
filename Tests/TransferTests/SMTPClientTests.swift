import EventLoop
import Foundation
import TestSupport
import Testing

@testable import Transfer

let pool = OffloadPool(name: "transfer", threads: 4, queueMax: 64)

/// On a busy machine a mail may take its time, and so may the next one.
func client(_ sink: SMTPSink, secondsMax: Int = 90) throws -> SMTPClient {
    let configuration = try #require(SMTPClient.Configuration(url: "smtp://127.0.0.1:\(sink.port)"))
    return SMTPClient(configuration, offload: pool, sendSecondsMax: secondsMax, idleSecondsMax: 3_600)
}

@Suite struct SMTPClientTests {
    let message = Array("Subject: hello\r\n\r\n.dot\r\n..\r\nend\r\n".utf8)

    @Test("a mail arrives with its envelope and every byte, dots too")
    func send() async throws {
        let sink = SMTPSink()
        try await client(sink).send(from: "a@example.org", to: "b@example.org", message: message)
        let mail = try #require(sink.mails.first)
        #expect(mail.from == "a@example.org")
        #expect(mail.to == ["b@example.org"])
        #expect(mail.data == "Subject: hello\r\n\r\n.dot\r\n..\r\nend\r\n")
    }

    @Test("mails one after another use one connection")
    func reuse() async throws {
        let sink = SMTPSink()
        let client = try client(sink)
        for _ in 0..<5 { try await client.send(from: "a@example.org", to: "b@example.org", message: message) }
        #expect(sink.mails.count == 5)
        #expect(sink.connections == 1)
    }

    @Test("many mails at once all arrive")
    func concurrent() async throws {
        let sink = SMTPSink()
        let client = try client(sink)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for index in 0..<40 {
                group.addTask {
                    try await client.send(from: "a@example.org", to: "b\(index)@example.org", message: message)
                }
            }
            try await group.waitForAll()
        }
        #expect(Set(sink.mails.flatMap(\.to)).count == 40)
    }

    @Test("a 5xx to the recipient is the recipient's, a 4xx is for later, a 5xx to the data is the mail's")
    func replies() async throws {
        var script = SMTPSink.Script()
        script.recipient = { $0.hasPrefix("gone") ? "550 no such user" : $0.hasPrefix("full") ? "452 full" : "250 ok" }
        script.data = { _ in "554 looks like spam" }
        let sink = SMTPSink(script)
        let client = try client(sink)
        #expect(await failure(client, to: "gone@example.org") == .recipientRefused(code: 550, "RCPT failed: 550"))
        #expect(await failure(client, to: "full@example.org") == .recipientDeferred(code: 452, "RCPT failed: 452"))
        guard case .refused(code: 554, _) = await failure(client, to: "b@example.org") else {
            Issue.record("554 after the data must be final")
            return
        }
    }

    @Test("a sender that is refused is not held against the recipient")
    func senderRefused() async throws {
        var script = SMTPSink.Script()
        script.from = { _ in "550 not you" }
        let sink = SMTPSink(script)
        guard case .refused(code: 550, _) = await failure(try client(sink), to: "b@example.org") else {
            Issue.record("550 to MAIL must be final and not the recipient's")
            return
        }
    }

    @Test("no server, a hang-up before or after the data, and a 421 are all for later")
    func temporary() async throws {
        let gone = SMTPSink()
        let toNobody = try client(gone)
        gone.stop()
        var silent = SMTPSink.Script()
        silent.greeting = nil
        var busy = SMTPSink.Script()
        busy.greeting = "421 busy"
        var dropping = SMTPSink.Script()
        dropping.data = { _ in nil }
        var clients = [toNobody]
        let sinks = [SMTPSink(silent), SMTPSink(busy), SMTPSink(dropping)]
        for sink in sinks { clients.append(try client(sink)) }
        for client in clients {
            guard case .temporary = await failure(client, to: "b@example.org") else {
                Issue.record("must be temporary")
                continue
            }
        }
    }

    @Test("a server that says nothing is given up after the time")
    func timeout() async throws {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                _ = bind(descriptor, pointer, length)
                _ = listen(descriptor, 1)
                _ = getsockname(descriptor, pointer, &length)
            }
        }
        let port = UInt16(bigEndian: address.sin_port)
        let configuration = try #require(SMTPClient.Configuration(url: "smtp://127.0.0.1:\(port)"))
        let client = SMTPClient(configuration, offload: pool, sendSecondsMax: 1)
        guard case .temporary = await failure(client, to: "b@example.org") else {
            Issue.record("must be temporary")
            return
        }
    }

    @Test("a name and a password are given, and a wrong one is a matter of later")
    func credentials() async throws {
        var script = SMTPSink.Script()
        script.credentials = ("martlet", "se:cret")
        let sink = SMTPSink(script)
        let right = try #require(SMTPClient.Configuration(url: "smtp://martlet:se%3Acret@127.0.0.1:\(sink.port)"))
        try await SMTPClient(right, offload: pool).send(from: "a@example.org", to: "b@example.org", message: message)
        #expect(sink.mails.count == 1)
        let wrong = try #require(SMTPClient.Configuration(url: "smtp://martlet:guess@127.0.0.1:\(sink.port)"))
        guard case .temporary = await failure(SMTPClient(wrong, offload: pool), to: "b@example.org") else {
            Issue.record("must be temporary")
            return
        }
        #expect(sink.mails.count == 1)
    }

    @Test("where STARTTLS is required and not offered, nothing is sent")
    func startTLS() async throws {
        let sink = SMTPSink()
        let url = "smtp://127.0.0.1:\(sink.port)?starttls=required"
        let configuration = try #require(SMTPClient.Configuration(url: url))
        #expect(await failure(SMTPClient(configuration, offload: pool), to: "b@example.org") != nil)
        #expect(sink.mails.isEmpty)
    }

    @Test(
        "addresses and messages that could break a line are refused before a connection",
        arguments: [
            "b@example.org\r\nRCPT TO:<c@example.org>", "b@example.org>", "<b@example.org", "b c@example.org", "b",
            "@b",
            "b@",
            "b@c@d", "bé@example.org", "",
        ])
    func badAddresses(address: String) async throws {
        let sink = SMTPSink()
        let client = try client(sink)
        #expect(await failure(client, to: address) == .malformed("not an address"))
        await #expect(throws: SMTPError.malformed("not an address")) {
            try await client.send(from: address, to: "b@example.org", message: message)
        }
        #expect(sink.connections == 0)
    }

    @Test(
        "messages with bare line ends, NUL or endless lines are refused",
        arguments: [
            "a\nb\r\n", "a\rb\r\n", "a\u{0}\r\n", "no end", String(repeating: "x", count: 999) + "\r\n",
        ])
    func badMessages(text: String) async throws {
        let sink = SMTPSink()
        await #expect(throws: SMTPError.malformed("lines must end in CRLF and be short")) {
            try await client(sink).send(from: "a@example.org", to: "b@example.org", message: Array(text.utf8))
        }
    }

    @Test(
        "URLs that are no mail server's are refused",
        arguments: [
            "", "http://a", "smtp:", "smtp://", "smtp://a/path", "smtp://a?x=y", "smtps://a?starttls=required",
            "smtp://a b",
        ])
    func badURLs(url: String) {
        #expect(SMTPClient.Configuration(url: url) == nil)
    }

    private func failure(_ client: SMTPClient, to: String) async -> SMTPError? {
        do {
            try await client.send(from: "a@example.org", to: to, message: message)
            return nil
        } catch { return error as? SMTPError }
    }
}
