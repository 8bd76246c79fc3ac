import Core

/// Who is connected to this process, and what the database says of it. It decides what is written; it does no I/O.
struct PresenceLedger {
    struct Batch: Equatable {
        let online: [User.ID]
        let offline: [User.ID]
        fileprivate let epoch: Int
        var isEmpty: Bool { online.isEmpty && offline.isEmpty }
    }

    private(set) var connected: Set<User.ID> = []
    /// Users with a row.
    private var written: Set<User.ID> = []
    /// Users of whom it is not known whether they have a row: it is being written, or that failed.
    private var unsure: Set<User.ID> = []
    private var due: Set<User.ID> = []
    /// Which row of the process `written` is about: one that others deleted took its users with it.
    private var epoch = 0

    /// Whether the database has no users of this process: as it is, or once a batch has been written.
    func isEmpty(after batch: Batch? = nil) -> Bool {
        guard connected.isEmpty, batch?.online.isEmpty ?? true else { return false }
        return written.union(unsure).isSubset(of: batch?.offline ?? [])
    }

    var hasDue: Bool { !due.isEmpty }
    func isDue(_ user: User.ID) -> Bool { due.contains(user) }

    mutating func came(_ user: User.ID) {
        connected.insert(user)
        settle(user)
    }

    mutating func left(_ user: User.ID) {
        connected.remove(user)
        settle(user)
    }

    /// Whoever came and went meanwhile costs no write.
    private mutating func settle(_ user: User.ID) {
        if !unsure.contains(user), connected.contains(user) == written.contains(user) {
            due.remove(user)
        } else {
            due.insert(user)
        }
    }

    /// What is to be written. Say what became of it before the next one is taken.
    mutating func take(max: Int) -> Batch {
        let taken = due.prefix(max).sorted()
        due.subtract(taken)
        unsure.formUnion(taken)
        return Batch(
            online: taken.filter { connected.contains($0) }, offline: taken.filter { !connected.contains($0) },
            epoch: epoch)
    }

    mutating func done(_ batch: Batch) {
        guard batch.epoch == epoch else {
            // Written below the row that is there now, perhaps.
            unsure.formUnion(batch.online + batch.offline)
            return failed(batch)
        }
        written.formUnion(batch.online)
        written.subtract(batch.offline)
        for user in batch.online + batch.offline {
            unsure.remove(user)
            settle(user)
        }
    }

    /// It may have been written all the same.
    mutating func failed(_ batch: Batch) {
        for user in batch.online + batch.offline { settle(user) }
    }

    /// The process has no rows any more.
    mutating func forget() {
        written = []
        unsure = []
        epoch += 1
        due = connected
    }
}
