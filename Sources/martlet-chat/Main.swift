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
        endProcess(await ServiceRunner.run("martlet-chat", Startup.about) { try build(Startup.configuration(&$1), $0) })
    }

    private static func build(_ configuration: ChatConfiguration, _ context: ServiceContext) throws -> Service {
        let log = context.log.with(["instance": .string(configuration.instance)])
        let database = try Startup.open(configuration.database, context, log)
        let notify = configuration.database.notify
        let instance = ChatInstance(
            configuration, instances: PostgresChatInstances(db: database), context: context, log: log)
        let guardian = SessionGuard(
            sessions: PostgresSessions(db: database, notify: notify), clock: context.clock, log: log)
        let chat = ChatService(
            instance: configuration.instance, internalAddress: instance.internalAddress, loops: context.loops,
            rooms: PostgresRooms(db: database, notify: notify, traces: context.traces != nil),
            presence: PostgresPresence(db: database, notify: notify), keys: configuration.keys, guardian: guardian,
            notify: notify, limits: configuration.limits, trusted: configuration.trusted, passOn: instance.passOn,
            clock: context.clock, log: log, metrics: context.metrics, tracer: context.traces?.tracer)
        let server = chat.server(
            address: configuration.address, loops: context.loops, health: context.health,
            tracing: context.traces?.serving(chat.routes, trusting: configuration.trusted))
        let bus = PostgresBus(
            database: database,
            channels: ["martlet_chat": { chat.wake($0) }, "martlet_session": { _ in guardian.wake() }],
            advisoryLock: PostgresPresence.lockKey(of: chat.process),
            pause: { try await context.clock.sleep(seconds: Double($0)) })
        context.metrics.show(server, routes: chat.routes)
        context.health.require("sessions") { guardian.problem }
        // Whoever is connected here is better off waiting than anywhere else: the database is the same.
        context.health.mention("rooms") { chat.problem }
        return Service(
            start: {
                guardian.start()
                try await instance.listen(for: chat)
                try await Startup.whenDatabaseIsThere(context) { try await chat.start() }
                if notify { bus.start() }
                try await server.start(setting: "MARTLET_HTTP_ADDRESS", log)
            },
            stop: { grace in
                await instance.passOn.drain()
                await chat.drain()
                async let others: Void = instance.drain(graceSeconds: grace)
                _ = await (server.drain(graceSeconds: grace), others)
                await guardian.stop()
                bus.stop()
                await database.close()
            })
    }
}
