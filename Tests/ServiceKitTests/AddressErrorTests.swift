import EventLoop
import Foundation
import HTTPServer
import Testing

@testable import ServiceKit

@Suite("Addresses that cannot be listened on")
struct AddressErrorTests {
    private func server(_ loops: LoopGroup, _ address: SocketAddress) -> HTTPServer {
        AdminServer(health: Health(), metrics: Metrics()).server(loops: loops, address: address)
    }

    @Test("what is wrong is said with the address and its setting; a free port is taken without a word")
    func words() async throws {
        let loops = LoopGroup(count: 2, name: "words")
        let first = server(loops, SocketAddress(host: "127.0.0.1", port: 0))
        let address = try await first.start(setting: "A")
        #expect(address.port > 0)
        let taken = await #expect(throws: AddressError.self) {
            try await server(loops, address).start(setting: "B")
        }
        #expect(
            taken?.description == "\(address) is taken: something listens there already. "
                + "End that, or set B to another port.")
        // RFC 5737: no machine's.
        let strange = SocketAddress(host: "192.0.2.1", port: 0)
        let elsewhere = await #expect(throws: AddressError.self) {
            try await server(loops, strange).start(setting: "C")
        }
        #expect(elsewhere?.description == "192.0.2.1:0 is not an address of this machine. Set C to one that is.")
        let low = SocketAddress(host: "127.0.0.1", port: 80)
        let refused = AddressError(code: -EACCES, address: low, setting: "D")
        #expect(refused?.description == "this user may not listen on 127.0.0.1:80. Set D to a port above 1023.")
        #expect(AddressError(code: -EMFILE, address: low, setting: "E") == nil)
        await first.drain(graceSeconds: 1)
        await loops.stop()
    }
}
