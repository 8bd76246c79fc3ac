import Core

/// Judges by looks at all processes who is dead, and how this one stands. It does no I/O.
struct ProcessWatch {
    enum Own: Equatable {
        case here(ChatProcessState)
        /// Others took it for dead.
        case missing
        /// Another process has its name.
        case replaced
    }

    /// Looks that lie further apart say nothing together: this process stood still, or had no database.
    private static let looksApartMilliseconds: UInt64 = 30_000

    /// A listening connection may be on its way back for so long. Wake-ups make looks that are milliseconds apart.
    private static let suspectMilliseconds: UInt64 = 1_500

    /// Those who were dead at the last look, and since when.
    private var suspects: [Int32: UInt64] = [:]
    private var lookedAt: UInt64 = 0

    /// - Parameter now: the loop's milliseconds.
    mutating func judge(
        _ states: [ChatProcessState], own: ChatProcess, now: UInt64
    ) -> (own: Own, dead: [ChatProcessState]) {
        if now - lookedAt > Self.looksApartMilliseconds { suspects = [:] }
        lookedAt = now
        let lifeless = states.filter { !$0.isAlive && $0.run != own.run }
        let dead = lifeless.filter { suspects[$0.run].map { now - $0 >= Self.suspectMilliseconds } ?? false }
        let former = suspects
        suspects = [:]
        for state in lifeless where !dead.contains(state) { suspects[state.run] = former[state.run] ?? now }
        if let state = states.first(where: { $0.run == own.run }) { return (.here(state), dead) }
        return (states.contains { $0.name == own.name && $0.isAlive } ? .replaced : .missing, dead)
    }

    /// The database was away, and with it everybody's lock.
    mutating func forget() { suspects = [:] }
}
