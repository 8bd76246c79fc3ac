import Core
import CoreHTTP
import EventLoop
import ServiceKit

/// Files that were just added, until it is known what they are: a worker looks at them, and Strapi's clients expect the
/// size of a picture in the answer to its upload.
struct UploadSettling: Sendable {
    /// Then the answer goes out as things are. A worker at rest takes a tenth of a second for a photo.
    static let secondsMax = 5.0
    /// Between two looks at the rows: twice as long each time, up to the second.
    static let pauseSecondsMin = 0.01
    static let pauseSecondsMax = 0.25

    static let stillPending = AppError(
        .unavailable, "The file is still being checked, and nothing was changed. Try again.", retryAfterSeconds: 5)

    let media: any MediaRepository
    let clock: any ServiceClock
    let log: Log

    /// Waits for all of them, and then puts them into their use. When one is rejected, or something else goes wrong, or
    /// the client has left, none of them is kept.
    /// - Parameters:
    ///   - drafts: what the files were added from, in the same order.
    ///   - use: is given the files in their order, those that could not be looked at in time as `pending`.
    /// - Throws: `invalid` for a file that was rejected.
    func settle(
        _ added: [Media], from drafts: [Media.Draft], on loop: EventLoop,
        _ use: ([Media]) async throws -> [Media]
    ) async throws -> [Media] {
        do {
            let files = try await wait(for: added)
            for (file, draft) in zip(files, drafts) where file.state == .rejected {
                throw Self.refusal(of: file, sentAs: draft.declaredType)
            }
            return try await use(files)
        } catch let error as AppError where error == .outcomeUnknown {
            // They may be in use by now.
            throw error
        } catch {
            // This task may have been cancelled, and a cancelled one gets no answer of the database.
            await Task(executorPreference: loop) { await discard(added) }.value
            throw error
        }
    }

    private func wait(for added: [Media]) async throws -> [Media] {
        let ids = added.map(\.id)
        var (waited, pause) = (0.0, Self.pauseSecondsMin)
        while true {
            let files = try await media.find(ids)
            guard files.count == ids.count else { throw AppError(.notFound, "file.notFound") }
            let isSettled = files.allSatisfy { $0.state != .pending } || files.contains { $0.state == .rejected }
            if isSettled || waited >= Self.secondsMax { return files }
            try await clock.sleep(seconds: pause)
            waited += pause
            pause = min(pause * 2, Self.pauseSecondsMax)
        }
    }

    private func discard(_ files: [Media]) async {
        do { try await media.discard(files.map(\.id)) } catch {
            // They stay in their owner's list, where they can be deleted.
            log.warning("could not remove files of a failed upload", ["error": .string("\(error)")])
        }
    }

    /// Reasons that the worker gives for a picture that cannot be read. One that is no file of any kind we take is such
    /// a picture when a picture was promised.
    static func refusal(of media: Media, sentAs type: String) -> AppError {
        let isUnreadable =
            switch media.rejection {
            case "notAnImage", "truncated": true
            case "unsupportedType": media.kind == .logo || media.kind == .profile || type.hasPrefix("image/")
            default: false
            }
        return .invalid(
            "files", isUnreadable ? "File is not a valid image" : media.rejectionMessage ?? "The file was rejected.")
    }
}
