/// Which statements a connection has prepared, under which names. No I/O.
///
/// A statement whose preparation has been sent but not answered counts only within its own sync group: should preparing
/// fail, the rest of that group is skipped by the server anyway, but a later group would run into a missing name.
struct StatementCache {
    /// Each holds memory in the server; a service has fewer statements than this.
    static let namesMax = 256

    enum Use: Equatable {
        case unnamed
        case named(String)
        /// Prepare under this name first, then execute by it.
        case prepare(String)
    }

    private struct Entry {
        let name: String
        var used: UInt64
        /// The group in which it is being prepared; nil when it has been answered.
        var pending: Int?
    }

    private var entries: [SQL.Key: Entry] = [:]
    private var clock: UInt64 = 0
    private var names = 0
    private let capacity: Int
    /// Evicted names that the server still holds.
    private var condemned: [String] = []

    init(capacity: Int = StatementCache.namesMax) { self.capacity = capacity }

    var count: Int { entries.count }
    var hasCondemned: Bool { !condemned.isEmpty }

    mutating func use(_ key: SQL.Key, group: Int) -> Use {
        clock += 1
        if let index = entries.index(forKey: key) {
            entries.values[index].used = clock
            let entry = entries.values[index]
            return entry.pending == nil || entry.pending == group ? .named(entry.name) : .unnamed
        }
        guard capacity > 0 else { return .unnamed }
        if entries.count >= capacity { evict() }
        names += 1
        let name = "m\(names)"
        entries[key] = Entry(name: name, used: clock, pending: group)
        return .prepare(name)
    }

    private mutating func evict() {
        guard let oldest = entries.min(by: { $0.value.used < $1.value.used }) else { return }
        condemned.append(oldest.value.name)
        entries[oldest.key] = nil
    }

    /// The server has prepared it.
    mutating func confirm(_ key: SQL.Key, name: String) {
        guard let index = entries.index(forKey: key), entries.values[index].name == name else { return }
        entries.values[index].pending = nil
    }

    /// The server has not prepared it.
    mutating func forget(_ key: SQL.Key, name: String) {
        if entries[key]?.name == name { entries[key] = nil }
    }

    /// The server's copy is of no use any more.
    mutating func condemn(_ key: SQL.Key) {
        guard let entry = entries.removeValue(forKey: key) else { return }
        condemned.append(entry.name)
    }

    mutating func takeCondemned() -> [String] {
        defer { condemned = [] }
        return condemned
    }

    /// The server has forgotten all (DISCARD ALL).
    mutating func reset() {
        entries = [:]
        condemned = []
    }
}
