import EventLoop
import ServiceKit
import Testing

@testable import ChatApp

@Suite("The internal port's settings")
struct InternalPortTests {
    private func read(
        _ values: [String: String], hosts: [String: [String]] = [:]
    ) throws -> InternalPort? {
        var environment = Environment(values)
        let port = InternalPort.read(&environment, resolve: { hosts[$0] ?? [] }, ownName: "own")
        try environment.check()
        return port
    }

    @Test("without an address there is no port")
    func off() throws {
        #expect(try read([:]) == nil)
        #expect(try read(["MARTLET_INTERNAL_ADVERTISED": "10.0.0.2:1"]) == nil)
    }

    @Test("one address is also where others find it; of all addresses it is that of the machine's own name")
    func derived() throws {
        let loopback = SocketAddress(host: "127.0.0.1", port: 9182)
        #expect(
            try read(["MARTLET_INTERNAL_ADDRESS": "127.0.0.1:9182"])
                == InternalPort(address: loopback, advertised: loopback))
        let every = ["MARTLET_INTERNAL_ADDRESS": "0.0.0.0:9182"]
        #expect(
            try read(every, hosts: ["own": ["::1", "127.0.1.1", "fe80::2", "172.18.0.5"]])?.advertised
                == SocketAddress(host: "172.18.0.5", port: 9182))
        #expect(throws: ConfigurationError.self) { try read(every) }
        #expect(throws: ConfigurationError.self) { try read(every, hosts: ["own": ["127.0.1.1"]]) }
    }

    @Test("what is advertised may be a name, which is looked up once, and must lead somewhere")
    func advertised() throws {
        func advertised(_ text: String) throws -> String? {
            let values = ["MARTLET_INTERNAL_ADDRESS": "0.0.0.0:9182", "MARTLET_INTERNAL_ADVERTISED": text]
            return try read(values, hosts: ["chat-1.local": ["10.0.0.7"], "six": ["fd00::7"]])?.advertised.description
        }
        #expect(try advertised("10.0.0.2:80") == "10.0.0.2:80")
        #expect(try advertised("chat-1.local:9182") == "10.0.0.7:9182")
        #expect(try advertised("six:9182") == "[fd00::7]:9182")
        for wrong in ["nobody:9182", "chat-1.local", "chat-1.local:x", ":9182", "0.0.0.0:1", "10.0.0.2:0", "10.0.0.2"] {
            #expect(throws: ConfigurationError.self) { try advertised(wrong) }
        }
    }
}
