import ChatApp
import CoreHTTP
import CorePostgres
import EventLoop
import Foundation
import HTTPServer
import Postgres
import ServiceKit

@main
enum Main {
    static func main() async {
        exit(await ServiceRunner.run("martlet-chat") { try build(try ChatConfiguration(&$1), $0) })
    }

    private static func build(_ configuration: ChatConfiguration, _ context: ServiceContext) throws -> Service {
        let log = context.log.with(["instance": .string(configuration.instance)])
        let database = Database(
            try PostgresConfiguration(url: configuration.databaseURL.value), loops: context.loops,
            log: { event in
                let isGood = event.kind == .connected || event.kind == .listening
                (isGood ? log.debug : log.warning)(
                    "database", ["what": .string(event.kind.rawValue), "lane": .string(event.lane)])
            })
        let notify = configuration.notify
        let instances = PostgresChatInstances(db: database)
        let guardian = SessionGuard(
            sessions: PostgresSessions(db: database, notify: notify), clock: context.clock, log: log)
        let chat = ChatService(
            instance: configuration.instance, loops: context.loops, rooms: PostgresRooms(db: database, notify: notify),
            keys: configuration.keys, guardian: guardian, notify: notify,
            limits: configuration.limits, trusted: configuration.trusted, clock: context.clock, log: log,
            metrics: context.metrics)
        let server = chat.server(address: configuration.address, loops: context.loops)
        let bus = PostgresBus(
            database: database,
            channels: ["martlet_chat": { chat.wake($0) }, "martlet_session": { _ in guardian.wake() }],
            pause: { try await context.clock.sleep(seconds: Double($0)) })
        context.health.require("sessions") { guardian.problem }
        return Service(
            start: {
                guardian.start()
                try await Startup.whenDatabaseIsThere(context) {
                    try await chat.start()
                    try await instances.start(configuration.instance, internalAddress: "")
                }
                if notify { bus.start() }
                let address = try await server.start()
                log.info("listening", ["address": .string(address.description)])
            },
            stop: { grace in
                await chat.drain()
                await server.drain(graceSeconds: grace)
                await guardian.stop()
                try? await instances.stop(configuration.instance, internalAddress: "")
                bus.stop()
                await database.close()
            })
    }
}
