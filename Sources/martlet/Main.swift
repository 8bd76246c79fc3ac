import EventLoop
import Foundation
import OperatorApp
import Postgres
import ServiceKit

/// The operator's command. Builds the backend when a command needs the database, and exits with the command's status.
@main
enum Main {
    static func main() async {
        let command = Operator(environment: ProcessInfo.processInfo.environment) { database in
            var configuration = try PostgresConfiguration(
                url: database.url.value, directURL: database.directURL?.value, isPooled: database.isPooled)
            configuration.applicationName = "martlet-operator"
            // An import stores several batches at once, and each may take long.
            configuration.leasedMax = 4
            // Counting and saving a big table takes as long as it takes; a server that is gone is noticed by TCP.
            configuration.leasedMilliseconds = 0
            configuration.writeMilliseconds = 60_000
            configuration.longMilliseconds = 30_000
            return PostgresBackend(configuration, notify: database.notify)
        }
        endProcess(await command.run(Array(CommandLine.arguments.dropFirst())))
    }
}
