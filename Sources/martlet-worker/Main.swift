import Core
import CorePostgres
import EventLoop
import Foundation
import MediaStore
import MediaTools
import Postgres
import ServiceKit
import WorkerApp

@main
enum Main {
    static func main() async {
        let arguments = CommandLine.arguments
        if arguments.count > 1, arguments[1] == MediaChild.argument { MediaChild.run(arguments[2...]) }
        endProcess(await ServiceRunner.run("martlet-worker", Startup.about, build: build))
    }

    static func build(_ context: ServiceContext, _ environment: inout Environment) async throws -> Service {
        let offload = OffloadPool(name: "files", threads: 4, queueMax: 1024)
        Startup.verify(&environment)
        let opened = StoreSettings.open(&environment, files: offload, for: context)
        let configuration = try WorkerConfiguration(&environment)
        guard let opened else { throw ConfigurationError(["MARTLET_STORE is not set"]) }
        let store = WatchedStore(
            opened.store, health: context.health, metrics: context.metrics, clock: context.clock, log: context.log)
        let log = context.log
        let db = Database(
            try Startup.database(configuration.database), loops: context.loops, tracer: context.traces?.tracer,
            log: DatabaseLog(log, clock: context.clock).note)
        context.metrics.show(db)
        Startup.watchSchema(of: db, context)
        // The children are shut in by real paths.
        var children = MediaChildPool.Configuration(
            executable: URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().path, roots: opened.roots)
        children.children = configuration.mediaChildren
        children.rasterizesSVG = configuration.svg == .rasterize
        children.scanLanguages = Startup.scanLanguages(configuration.scanLanguages, log: log)
        children.scanFailed = { log.warning("a scan was not read", ["reason": .string($0)]) }
        let notify = configuration.database.notify
        let parts = WorkerService.Parts(
            queue: PostgresWorkQueue(db: db, notify: notify),
            alerts: PostgresAlerts(db: db, notify: notify, mailDomain: configuration.mailDomain),
            mails: PostgresMails(db: db), accountMails: PostgresAccountMails(db: db),
            media: PostgresMedia(db: db, notify: notify), upkeep: PostgresUpkeep(db: db),
            store: store, children: MediaChildPool(children), scratch: opened.scratch, offload: offload,
            listen: { try await db.listen(["martlet_work"], onWake: { [wake = $0] _ in wake() }, onReconnect: $0) },
            close: { await db.close() })
        let service = WorkerService.make(parts, configuration: configuration, context: context)
        return Service(
            start: {
                store.start()
                try await service.start()
            },
            stop: { grace in
                store.stop()
                await service.stop(grace)
            })
    }
}
