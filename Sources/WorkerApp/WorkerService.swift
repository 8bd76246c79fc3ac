import Clamd
import Core
import Crypto
import EventLoop
import Foundation
import MediaTools
import ServiceKit
import Synchronization
import Transfer

/// Puts the worker together: which kinds share a lane, what runs when, and in which order all of it stops.
public enum WorkerService {
    /// Matching and digests are transactions of their own, on leased connections.
    static let alertsAtOnceMax = 2
    static let upkeepAtOnceMax = 2
    /// Somebody waits for these, so they never stand behind ten thousand digests.
    static let accountMailsAtOnceMax = 2
    static let digestSeconds = 60
    static let factsSeconds = 15 * 60
    static let pruneSeconds = 3600
    /// After an attempt to LISTEN that failed; polling works meanwhile.
    static let listenPauseSeconds = 2.0

    public typealias Listen = @Sendable (_ wake: @escaping @Sendable () -> Void) async throws -> any Sendable

    public struct Parts: Sendable {
        public let queue: any WorkQueue
        public let alerts: any AlertRepository
        public let mails: any MailRepository
        public let accountMails: any AccountMailRepository
        public let media: any MediaRepository
        public let upkeep: any UpkeepRepository
        public let store: any WorkingStore
        public let children: MediaChildPool
        /// A folder beneath the children's roots.
        public let scratch: String
        public let offload: OffloadPool
        /// Calls its argument at every wake-up as long as what it returns is kept. Not used where NOTIFY is off.
        public let listen: Listen
        /// Ends what the parts stand on; called last.
        public let close: @Sendable () async -> Void

        public init(
            queue: any WorkQueue, alerts: any AlertRepository, mails: any MailRepository,
            accountMails: any AccountMailRepository, media: any MediaRepository, upkeep: any UpkeepRepository,
            store: any WorkingStore, children: MediaChildPool, scratch: String, offload: OffloadPool,
            listen: @escaping Listen,
            close: @escaping @Sendable () async -> Void
        ) {
            self.queue = queue
            self.alerts = alerts
            self.mails = mails
            self.accountMails = accountMails
            self.media = media
            self.upkeep = upkeep
            self.store = store
            self.children = children
            self.scratch = scratch
            self.offload = offload
            self.listen = listen
            self.close = close
        }
    }

    /// The listener, and the task that brings it about.
    private final class Listening: Sendable {
        private let listener = Mutex<(any Sendable)?>(nil)
        private let task = Mutex<Task<Void, Never>?>(nil)

        func keep(_ new: any Sendable) { listener.withLock { $0 = new } }

        func begin(_ body: @escaping @Sendable () async -> Void) {
            task.withLock { $0 = Task { await body() } }
        }

        func end() async {
            let running = task.withLock { $0 }
            running?.cancel()
            await running?.value
            listener.withLock { $0 = nil }
        }
    }

    public static func make(
        _ parts: Parts, configuration: WorkerConfiguration, context: ServiceContext
    ) -> Service {
        let log = context.log
        let scanner = scanner(configuration, context)
        var handlers: [any WorkHandler] = [
            ProcessUpload(
                media: parts.media, store: parts.store, scratch: parts.scratch, offload: parts.offload,
                clock: context.clock, log: log, scanner: scanner,
                process: Measured.media(context.metrics, clock: context.clock, parts.children.process)),
            MatchAlerts(alerts: parts.alerts, clock: context.clock, metrics: context.metrics),
            SendDigests(alerts: parts.alerts, clock: context.clock, metrics: context.metrics),
            DeleteFiles(store: parts.store),
            SweepObjects(
                store: parts.store, media: parts.media, clock: context.clock, log: log, metrics: context.metrics),
            RefreshSearchFacts(upkeep: parts.upkeep),
            Prune(
                upkeep: parts.upkeep, store: parts.store, ledgerDays: configuration.alertLedgerDays,
                clock: context.clock, log: log, metrics: context.metrics),
        ]
        var lanes = [
            WorkLane(
                name: "uploads", kinds: [.processUpload], runningMax: configuration.mediaChildren,
                batchMax: configuration.mediaChildren),
            WorkLane(
                name: "alerts", kinds: [.matchAlerts, .sendDigests], runningMax: alertsAtOnceMax,
                batchMax: alertsAtOnceMax),
            WorkLane(
                name: "upkeep", kinds: [.deleteFiles, .sweepObjects, .refreshSearchFacts, .prune],
                runningMax: upkeepAtOnceMax,
                batchMax: upkeepAtOnceMax),
        ]
        let mailServer = configuration.smtp.map { watch($0, context) }
        if let smtp = configuration.smtp, let mailServer {
            handlers.append(
                mailHandler(parts, smtp: smtp, mailServer, configuration: configuration, context: context))
            let most = configuration.mailsAtOnce
            lanes.append(WorkLane(name: "mail", kinds: [.sendMail], runningMax: most, batchMax: most))
            handlers.append(
                accountMailHandler(parts, smtp: smtp, mailServer, configuration: configuration, context: context))
            lanes.append(
                WorkLane(
                    name: "account-mail", kinds: [.sendAccountMail], runningMax: accountMailsAtOnceMax,
                    batchMax: accountMailsAtOnceMax))
        }
        let settings = Worker.Settings(name: configuration.name, lanes: lanes, schedules: schedules(parts))
        let worker = Worker(
            queue: parts.queue, handlers: handlers, settings: settings, loop: context.loops.here(),
            clock: context.clock, log: log, metrics: context.metrics, tracer: context.traces?.tracer)
        context.health.require("queue") { worker.problem }
        let backlog = BacklogMetrics(queue: parts.queue, clock: context.clock, log: log)
        context.metrics.collect { await backlog.families() }
        let watches = Watches(scanner: scanner, mailServer: mailServer)
        return service(worker, parts, watches, configuration: configuration, context: context)
    }

