import EventLoop
import Testing

@testable import HTTPServer

@Suite("A connection")
struct ConnectionTests {
    @Test("is kept alive, and each request is answered with its own answer")
    func keepAlive() async throws {
        try await withServer(handler: echo) { server in
            let client = try await server.connect()
            for number in 0..<3 {
                let answer = try await client.ask("GET /a%20b/\(number)?x=1 HTTP/1.1\r\nHost: x\r\n\r\n")
                #expect(answer.status == 200)
                #expect(answer.text == "GET /a b/\(number)?x=1 ")
                #expect(answer.headers["connection"] == nil)
                #expect(answer.headers["date"]?.hasSuffix("GMT") == true)
                #expect(answer.headers["content-type"] == "text/plain")
            }
        }
    }

    @Test("ends after an answer when the client asks for it, or speaks HTTP/1.0")
    func close() async throws {
        try await withServer(handler: echo) { server in
            for head in ["GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "GET / HTTP/1.0\r\n\r\n"] {
                let client = try await server.connect()
                let answer = try await client.ask(head)
                #expect(answer.headers["connection"] == "close")
                #expect(try await client.rest() == [])
            }
            let client = try await server.connect()
            let answer = try await client.ask("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            #expect(answer.headers["connection"] == "keep-alive")
            #expect(try await client.ask("GET / HTTP/1.0\r\n\r\n").status == 200)
        }
    }

    @Test("answers pipelined requests in order, and the requests before an error too")
    func pipelining() async throws {
        try await withServer(handler: echo) { server in
            let client = try await server.connect()
            let ask = (0..<50).map { number in
                number % 2 == 0
                    ? "GET /\(number) HTTP/1.1\r\nHost: x\r\n\r\n"
                    : "POST /\(number) HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody"
            }
            await client.send(ask.joined() + "GET / HTTP/1.1\r\n\r\n")
            for number in 0..<50 {
                let answer = try await client.response()
                #expect(answer.text == (number % 2 == 0 ? "GET /\(number)? " : "POST /\(number)? body"))
            }
            let refused = try await client.response()
            #expect(refused.status == 400)
            #expect(refused.text == "The Host header is missing.\n")
            #expect(try await client.rest() == [])
        }
    }

    @Test("answers HEAD with the headers of GET and no body")
    func head() async throws {
        try await withServer(handler: echo) { server in
            let client = try await server.connect()
            let answer = try await client.ask("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n", toHead: true)
            #expect(answer.headers["content-length"] == "\("HEAD /? ".count)")
            #expect(try await client.ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n").text == "GET /? ")
        }
    }
}
