import CoreHTTP
import CorePostgres
import EventLoop
import Foundation
import GatewayApp
import HTTPServer
import MediaStore
import Postgres
import ServiceKit

@main
enum Main {
    static func main() async {
        exit(await ServiceRunner.run("martlet-gateway") { try build(try GatewayConfiguration(&$1), $0) })
    }

    private static func build(_ configuration: GatewayConfiguration, _ context: ServiceContext) throws -> Service {
        let log = context.log
        let database = Database(
            try PostgresConfiguration(url: configuration.databaseURL.value), loops: context.loops,
            log: { log.warning("database", ["what": .string($0.kind.rawValue), "lane": .string($0.lane)]) })
        let notify = configuration.notify
        let sessions = PostgresSessions(db: database, notify: notify)
        let guardian = SessionGuard(sessions: sessions, clock: context.clock, log: context.log)
        let files = OffloadPool(name: "files", threads: 4, queueMax: 1024)
        let gateway = Gateway(
            GatewayParts(
                users: PostgresUsers(db: database, notify: notify), sessions: sessions,
                companies: PostgresCompanies(db: database, notify: notify),
                postings: PostgresPostings(db: database, notify: notify), search: PostgresSearch(db: database),
                applications: PostgresApplications(db: database, notify: notify),
                media: PostgresMedia(db: database, notify: notify), rooms: PostgresRooms(db: database),
                alerts: PostgresAlerts(db: database, notify: notify),
                store: try FolderStore(root: configuration.store, offload: files), keys: configuration.keys,
                guardian: guardian,
                clock: context.clock, metrics: context.metrics, log: context.log, openAPI: configuration.openAPI,
                trusted: configuration.trusted, signInFailuresPerMinute: configuration.signInFailuresPerMinute,
                registrationsPerMinute: configuration.registrationsPerMinute))
        let server = HTTPServer(
            loops: context.loops, address: configuration.address, onError: gateway.answer, handler: gateway.handle)
        let bus = PostgresBus(
            database: database, channels: ["martlet_session": { _ in guardian.wake() }],
            pause: { try await context.clock.sleep(seconds: Double($0)) })
        context.health.require("sessions") { guardian.problem }
        return Service(
            start: {
                if notify { bus.start() }
                Task { await guardian.run() }
                let address = try await server.start()
                context.log.info("listening", ["address": .string(address.description)])
            },
            stop: { grace in
                await server.drain(graceSeconds: grace)
                bus.stop()
                await database.close()
            })
    }
}
