import Core
import EventLoop
import Foundation
import HTTPServer
import Testing

@testable import CoreHTTP

@Suite("What comes in")
struct InputTests {
    @Test("numbers that a Float cannot hold are refused")
    func floats() throws {
        let fields = Fields(["a": .double(1e300), "b": .string("1e300"), "c": .double(1.5), "d": .string("nan")])
        for name in ["a", "b", "d"] { #expect(throws: AppError.self) { try fields.float(name) } }
        #expect(try fields.float("c") == 1.5)
    }

    @Test("numbers in text are decimal: hexadecimal, infinite and endless ones are refused")
    func decimals() throws {
        let texts = [
            "0x1p3", "inf", "-Infinity", "NaN", "", ".", "1,5", " 1", "1_0", String(repeating: "1", count: 65),
        ]
        for text in texts {
            #expect(throws: AppError.self, "\(text)") { try Fields(["n": .string(text)]).float("n") }
            if !text.isEmpty, text != " 1" {
                #expect(throws: AppError.self, "\(text)") { try QueryItems("n=\(text)").float("n") }
            }
        }
        for (text, number) in [("1e3", 1000), ("-0.5", -0.5), ("+7", 7), ("8", 8)] as [(String, Float)] {
            #expect(try Fields(["n": .string(text)]).float("n") == number)
        }
    }

    @Test("fields are taken by type, and a wrong one is told with its path")
    func fields() throws {
        let fields = Fields([
            "s": .string("x"), "n": .int(4), "t": .string("5"), "o": .object(["k": .int(1)]),
            "l": .array([.string("a")]),
            "z": .null, "d": .string("2027-01-31"), "m": .array([.int(1)]),
        ])
        #expect(try fields.string("s") == "x" && fields.string("z") == nil && fields.string("absent") == nil)
        #expect(try fields.int("n") == 4 && fields.int("t") == 5)
        #expect(try fields.strings("l") == ["a"])
        #expect(try fields.date("d") != nil)
        for (name, wrong) in [
            ("s", { _ = try fields.int("s") }), ("n", { _ = try fields.string("n") }),
            ("o.k", { _ = try fields.object("o")?.string("k") }), ("m.0", { _ = try fields.strings("m") }),
            ("absent", { _ = try fields.required("absent") }),
        ] as [(String, () throws -> Void)] {
            let error = #expect(throws: AppError.self) { try wrong() }
            #expect(error?.code == .invalid && error?.issues.first?.path.joined(separator: ".") == name)
        }
    }

    @Test("a query is decoded as a form is; bad escapes, NUL and broken UTF-8 are refused")
    func query() throws {
        let items = try QueryItems("q=c%2B%2B+dev&q=last&empty=&flag&n=12&x%5By%5D=1")
        #expect(items.all("q") == ["c++ dev", "last"])
        #expect(items["q"] == "last" && items["empty"] == nil && items["flag"] == nil && items["x[y]"] == "1")
        #expect(try items.int("n") == 12)
        for bad in ["a=%", "a=%2", "a=%zz", "a=%00", "a=%ff"] {
            #expect(throws: AppError.self, "\(bad)") { try QueryItems(bad) }
        }
        #expect(throws: AppError.self) { try QueryItems(String(repeating: "a&", count: 201)) }
        #expect(throws: AppError.self) { try QueryItems("n=x").int("n") }
    }
}

@Suite("Errors out")
struct ErrorAnswerTests {
    @Test("every code has its status and the shape the clients know", arguments: AppError.Code.allCases)
    func shape(code: AppError.Code) throws {
        let error = AppError(
            code, "A sentence.", issues: [.init(path: ["a", "b"], message: "wrong")], retryAfterSeconds: 3)
        let response = ErrorAnswer.response(error)
        guard case .bytes(let bytes) = response.body else { throw CancellationError() }
        let object = try #require(try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any])
        let inner = try #require(object["error"] as? [String: Any])
        #expect(object["data"] is NSNull)
        #expect(inner["status"] as? Int == response.status && response.status >= 400)
        #expect(inner["message"] as? String == "A sentence.")
        let errors = (inner["details"] as? [String: Any])?["errors"] as? [[String: Any]]
        #expect(errors?.first?["path"] as? [String] == ["a", "b"])
        #expect(response.headers["Retry-After"] == "3")
    }
}

@Suite("Client addresses")
struct ClientAddressTests {
    @Test(
        "only trusted hops are passed over, from the right",
        arguments: [
            ("9.9.9.9", "1.1.1.1", "9.9.9.9"), ("127.0.0.1", "1.1.1.1", "1.1.1.1"),
            ("127.0.0.1", "6.6.6.6, 1.1.1.1", "1.1.1.1"), ("127.0.0.1", "1.1.1.1, 10.0.0.7", "1.1.1.1"),
            ("127.0.0.1", "junk, 10.0.0.7", "127.0.0.1"), ("::1", "2001:db8::1", "2001:db8::1"),
            ("127.0.0.1", "", "127.0.0.1"),
        ])
    func hops(peer: String, header: String, expected: String) async throws {
        let loop = EventLoop(name: "test")
        let networks = try #require(TrustedNetworks("127.0.0.0/8, ::1, 10.0.0.0/9"))
        let request = try HTTPRequest(
            .get, "/", headers: ["X-Forwarded-For": header], peer: SocketAddress(host: peer, port: 1), on: loop)
        #expect(request.clientAddress(trusting: networks) == expected)
        // An address of ours is nobody's.
        let counted = request.countedNetwork(trusting: networks)
        #expect(counted == (networks.contains(expected) ? nil : request.clientNetwork(trusting: networks)))
        await loop.stop()
    }

    @Test("for counting, the addresses of one IPv6 network are one client, and those of others are not")
    func network() async throws {
        let loop = EventLoop(name: "test")
        func client(_ peer: String) throws -> String {
            let request = try HTTPRequest(.get, "/", peer: SocketAddress(host: peer, port: 1), on: loop)
            return request.clientNetwork(trusting: .loopback)
        }
        #expect(try client("2001:db8:1:2::1") == client("2001:db8:1:2:ffff::9"))
        #expect(try client("2001:db8:1:2::1") != client("2001:db8:1:3::1"))
        // Bytes are told apart: 1 and 12 are not 11 and 2.
        #expect(try client("112:0:0:0::1") != client("1102:0:0:0::1"))
        #expect(try client("192.0.2.1") == "192.0.2.1" && client("192.0.2.2") != client("192.0.2.1"))
        await loop.stop()
    }

    @Test("what is no network is refused", arguments: ["x", "1.2.3/8", "1.2.3.4/33", "::1/129", "1.2.3.4/8/9"])
    func refused(text: String) {
        #expect(TrustedNetworks(text) == nil)
    }
}
