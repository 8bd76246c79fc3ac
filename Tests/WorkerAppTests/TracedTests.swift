import Clamd
import Testing
import Tracing
import Transfer

@testable import WorkerApp

@Suite("Traced mails and scans")
struct TracedTests {
    private let tracer = Tracer(sampler: Sampler(.parentOrAlways, share: 1), queueMax: 100, batchMax: 100)

    @Test("a mail is a span of the work that sends it, with what the server said in a number and a word")
    func mail() async throws {
        let server = try #require(SMTPClient.Configuration(url: "smtps://ann:hush@mail.example.org"))
        let work = tracer.begin("process send_mail", .consumer, parent: nil)
        let errors: [SMTPError?] = [
            nil, .recipientRefused(code: 550, "no such bob@example.org"), .temporary(code: 0, "no way to hush"),
        ]
        for error in errors {
            let send = Traced.mail(tracer, server) { _, _, _ in if let error { throw error } }
            await TraceContext.$current.withValue(work.context) {
                let thrown = await #expect(throws: (any Error).self) {
                    try await send("ann@example.org", "bob@example.org", Array("hush".utf8))
                    throw CancellationError()
                }
                #expect(thrown as? SMTPError == error)
            }
            // Outside of any work, as a probe is.
            _ = try? await send("ann@example.org", "bob@example.org", [])
        }
        let spans = tracer.takeBatch()
        #expect(spans.count == 3)
        #expect(spans.allSatisfy { $0.name == "SMTP send" && $0.kind == .client && $0.parent == work.context.span })
        let always = [
            SpanAttribute("network.protocol.name", "smtp"), SpanAttribute("server.address", "mail.example.org"),
            SpanAttribute("server.port", 465),
        ]
        let code = SpanAttribute("martlet.smtp.response.status_code", 550)
        #expect(
            spans.map(\.attributes) == [
                always, always + [code, SpanAttribute("error.type", "recipient_refused")],
                always + [SpanAttribute("error.type", "temporary")],
            ])
        #expect(!"\(spans)".contains("@") && !"\(spans)".contains("hush"))
    }

    @Test("a scan is a span of the work that needs it, with its verdict, or why there is none, in a word")
    func scan() async throws {
        let answers: [Result<ClamdVerdict, ClamdError>] = [
            .success(.clean), .success(.infected("Hush-1")), .failure(.failed("hush")),
        ]
        let work = tracer.begin("process process_upload", .consumer, parent: nil)
        for answer in answers {
            let scan = Traced.scan(tracer, .socket(path: "/run/clamd.ctl")) { _ in try answer.get() }
            await TraceContext.$current.withValue(work.context) {
                switch answer {
                case .success(let verdict): #expect(await (try? scan("/tmp/hush")) == verdict)
                case .failure(let error): await #expect(throws: error) { try await scan("/tmp/hush") }
                }
            }
            _ = try? await scan("/tmp/hush")
        }
        let spans = tracer.takeBatch()
        #expect(spans.map(\.name) == ["clamd scan", "clamd scan", "clamd scan"])
        #expect(spans.allSatisfy { $0.kind == .client && $0.parent == work.context.span })
        #expect(spans.allSatisfy { $0.attributes.contains(SpanAttribute("server.address", "/run/clamd.ctl")) })
        let ends = [
            SpanAttribute("martlet.scan.verdict", "clean"), SpanAttribute("martlet.scan.verdict", "infected"),
            SpanAttribute("error.type", "failed"),
        ]
        #expect(spans.compactMap(\.attributes.last) == ends)
        #expect(!"\(spans)".lowercased().contains("hush"))
    }
}
