import Core

extension WorkingStore {
    /// Runs work that needs the store. When it fails, and the store does not work at all, the work waits for as long as
    /// that lasts, and comes no nearer to the dead letters; when the store works, the failure is the work's own.
    /// - Throws: `WorkFailure.waiting`, or what `body` throws.
    func patiently<T>(_ body: () async throws -> T) async throws -> T {
        do { return try await body() } catch {
            switch error {
            case WorkFailure.permanent, WorkFailure.waiting, is AppError, is CancellationError: throw error
            default: break
            }
            do { try await probe() } catch let trouble {
                try Task.checkCancellation()
                throw WorkFailure.waiting("\(trouble)")
            }
            throw error
        }
    }
}
