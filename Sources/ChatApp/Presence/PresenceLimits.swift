/// How presence is written and followed, and how processes are seen to live.
public struct PresenceLimits: Sendable {
    /// Who comes and goes in this time is written together, and wakes the others once.
    public var writeMilliseconds: UInt64 = 250
    /// Users of one write; more take several, and the row's lock is never held for long.
    public var writeUsersMax = 2_000
    /// The net below the wake-ups, where somebody watches a room.
    public var pollMilliseconds: UInt64 = 1_000
    /// Looks at all processes, where somebody is connected, and where nobody is. Who is dead at two is deleted.
    public var lookMilliseconds: UInt64 = 2_000
    public var idleLookMilliseconds: UInt64 = 10_000
    /// What a process without a listening connection has to live, renewed at each look while somebody is connected.
    public var leaseSeconds = 5
    /// From the start until the listening connection should be there.
    public var startLeaseSeconds = 15
    /// Without a listening connection, while nobody is connected: nobody's presence hangs on it, and writing it seldom
    /// keeps the disk quiet.
    public var idleLeaseSeconds = 3_600
    /// Members of one room whose presence is told. In a room of thousands it would be thousands of frames for each of
    /// thousands.
    public var membersMax = 1_000
    /// Users of one look-up, and of one answer to those who begin to watch, in rooms.
    public var lookUpUsersMax = 1_000
    public var joinsMax = 256
    /// Change rows are pruned after an hour. Whoever has not looked for half of that looks at everybody.
    public var changesKeptMilliseconds: UInt64 = 1_800_000

    public init() {}
}
