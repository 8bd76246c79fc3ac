import Testing

@testable import Clamd

@Suite struct ClamdAddressTests {
    @Test("a socket's path, and a host with or without a port")
    func taken() throws {
        #expect(try ClamdAddress("/run/clamav/clamd.ctl") == .socket(path: "/run/clamav/clamd.ctl"))
        #expect(try ClamdAddress("tcp://clamd:3311") == .tcp(host: "clamd", port: 3311))
        #expect(try ClamdAddress("tcp://127.0.0.1") == .tcp(host: "127.0.0.1", port: 3310))
        #expect(try ClamdAddress("tcp://[::1]:3310") == .tcp(host: "::1", port: 3310))
        let longest = "/" + String(repeating: "s", count: ClamdAddress.pathBytesMax - 1)
        #expect(try ClamdAddress(longest) == .socket(path: longest))
        #expect("\(try ClamdAddress("tcp://[::1]:3310"))" == "tcp://[::1]:3310")
    }

    @Test(
        "everything else is a mistake",
        arguments: [
            "", "clamd", "clamd:3310", "run/clamd.ctl", "/", "/run/", "tcp://", "tcp://:3310", "tcp://a:0",
            "tcp://a:65536", "tcp://a:3310/x", "tcp://u@a", "tcp://a?x", "http://a", "unix:///run/clamd.ctl",
            "/" + String(repeating: "s", count: 107),
        ])
    func refused(text: String) {
        #expect(throws: ClamdAddress.Mistake()) { try ClamdAddress(text) }
    }
}