    /// What looks after programs that work needs.
    private struct Watches: Sendable {
        let scanner: UploadScanner?
        let mailServer: MailServer?

        func start(_ log: Log) {
            if mailServer == nil { log.warning("mail is off: MARTLET_SMTP_URL is not set, and mails wait") }
            if scanner == nil { log.info("uploads are not scanned: MARTLET_CLAMD is not set") }
            scanner?.start()
            mailServer?.start()
        }

        func stop() {
            scanner?.stop()
            mailServer?.stop()
        }
    }

    private static func watch(_ smtp: SMTPClient.Configuration, _ context: ServiceContext) -> MailServer {
        // A server that hangs holds threads, so the greetings have one of their own, and one may wait for it.
        let pool = OffloadPool(name: "smtp-probe", threads: 1, queueMax: 1)
        let client = SMTPClient(smtp, offload: pool, connectionsMax: 1, sendSecondsMax: mailProbeSecondsMax)
        return MailServer(
            probe: { try await client.probe() }, health: context.health, metrics: context.metrics,
            clock: context.clock, log: context.log)
    }

    /// Of a greeting: the time that a server has for each of its first words is much shorter in practice.
    private static let mailProbeSecondsMax = 15

    private static func scanner(_ configuration: WorkerConfiguration, _ context: ServiceContext) -> UploadScanner? {
        guard let address = configuration.clamd else { return nil }
        // A clamd that hangs holds threads, so they are its own: one for each upload, and one for probes.
        let threads = configuration.mediaChildren + 1
        let client = ClamdClient(
            address, offload: OffloadPool(name: "clamd", threads: threads, queueMax: threads),
            scanSecondsMax: configuration.clamdSecondsMax)
        return UploadScanner(
            scan: Traced.scan(context.traces?.tracer, address) { try await client.scan(file: $0) },
            probe: { try await client.probe() }, health: context.health,
            metrics: context.metrics, clock: context.clock, log: context.log)
    }

    private static func mailHandler(
        _ parts: Parts, smtp: SMTPClient.Configuration, _ server: MailServer, configuration: WorkerConfiguration,
        context: ServiceContext
    ) -> SendMail {
        // A server that hangs holds threads, so they are mail's own.
        let pool = OffloadPool(name: "smtp", threads: configuration.mailsAtOnce, queueMax: configuration.mailsAtOnce)
        let client = SMTPClient(smtp, offload: pool, connectionsMax: configuration.mailsAtOnce)
        let writer = AlertMailWriter(
            publicURL: configuration.publicURL, postingURL: configuration.postingURL,
            tokens: UnsubscribeToken(keys: configuration.keys))
        return SendMail(
            mails: parts.mails, writer: writer, from: configuration.from, log: context.log,
            send: server.guarding(
                Measured.mail(
                    context.metrics, kind: "alert", clock: context.clock,
                    Traced.mail(context.traces?.tracer, smtp) { from, to, message in
                        try await client.send(from: from, to: to, message: message)
                    })))
    }

    private static func accountMailHandler(
        _ parts: Parts, smtp: SMTPClient.Configuration, _ server: MailServer, configuration: WorkerConfiguration,
        context: ServiceContext
    ) -> SendAccountMail {
        let pool = OffloadPool(
            name: "smtp-account", threads: accountMailsAtOnceMax, queueMax: accountMailsAtOnceMax)
        let client = SMTPClient(smtp, offload: pool, connectionsMax: accountMailsAtOnceMax)
        let writer = AccountMailWriter(
            publicURL: configuration.publicURL, resetURL: configuration.resetURL,
            tokens: MailedToken(keys: configuration.keys))
        return SendAccountMail(
            mails: parts.accountMails, writer: writer, from: configuration.from, clock: context.clock,
            log: context.log,
            send: server.guarding(
                Measured.mail(
                    context.metrics, kind: "account", clock: context.clock,
                    Traced.mail(context.traces?.tracer, smtp) { from, to, message in
                        try await client.send(from: from, to: to, message: message)
                    })))
    }

    private static func schedules(_ parts: Parts) -> [WorkSchedule] {
        [
            WorkSchedule(name: "digests", kind: .sendDigests, everySeconds: digestSeconds) { now in
                try await parts.alerts.digestsDue(now: now)
            },
            WorkSchedule(name: "search-facts", kind: .refreshSearchFacts, everySeconds: factsSeconds),
            WorkSchedule(name: "prune", kind: .prune, everySeconds: pruneSeconds),
            WorkSchedule(name: "sweep-objects", kind: .sweepObjects, everySeconds: SweepObjects.everySeconds),
        ]
    }

    private static func service(
        _ worker: Worker, _ parts: Parts, _ watches: Watches, configuration: WorkerConfiguration,
        context: ServiceContext
    ) -> Service {
        let listening = Listening()
        return Service(
            start: {
                watches.start(context.log)
                await worker.start()
                guard configuration.database.notify else { return }
                listening.begin {
                    while !Task.isCancelled {
                        do {
                            listening.keep(try await parts.listen { worker.wake() })
                            // What was put in before the server agreed woke nobody.
                            return worker.wake()
                        } catch {
                            context.log.warning("cannot listen; polling", ["error": .string("\(error)")])
                            do { try await context.clock.sleep(seconds: listenPauseSeconds) } catch { return }
                        }
                    }
                }
            },
            stop: { grace in
                await worker.stop(graceSeconds: Double(grace))
                watches.stop()
                await listening.end()
                await parts.children.shutdown()
                await parts.close()
                parts.offload.stop()
            })
    }
}
