import Foundation
import Synchronization
import Testing

@testable import MediaTools

/// Through real children.
@Suite struct PoolTests {
    let scratch: Scratch
    init() throws { scratch = try Scratch() }

    /// Runs `body` with a pool of one child over the scratch folder, and ends the pool.
    private func withPool(
        probe: MediaChildPool.Probe = MediaChildPool.Probe(),
        change: (inout MediaChildPool.Configuration) -> Void = { _ in },
        _ body: (MediaChildPool) async throws -> Void
    ) async throws {
        var configuration = MediaChildPool.Configuration(executable: workerProgram, roots: [scratch.path])
        configuration.children = 1
        change(&configuration)
        let pool = MediaChildPool(configuration, probe: probe)
        do { try await body(pool) } catch {
            await pool.shutdown()
            throw error
        }
        await pool.shutdown()
    }

    private func pdf(_ name: String = "cv.pdf") throws -> MediaRequest {
        try scratch.request(try scratch.file(name, Samples.pdf(pages: ["Curriculum"])))
    }

    @Test("a child has no network, starts no program, and opens nothing outside its folders")
    func sandbox() async throws {
        let hellos = Mutex<[MediaHello]>([])
        var probe = MediaChildPool.Probe()
        probe.started = { _, hello in hellos.withLock { $0.append(hello) } }
        try await withPool(probe: probe) { pool in
            let answer = try await pool.process(pdf())
            #expect(answer.document?.pages == 1)
            let outside = MediaRequest(kind: .any, path: "/proc/version", outputDirectory: scratch.path)
            let next = try await pool.process(outside)
            #expect(next == .failed("the file cannot be opened"))
        }
        #expect(
            hellos.withLock { $0 } == [MediaHello(networkDenied: true, processesDenied: true, filesDenied: true)])
    }

    @Test("the request that make bench sends is one, with the limits that uploads have")
    func benchRequest() throws {
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let file = tests.deletingLastPathComponent().appendingPathComponent("ops/bench/media_request.json")
        let request = try JSONDecoder().decode(MediaRequest.self, from: Data(contentsOf: file))
        #expect(request.limits == MediaLimits())
    }

    @Test("images go through a child as they do here")
    func image() async throws {
        let tiff = try scratch.file("a.tiff", Samples.tiff(width: 1280, height: 1022))
        try await withPool { pool in
            let request = try scratch.request(tiff)
            let image = try #require(try await pool.process(request).image)
            #expect(image.variants.count == 4)
            for variant in image.variants {
                #expect(FileManager.default.fileExists(atPath: request.outputDirectory + "/" + variant.file))
            }
        }
    }

    @Test("a child killed with a file in its hands is one crashed file; the next file finds another child")
    func crash() async throws {
        let killed = Mutex<[pid_t]>([])
        var probe = MediaChildPool.Probe()
        probe.taken = { pid in
            if killed.withLock({
                $0.append(pid)
                return $0.count
            }) == 1 {
                kill(pid, SIGKILL)
            }
        }
        let slow = try scratch.request(try scratch.file("slow.pdf", Samples.slowPDF()))
        try await withPool(probe: probe) { pool in
            let answer = try await pool.process(slow)
            #expect(answer.rejection == .crashed)
            let next = try await pool.process(pdf())
            #expect(next.document != nil)
        }
        #expect(Set(killed.withLock { $0 }).count == 2)
    }

    @Test("a child that does not answer in time is killed, and the next file finds another child")
    func deadline() async throws {
        let taken = Mutex<[pid_t]>([])
        var probe = MediaChildPool.Probe()
        probe.taken = { pid in
            let isFirst = taken.withLock { pids in
                pids.append(pid)
                return pids.count == 1
            }
            // Slow as it is, it shall not be done before the deadline.
            if isFirst { kill(pid, SIGSTOP) }
        }
        let slow = try scratch.request(try scratch.file("slow.pdf", Samples.slowPDF()))
        try await withPool(probe: probe, change: { $0.deadline = .seconds(10) }) { pool in
            let answer = try await pool.process(slow)
            #expect(answer.rejection == .timedOut)
            let next = try await pool.process(pdf())
            #expect(next.document != nil)
        }
        let pids = taken.withLock { $0 }
        #expect(pids.count == 2 && pids[0] != pids[1])
        #expect(kill(pids[0], 0) == -1 && errno == ESRCH)
    }

    @Test("a child that died while it waited costs no file")
    func diedIdle() async throws {
        let pids = Mutex<[pid_t]>([])
        var probe = MediaChildPool.Probe()
        probe.started = { pid, _ in pids.withLock { $0.append(pid) } }
        try await withPool(probe: probe) { pool in
            let answer = try await pool.process(pdf())
            #expect(answer.document != nil)
            kill(try #require(pids.withLock { $0.last }), SIGKILL)
            let next = try await pool.process(pdf())
            #expect(next.document != nil)
        }
        #expect(pids.withLock { $0.count } == 2)
    }

    @Test("a child is replaced after its number of files")
    func recycled() async throws {
        let starts = Mutex(0)
        var probe = MediaChildPool.Probe()
        probe.started = { _, _ in starts.withLock { $0 += 1 } }
        try await withPool(probe: probe, change: { $0.filesPerChildMax = 2 }) { pool in
            for _ in 0..<5 {
                let answer = try await pool.process(pdf())
                #expect(answer.document != nil)
            }
        }
        #expect(starts.withLock { $0 } == 3)
    }

    @Test("a program that is not there or not a media child is our fault, not the file's")
    func wrongProgram() async throws {
        for program in ["/nonexistent", "/bin/true"] {
            try await withPool(change: { $0.executable = program }) { pool in
                await #expect(throws: MediaPoolError.self) { try await pool.process(pdf()) }
            }
        }
    }

    @Test("beyond the limit of waiting requests the pool refuses, and after its end it takes none")
    func refusals() async throws {
        let (taken, continuation) = AsyncStream<pid_t>.makeStream()
        var probe = MediaChildPool.Probe()
        probe.taken = { pid in
            kill(pid, SIGSTOP)
            continuation.yield(pid)
        }
        try await withPool(probe: probe, change: { $0.waitingMax = 0 }) { pool in
            await #expect(throws: MediaPoolError.tooManyWaiting) { try await pool.process(pdf()) }
        }
        try await withPool(probe: probe, change: { $0.waitingMax = 1 }) { pool in
            let request = try scratch.request(try scratch.file("slow.pdf", Samples.slowPDF()))
            async let first = pool.process(request)
            var iterator = taken.makeAsyncIterator()
            let pid = try #require(await iterator.next())
            let second = Task { try await pool.process(request) }
            second.cancel()
            await #expect(throws: CancellationError.self) { try await second.value }
            kill(pid, SIGCONT)
            #expect(try await first.document != nil)
            await pool.shutdown()
            await #expect(throws: MediaPoolError.shutDown) { try await pool.process(request) }
        }
    }
}
