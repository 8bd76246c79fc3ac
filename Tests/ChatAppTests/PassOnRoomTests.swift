import HTTPServer
import Testing

@testable import ChatApp

@Suite("Room for what is passed on")
struct PassOnRoomTests {
    @Test("bodies have so much room together; for more there is none, and the room comes back")
    func bodies() async throws {
        try await withPair(limits: { $0.bodiesBytesMax = 12 }, handler: { _ in HTTPResponse(status: 200) }) { pair in
            // One connection, so one loop.
            let client = try await RawClient(port: pair.port, on: pair.loops.loops[0])
            for _ in 1...3 { #expect(try await client.ask("POST", "/?to=owner", body: "0123456789ab").status == 200) }
            #expect(try await client.ask("POST", "/?to=owner", body: "0123456789abc").status == 503)
            let next = try await RawClient(port: pair.port, on: pair.loops.loops[0])
            #expect(try await next.ask("GET", "/?to=owner").status == 200)
        }
    }
}
