import EventLoop
import Seeded
import Testing

@testable import HTTPServer

@Suite("A connection, fed by chance")
struct ConnectionFuzzTests {
    @Test("ends in order whatever is sent, and answers nothing that is not an answer", arguments: [1, 2, 3, 4])
    func mutations(seed: UInt64) async throws {
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
            var random = SeededGenerator(seed: seed)
            for round in 0..<150 {
                var bytes = Array(HTTPParserPropertyTests.streams[round % 5].utf8)
                for _ in 0..<Int.random(in: 0...3, using: &random) {
                    let index = Int.random(in: 0..<bytes.count, using: &random)
                    switch Int.random(in: 0..<3, using: &random) {
                    case 0: bytes[index] = UInt8.random(in: 0...127, using: &random)
                    case 1: bytes.remove(at: index)
                    default: bytes.insert(contentsOf: bytes[index...].prefix(30), at: index)
                    }
                }
                let client = try await server.connect()
                var rest = bytes[...]
                while !rest.isEmpty {
                    let piece = rest.prefix(Int.random(in: 1...60, using: &random))
                    rest = rest.dropFirst(piece.count)
                    await client.send(Array(piece))
                }
                await client.finishSending()
                var answers = try await client.rest()
                while !answers.isEmpty {
                    let parsed = try TestResponse.parse(answers, ended: true, toHead: false)
                    guard let parsed else {
                        Issue.record("\(String(decoding: answers, as: UTF8.self).debugDescription)")
                        break
                    }
                    answers.removeFirst(parsed.1)
                }
            }
        }
    }
}
