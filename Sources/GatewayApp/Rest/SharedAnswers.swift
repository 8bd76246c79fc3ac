import HTTPServer
import Synchronization

/// Answers that are the same for everyone, made once for all who ask at the same time: who asks while one is being made
/// waits for the next, which is begun after the last of them has come. So nobody is shown what was there before they
/// asked, and a crowd costs the database what one client costs.
final class SharedAnswers: Sendable {
    private enum Turn {
        /// Make the answer, for those who wait as well.
        case lead
        case answer(Result<HTTPResponse, any Error>)
    }

    private typealias Waiting = CheckedContinuation<Turn, Never>

    /// One answer that is being made.
    private struct Run {
        /// They had come when it was begun.
        var followers: [Waiting] = []
        /// They came later. At most one for each connection, which the server bounds.
        var next: [Waiting] = []
    }

    private let runs = Mutex<[String: Run]>([:])

    /// - Parameters:
    ///   - key: everything that the answer depends on besides the database.
    ///   - make: runs at most once at a time for a key.
    func answer(
        _ key: String, _ make: () async throws -> HTTPResponse
    ) async throws -> HTTPResponse {
        let turn = await withCheckedContinuation { waiting in
            let isFirst = runs.withLock { runs in
                guard runs[key] == nil else {
                    runs[key]?.next.append(waiting)
                    return false
                }
                runs[key] = Run()
                return true
            }
            if isFirst { waiting.resume(returning: .lead) }
        }
        if case .answer(let result) = turn { return try result.get() }
        let result: Result<HTTPResponse, any Error>
        do { result = .success(try await make()) } catch { result = .failure(error) }
        end(key, result)
        return try result.get()
    }

    /// Those who wait, for tests.
    func waitingCount(_ key: String) -> Int { runs.withLock { $0[key]?.next.count ?? 0 } }

    private func end(_ key: String, _ result: Result<HTTPResponse, any Error>) {
        let (told, leader) = runs.withLock { runs -> ([Waiting], Waiting?) in
            guard let run = runs.removeValue(forKey: key) else { return ([], nil) }
            // A client that has left takes its own request with it; those who waited for the answer go on.
            let isAbandoned = if case .failure(let error) = result { error is CancellationError } else { false }
            let told = isAbandoned ? [] : run.followers
            let next = isAbandoned ? run.followers + run.next : run.next
            guard let leader = next.first else { return (told, nil) }
            runs[key] = Run(followers: Array(next.dropFirst()))
            return (told, leader)
        }
        for waiting in told { waiting.resume(returning: .answer(result)) }
        leader?.resume(returning: .lead)
    }
}
