import EventLoop
import Seeded
import Testing

@testable import HTTPServer

@Suite("A connection, fed by chance")
struct ConnectionFuzz {
    @Test("ends in order whatever is sent, and answers nothing that is not an answer")
    func connections() async throws {
        var limits = HTTPLimits()
        limits.discardedBytesMax = 50
        limits.unreadBytesMax = 8
        limits.pipelinedBytesMax = 16
        limits.unsentBytesMax = 64
        limits.requestsPerConnectionMax = 5
        try await withServer(
            limits: limits,
            handler: { request in
                switch request.path.utf8.count % 5 {
                case 0: return try await echo(request)
                case 1: return HTTPResponse(status: 200)
                case 2:
                    await Task.yield()
                    return try await echo(request)
                case 3:
                    return HTTPResponse(
                        status: 200,
                        body: .stream { writer in
                            for _ in 0..<5 {
                                try await writer.write([UInt8](repeating: 65, count: 30))
                                await Task.yield()
                            }
                        })
                default: throw HTTPError(418, "No.")
                }
            }
        ) { server in
            try await Fuzz("connections", rounds: 600).runAsync { fuzz in
                let sent = Array(fuzz.pick(HTTPParserPropertyTests.streams).utf8)
                fuzz.input = fuzz.once(in: 4) ? sent : fuzz.mutated(sent, timesMax: 3)
                let client = try await server.connect()
                for piece in fuzz.split(fuzz.input, sizeMax: 60) { await client.send(piece) }
                await client.finishSending()
                var answers = try await client.rest()
                while !answers.isEmpty {
                    let parsed = try TestResponse.parse(answers, ended: true, toHead: false)
                    let shown = String(decoding: answers.prefix(500), as: UTF8.self).debugDescription
                    try fuzz.check(parsed != nil, "no answer: \(shown)")
                    guard let parsed else { return }
                    answers.removeFirst(parsed.1)
                }
            }
        }
    }
}
