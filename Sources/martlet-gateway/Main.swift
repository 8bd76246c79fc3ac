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
        endProcess(
            await ServiceRunner.run("martlet-gateway", Startup.about) { context, environment in
                let files = OffloadPool(name: "files", threads: 8, queueMax: 1024)  // An fsync holds its thread.
                Startup.verify(&environment)
                let opened = StoreSettings.open(&environment, files: files, for: context)
                let configuration = try GatewayConfiguration(&environment)
                guard let opened else { throw ConfigurationError(["MARTLET_STORE is not set"]) }
                return try build(configuration, context, opened)
            })
    }

    private static func build(
        _ configuration: GatewayConfiguration, _ context: ServiceContext, _ opened: OpenedStore
    ) throws -> Service {
        let log = context.log
        let database = try Startup.open(configuration.database, context, log)
        let notify = configuration.database.notify
        let sessions = PostgresSessions(db: database, notify: notify)
        let guardian = SessionGuard(sessions: sessions, clock: context.clock, log: log)
        let store = Startup.watch(opened.store, context)
        let gateway = Gateway(Startup.parts(configuration, context, database, sessions, guardian, store))
        let server = HTTPServer(
            loops: context.loops, address: configuration.address, limits: Startup.limits, onRefusal: gateway.refuse,
            tracing: context.traces?.serving(gateway.router.routes, trusting: configuration.trusted),
            onError: gateway.answer, handler: context.health.answeringFrontDoor(gateway.handle))
        let bus = PostgresBus(
            database: database, channels: ["martlet_session": { _ in guardian.wake() }],
            pause: { try await context.clock.sleep(seconds: Double($0)) })
        context.metrics.show(server, routes: gateway.router.routes)
        context.health.require("sessions") { guardian.problem }
        return Service(
            start: {
                if notify { bus.start() }
                guardian.start()
                Startup.begin(store, context)
                try await server.start(setting: "MARTLET_HTTP_ADDRESS", log)
            },
            stop: { grace in
                await server.drain(graceSeconds: grace)
                await guardian.stop()
                store.stop()
                bus.stop()
                await database.close()
            })
    }
}
