import Core
import Foundation

enum BackupCommand: Command {
    static let syntax = CommandSyntax(
        "backup", "Saves database and object store together, or verifies what was saved.", operands: "DIR",
        count: 1...1,
        options: [.init("--verify", nil, "make none: read every byte of the one in DIR and compare")],
        notes: """
            DIR must not be there, be empty, or hold a backup that was broken off. Services go on meanwhile; only the
            deletion of files waits. What is saved is one moment of the database and every object that it names.
            It has everybody's data in it, unencrypted: only this user may read it, and so it should stay.
            Exits with 1 when objects were missing from the store; the backup is whole but for them.
            """)

    static func run(_ arguments: Arguments, _ context: Operator) async throws -> Int32 {
        let folder = BackupFolder(path: arguments.operands.first ?? "")
        let isWanted = !arguments.has("--verify")
        let began = context.now()
        let manifest =
            if isWanted {
                try await context.withStore { store, files in
                    try await context.withBackend { backend in
                        try await backend.ping()
                        let copy = ObjectCopy(store: store, folder: folder, files: files)
                        return try await BackupRun(
                            source: backend.backup, queue: backend.queue, copy: copy, context: context
                        ).perform()
                    }
                }
            } else {
                try await context.withFiles { files in
                    try await BackupVerification(folder: folder, files: files, terminal: context.terminal).perform()
                }
            }
        let seconds = context.now().timeIntervalSince(began)
        let what = isWanted ? "Saved to" : "All is as it was written in"
        tell(manifest, "\(what) \(folder.path)", seconds, context.terminal, asJSON: arguments.has("--json"))
        guard isWanted, manifest.missingCount > 0 else { return Operator.Status.success }
        for key in manifest.missing { context.terminal.warn("the store has no \(key), and a row names it") }
        let missing = noun(manifest.missingCount, "object was", "objects were")
        context.terminal.warn("\(manifest.missingCount) \(missing) missing from the store")
        return Operator.Status.failure
    }

    static func tell(
        _ manifest: BackupManifest, _ what: String, _ seconds: Double, _ terminal: Terminal, asJSON: Bool
    ) {
        guard !asJSON else { return terminal.line(manifest.json.text) }
        let (dump, objects) = (BackupRun.size(manifest.dumpBytes), BackupRun.size(manifest.objectBytes))
        terminal.line(
            "\(what): \(manifest.tables.count) tables with \(manifest.rows) \(noun(manifest.rows, "row")) (\(dump)), "
                + "\(manifest.objects) \(noun(manifest.objects, "object")) (\(objects)), "
                + "in \(Int(seconds.rounded())) s.")
    }
}

enum RestoreCommand: Command {
    static let syntax = CommandSyntax(
        "restore", "Brings a backup into an empty database and an empty store.", operands: "DIR", count: 1...1,
        options: [
            .init("--replace", nil, "drop what the database holds, and write into a store that holds objects"),
            MigrateCommand.migrationsOption,
        ],
        notes: """
            Verifies the whole backup first, then brings the objects and reads them again, then the database in one
            transaction, then counts its rows. Stop all services before. Broken off, it is begun again, with --replace
            for the objects that are there by then. martlet migrate afterwards brings an older backup up to date.
            """)

    static func run(_ arguments: Arguments, _ context: Operator) async throws -> Int32 {
        let folder = BackupFolder(path: arguments.operands.first ?? "")
        let began = context.now()
        let directory = try MigrateCommand.directory(arguments, context)
        return try await context.withStore { store, files in
            try await context.withBackend { backend in
                try await backend.ping()
                let known = try backend.migrationVersions(directory: directory)
                let manifest = try await RestoreRun(
                    target: backend.backup, queue: backend.queue,
                    copy: ObjectCopy(store: store, folder: folder, files: files),
                    context: context, known: known, database: backend.databaseName,
                    replaces: arguments.has("--replace")
                ).perform()
                let seconds = context.now().timeIntervalSince(began)
                BackupCommand.tell(
                    manifest, "Restored from \(folder.path)", seconds, context.terminal,
                    asJSON: arguments.has("--json"))
                if Set(manifest.migrations) != Set(known) {
                    context.terminal.warn("the backup is older than this program: martlet migrate brings it up to date")
                }
                return Operator.Status.success
            }
        }
    }
}
