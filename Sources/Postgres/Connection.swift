import Cpq
import EventLoop
import Foundation

/// One libpq connection on one loop: connecting, reading and writing without ever blocking it. Not Sendable.
///
/// The owner sets the callbacks, then calls `open`. After `onLost` or `close()` nothing more is called.
final class Connection {
    private let loop: EventLoop
    private(set) var raw: OpaquePointer?
    private var poller: Poller?
    private var timer: LoopTimer?
    private var isReady = false
    private var isFlushing = false
    private var usesTLS = false

    var onReady: () -> Void = {}
    /// libpq has read what had arrived.
    var onInput: () -> Void = {}
    /// Everything written has been taken by the kernel, after `flush()` said `pending`.
    var onDrained: () -> Void = {}
    /// Called once, with a reason for the log.
    var onLost: (String) -> Void = { _ in }

    enum Flushed { case all, pending, failed }

    /// A TLS record holds 16 KiB and libpq's buffer grows by 8: what OpenSSL still holds shows on no socket, so libpq
    /// is asked this often in one go.
    private static let readsPerEventTLS = 3

    init(on loop: EventLoop) { self.loop = loop }

    deinit {
        poller?.close()
        if let raw { PQfinish(raw) }
    }

    /// Begins to connect. `parameters` are libpq's keywords; hosts must be numeric or sockets, since names would block.
    func open(_ parameters: [(keyword: String, value: String)], milliseconds: UInt64) {
        let timer = LoopTimer(on: loop) { [weak self] in self?.lose("no connection within \(milliseconds) ms") }
        timer.start(milliseconds: milliseconds)
        self.timer = timer
        var keywords: [UnsafeMutablePointer<CChar>?] = parameters.map { strdup($0.keyword) }
        var values: [UnsafeMutablePointer<CChar>?] = parameters.map { strdup($0.value) }
        defer { for text in keywords + values { free(text) } }
        keywords.append(nil)
        values.append(nil)
        let constKeywords = keywords.map { UnsafePointer($0) }
        let constValues = values.map { UnsafePointer($0) }
        raw = PQconnectStartParams(constKeywords, constValues, 0)
        guard let raw else { return lose("libpq is out of memory") }
        guard PQstatus(raw) != CONNECTION_BAD else { return lose(message()) }
        PQsetNoticeProcessor(raw, { _, _ in }, nil)
        watchConnecting(.writable)
    }

    private func message() -> String {
        guard let raw, let text = PQerrorMessage(raw) else { return "unknown" }
        let message = String(cString: text).trimmingCharacters(in: .whitespacesAndNewlines)
        return message.isEmpty ? "the connection ended" : message
    }

    /// libpq may go to another address, and so to another socket, at each step: the watcher is made anew.
    private func watchConnecting(_ events: Poller.Events) {
        guard let raw else { return }
        let descriptor = PQsocket(raw)
        guard descriptor >= 0 else { return lose(message()) }
        let poller = Poller(on: loop, descriptor: descriptor) { [weak self] _ in self?.step() }
        poller.watch(events)
        self.poller = poller
    }

    private func step() {
        guard let raw else { return }
        poller?.close()
        poller = nil
        switch PQconnectPoll(raw) {
        case PGRES_POLLING_READING: watchConnecting(.readable)
        case PGRES_POLLING_WRITING: watchConnecting(.writable)
        case PGRES_POLLING_OK: established(raw)
        default: lose(message())
        }
    }

    private func established(_ raw: OpaquePointer) {
        timer = nil
        guard PQsetnonblocking(raw, 1) == 0 else { return lose(message()) }
        isReady = true
        usesTLS = PQsslInUse(raw) == 1
        let poller = Poller(on: loop, descriptor: PQsocket(raw)) { [weak self] events in self?.ready(events) }
        poller.watch(.readable)
        self.poller = poller
        onReady()
    }

    private func ready(_ events: Poller.Events) {
        if events.contains(.writable), isFlushing {
            if flush() == .all { onDrained() }
            // libpq reads when it cannot write, so what it has read may show on the socket no more.
            onInput()
        }
        guard events.contains(.readable), let raw else { return }
        var alive = PQconsumeInput(raw) == 1
        if usesTLS {
            for _ in 1..<Self.readsPerEventTLS where alive { alive = PQconsumeInput(raw) == 1 }
        }
        let reason = alive ? "" : message()
        // What came before the end is still to be read: often it says why.
        onInput()
        if !alive { lose(reason) }
    }

    /// Hands what is buffered to the kernel; the rest goes out by itself.
    @discardableResult
    func flush() -> Flushed {
        guard let raw, let poller else { return .failed }
        switch PQflush(raw) {
        case 0:
            isFlushing = false
            poller.watch(.readable)
            return .all
        case 1:
            isFlushing = true
            poller.watch([.readable, .writable])
            return .pending
        default:
            lose(message())
            return .failed
        }
    }

    /// Gives the connection up for a reason found here or by the owner.
    func lose(_ reason: String) {
        guard raw != nil || timer != nil else { return }
        close()
        let lost = onLost
        release()
        lost(reason)
    }

    /// Ends the connection; nothing is called any more.
    func close() {
        timer?.cancel()
        timer = nil
        // libpq closes the socket: the watcher must go first.
        poller?.close()
        poller = nil
        if let raw { PQfinish(raw) }
        raw = nil
    }

    private func release() {
        onReady = {}
        onInput = {}
        onDrained = {}
        onLost = { _ in }
    }
}
