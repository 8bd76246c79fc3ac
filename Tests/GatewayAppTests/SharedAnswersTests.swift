import Core
import HTTPServer
import Synchronization
import TestSupport
import Testing

@testable import GatewayApp

@Suite("Answers that are shared")
struct SharedAnswersTests {
    /// Makes answers that are numbered by their beginning and wait to be let out.
    private final class Maker: Sendable {
        let begun = Signal<Int>()
        private let count = Mutex(0)
        private let gates = Mutex<[Int: CheckedContinuation<HTTPResponse, any Error>]>([:])

        func make() async throws -> HTTPResponse {
            let number = count.withLock { count in
                count += 1
                return count
            }
            return try await withCheckedThrowingContinuation { gate in
                gates.withLock { $0[number] = gate }
                begun.send(number)
            }
        }

        func letOut(_ number: Int, _ error: (any Error)? = nil) {
            let gate = gates.withLock { $0.removeValue(forKey: number) }
            if let error {
                gate?.resume(throwing: error)
            } else {
                gate?.resume(returning: HTTPResponse(status: number))
            }
        }
    }

    private let shared = SharedAnswers()
    private let maker = Maker()

    private func ask(_ key: String = "list") -> Task<Int, any Error> {
        Task { try await shared.answer(key) { try await maker.make() }.status }
    }

    private func waiting(_ count: Int) async throws {
        try await eventually { shared.waitingCount("list") == count }
    }

    @Test("who asks while an answer is made gets the next one, which is made once for all of them")
    func nextOne() async throws {
        let first = ask()
        _ = try await maker.begun.wait(count: 1)
        let crowd = (0..<20).map { _ in ask() }
        try await waiting(20)
        maker.letOut(1)
        #expect(try await first.value == 1)
        _ = try await maker.begun.wait(count: 2)
        // Another that comes now waits for a third.
        let late = ask()
        try await waiting(1)
        maker.letOut(2)
        for each in crowd { #expect(try await each.value == 2) }
        _ = try await maker.begun.wait(count: 3)
        maker.letOut(3)
        #expect(try await late.value == 3)
        // Nobody is left: the next is a first one again.
        let again = ask()
        _ = try await maker.begun.wait(count: 4)
        maker.letOut(4)
        #expect(try await again.value == 4)
    }

    @Test("another question does not wait")
    func keys() async throws {
        let (one, other) = (ask("one"), ask("other"))
        _ = try await maker.begun.wait(count: 2)
        maker.letOut(1)
        maker.letOut(2)
        #expect(Set([try await one.value, try await other.value]) == [1, 2])
    }

    @Test("an error is told to all who waited; of one whose client has left the others hear nothing")
    func errors() async throws {
        let first = ask()
        _ = try await maker.begun.wait(count: 1)
        let crowd = (0..<3).map { _ in ask() }
        try await waiting(3)
        maker.letOut(1, CancellationError())
        _ = await first.result
        _ = try await maker.begun.wait(count: 2)
        maker.letOut(2, CancellationError())
        _ = try await maker.begun.wait(count: 3)
        maker.letOut(3, AppError.unavailable)
        var ends: [String] = []
        for each in crowd {
            switch await each.result {
            case .success: ends.append("answer")
            case .failure(let error): ends.append(error is CancellationError ? "left" : "told")
            }
        }
        #expect(ends.sorted() == ["left", "told", "told"])
    }
}
