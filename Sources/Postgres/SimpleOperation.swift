import Cpq

/// A script or a COPY in progress. Both speak the simple protocol, so the channel leaves pipeline mode for them.
final class SimpleOperation {
    enum Phase {
        case script
        /// COPY has been sent; the server has not agreed yet.
        case opening
        case copying
        case ending
    }

    var phase: Phase
    var affected = 0
    var failure: (any Error)?
    /// Who waits for the step in progress; at most one.
    private var waiter: ((Result<Int, any Error>) -> Void)?

    init(_ phase: Phase, waiter: @escaping (Result<Int, any Error>) -> Void) {
        self.phase = phase
        self.waiter = waiter
    }

    var isWaiting: Bool { waiter != nil }

    func wait(_ waiter: @escaping (Result<Int, any Error>) -> Void) { self.waiter = waiter }

    func answer(_ result: Result<Int, any Error>) {
        let waiter = waiter
        self.waiter = nil
        waiter?(result)
    }
}

extension Channel {
    /// Runs one or more statements by the simple protocol: what cannot run in a pipeline, and the text of migrations.
    /// Rows are dropped. Answers with the affected rows of the last statement.
    func script(_ text: String, _ finish: @escaping (Result<Int, any Error>) -> Void) {
        begin(text, .script, finish)
    }

    /// Sends a COPY … FROM STDIN. Answers when the server is ready for data.
    func copyBegin(_ text: String, _ finish: @escaping (Result<Int, any Error>) -> Void) {
        begin(text, .opening, finish)
    }

    private func begin(
        _ text: String, _ phase: SimpleOperation.Phase, _ finish: @escaping (Result<Int, any Error>) -> Void
    ) {
        guard let raw = connection.raw else { return finish(.failure(PostgresUnavailable.connectionLost)) }
        guard isIdle, PQexitPipelineMode(raw) == 1 else { return finish(.failure(PostgresMisuse.concurrentUse)) }
        simple = SimpleOperation(phase, waiter: finish)
        guard PQsendQuery(raw, text) == 1 else { return lose("the statement could not be sent") }
        connection.flush()
    }

    /// Sends data, and answers when the kernel has taken it: so a fast reader of files waits for a slow server.
    func copyWrite(_ bytes: [UInt8], _ finish: @escaping (Result<Int, any Error>) -> Void) {
        guard let raw = connection.raw else { return finish(.failure(PostgresUnavailable.connectionLost)) }
        guard let simple, simple.phase == .copying, !simple.isWaiting else {
            return finish(.failure(PostgresMisuse.concurrentUse))
        }
        let put = bytes.withUnsafeBytes { buffer in
            PQputCopyData(raw, buffer.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(buffer.count))
        }
        simple.wait(finish)
        guard put == 1 else { return lose("COPY data could not be sent") }
        if connection.flush() == .all { simple.answer(.success(bytes.count)) }
    }

    /// Ends the COPY. Answers with the number of rows, or with the server's error.
    /// - Parameter abort: nothing of it is kept; the transaction has failed.
    func copyEnd(abort: Bool, _ finish: @escaping (Result<Int, any Error>) -> Void) {
        guard let raw = connection.raw else { return finish(.failure(PostgresUnavailable.connectionLost)) }
        guard let simple, simple.phase == .copying, !simple.isWaiting else {
            return finish(.failure(PostgresMisuse.concurrentUse))
        }
        simple.phase = .ending
        simple.wait(finish)
        guard PQputCopyEnd(raw, abort ? "given up by the client" : nil) == 1 else {
            return lose("COPY could not be ended")
        }
        connection.flush()
        // An error that the server raised in the middle has been read long ago; nothing more may come.
        drainSimple()
    }

    func simpleDrained() {
        if let simple, simple.phase == .copying { simple.answer(.success(0)) }
    }

    func drainSimple() {
        while let simple, simple.phase != .copying, let raw = connection.raw, PQisBusy(raw) == 0 {
            guard let result = PQgetResult(raw) else { return finishSimple(simple, raw) }
            defer { PQclear(result) }
            switch PQresultStatus(result) {
            case PGRES_FATAL_ERROR:
                let error = PostgresError(result: result)
                guard !error.isFatal else { return lose("ended by the server with \(error.sqlState)") }
                if simple.failure == nil { simple.failure = error }
            case PGRES_COPY_IN where simple.phase == .opening:
                simple.phase = .copying
                simple.answer(.success(0))
            case PGRES_COPY_IN:
                // A script has no data to give; the server answers with an error.
                guard PQputCopyEnd(raw, "not here") == 1, connection.flush() != .failed else {
                    return lose("COPY in a script")
                }
            case PGRES_COPY_OUT, PGRES_COPY_BOTH: return lose("COPY out of the server")
            default:
                simple.affected = PQcmdTuples(result).flatMap { Int(String(cString: $0)) } ?? 0
            }
        }
    }

    private func finishSimple(_ operation: SimpleOperation, _ raw: OpaquePointer) {
        simple = nil
        guard PQenterPipelineMode(raw) == 1 else { return lose("pipeline mode was refused") }
        if let failure = operation.failure {
            operation.answer(.failure(failure))
        } else if operation.phase == .opening {
            operation.answer(.failure(PostgresMisuse.copy))
        } else {
            operation.answer(.success(operation.affected))
        }
    }
}
