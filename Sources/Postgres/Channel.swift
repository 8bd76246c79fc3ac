import Cpq
import EventLoop
import Foundation

/// One connection in pipeline mode: performs what `Pipeline` decides. Lives on its loop; not Sendable.
final class Channel {
    typealias Lines = Pipeline<QueryResult>

    /// The owner's side of a channel.
    struct Events {
        var ready: (Channel) -> Void
        var acted: (Lines.Action) -> Void
        /// The group or operation in flight has come to its end; there may be room for more.
        var progressed: (Channel) -> Void
        /// - Parameter actions: what becomes of the units in flight.
        var lost: (_ channel: Channel, _ reason: String, _ actions: [Lines.Action]) -> Void
    }

    let connection: Connection
    var isLeased = false
    private(set) var isReady = false
    /// It has answered once, so its loss is not a failure to connect.
    var hasAnswered = false
    /// The loop's clock when the server was last heard, or began to owe an answer.
    private(set) var heard: UInt64 = 0

    private let loop: EventLoop
    private let executed: Counter
    private let meter: LaneMeter
    /// `EventLoop.nanoseconds` of the answers that are being read.
    private var readAt: UInt64 = 0
    private let events: Events
    private let parameters = ParameterBuffer()
    private var pipeline: Lines
    /// A script or COPY, outside of pipeline mode.
    var simple: SimpleOperation?
    private var isLost = false
    private var sendFailed = false

    init(on loop: EventLoop, pipeline: Lines, executed: Counter, meter: LaneMeter, events: Events) {
        self.loop = loop
        self.pipeline = pipeline
        self.executed = executed
        self.meter = meter
        self.events = events
        connection = Connection(on: loop)
    }

    var unitsInFlight: Int { pipeline.unitsInFlight }
    var isIdle: Bool { pipeline.isIdle && simple == nil }
    var preparedCount: Int { pipeline.preparedCount }

    func open(_ parameters: [(keyword: String, value: String)], milliseconds: UInt64) {
        connection.onReady = { [unowned self] in becameReady() }
        connection.onInput = { [unowned self] in drain() }
        connection.onDrained = { [unowned self] in simpleDrained() }
        connection.onLost = { [unowned self] in lost($0) }
        connection.open(parameters, milliseconds: milliseconds)
    }

    private func becameReady() {
        guard let raw = connection.raw, PQenterPipelineMode(raw) == 1 else {
            return lose("pipeline mode was refused")
        }
        isReady = true
        heard = loop.nowMilliseconds
        events.ready(self)
    }

    // MARK: Sending

    /// Sends units as one group with one Sync.
    func send(_ units: some Collection<Unit<QueryResult>>, mayDeallocate: Bool = true) {
        guard let raw = connection.raw else { return }
        if pipeline.isIdle { heard = loop.nowMilliseconds }
        sendFailed = false
        let now = EventLoop.nanoseconds
        for var unit in units {
            unit.sentAt = now
            pipeline.add(unit) { perform($0, raw) }
            executed.add(unit.count)
        }
        pipeline.sync(mayDeallocate: mayDeallocate) { perform($0, raw) }
        guard !sendFailed else { return lose(connectionMessage(raw)) }
        guard connection.flush() != .failed, PQisBusy(raw) == 0 else { return }
        // libpq reads when it cannot write: an answer is here already, and may show on the socket no more.
        loop.atTurnEnd { [weak self] in self?.drain() }
    }

    private func connectionMessage(_ raw: OpaquePointer) -> String {
        PQerrorMessage(raw).map { String(cString: $0).trimmingCharacters(in: .whitespacesAndNewlines) } ?? ""
    }

    private func perform(_ send: Lines.Send, _ raw: OpaquePointer) {
        // Results are asked for in binary (the last argument).
        let sent =
            switch send {
            case .prepare(let name, let sql): PQsendPrepare(raw, name, sql.text, 0, nil)
            case .execute(let sql, .some(let name)):
                parameters.with(sql.binds) { PQsendQueryPrepared(raw, name, $0, $1, $2, $3, 1) }
            case .execute(let sql, .none):
                parameters.with(sql.binds) { PQsendQueryParams(raw, sql.text, $0, nil, $1, $2, $3, 1) }
            case .deallocate(let name): PQsendQueryParams(raw, "DEALLOCATE \(name)", 0, nil, nil, nil, nil, 1)
            case .sync: PQpipelineSync(raw)
            }
        if sent != 1 { sendFailed = true }
    }

    func forgetStatements() { pipeline.forgetStatements() }

    // MARK: Receiving

    private func drain() {
        heard = loop.nowMilliseconds
        if simple != nil { return drainSimple() }
        readAt = EventLoop.nanoseconds
        // Each command's results end with a NULL; two in a row mean that nothing more is there.
        var ended = false
        while let raw = connection.raw, !pipeline.isIdle, PQisBusy(raw) == 0 {
            guard let result = PQgetResult(raw) else {
                if ended { break }
                ended = true
                continue
            }
            ended = false
            do {
                try take(result)
            } catch {
                return lose("the server answered what was not asked")
            }
        }
        // Between statements the server may still speak: above all, to end the connection.
        if let raw = connection.raw, pipeline.isIdle { _ = PQisBusy(raw) }
    }

    private func take(_ raw: OpaquePointer) throws(Lines.Broken) {
        let action: Lines.Action?
        switch PQresultStatus(raw) {
        case PGRES_COMMAND_OK, PGRES_TUPLES_OK, PGRES_EMPTY_QUERY:
            action = try pipeline.receive(.success(QueryResult(taking: raw)))
        case PGRES_PIPELINE_ABORTED:
            PQclear(raw)
            action = try pipeline.receive(.skipped)
        case PGRES_PIPELINE_SYNC:
            PQclear(raw)
            for action in try pipeline.synced() { act(action) }
            events.progressed(self)
            return
        case PGRES_FATAL_ERROR:
            let error = PostgresError(result: raw)
            PQclear(raw)
            guard !error.isFatal else { return lose("ended by the server with \(error.sqlState)") }
            action = try pipeline.receive(.failure(error))
        default:
            // COPY does not work in a pipeline: libpq cannot go on from here.
            PQclear(raw)
            throw Lines.Broken()
        }
        if let action { act(action) }
    }

    private func act(_ action: Lines.Action) {
        note(action)
        events.acted(action)
    }

    private func note(_ action: Lines.Action) {
        guard case .finish(let unit, let outcome) = action else { return }
        let failed = if case .failed = outcome { true } else { false }
        meter.answered(since: unit.sentAt, now: readAt, failed: failed)
    }

    // MARK: The end

    /// Gives the connection up.
    func lose(_ reason: String) {
        connection.lose(reason)
    }

    /// Ends an idle channel; nobody is told.
    func close() {
        isLost = true
        isReady = false
        connection.close()
    }

    private func lost(_ reason: String) {
        guard !isLost else { return }
        isLost = true
        isReady = false
        let actions = pipeline.lost()
        readAt = EventLoop.nanoseconds
        for action in actions { note(action) }
        let operation = simple
        simple = nil
        events.lost(self, reason, actions)
        operation?.answer(.failure(PostgresUnavailable.connectionLost))
    }
}
