import ChatApp

/// What a seed makes of a simulation: how much of everything, and how often things go wrong.
struct Plan {
    let instances: Int
    let loops: Int
    let users: Int
    let rooms: Int
    let sends: Int
    /// Wake-ups are sent and heard.
    let notifies: Bool
    /// How long things are made to happen; after that nothing goes wrong any more.
    let milliseconds: Int

    /// In percent of what they may happen to.
    let lostRequests: Int
    let lostAnswers: Int
    let lostWakes: Int
    let doubledWakes: Int
    /// The slowest statement, wake-up and packet.
    let databaseMilliseconds: Int
    let wakeMilliseconds: Int
    let networkMilliseconds: Int

    let cuts: Int
    let slowReaders: Int
    let listenerKills: Int
    let kills: Int
    let drains: Int
    let pauses: Int
    let jumps: Int
    let memberChanges: Int
    let newRooms: Int
    let sessionEnds: Int
    let outages: Int

    let wireBytes: Int
    let limits: ChatLimits

    /// Most runs have few kinds of faults: what goes wrong by one of them is not hidden by the others.
    init(_ world: World) {
        func often(_ percent: Int, _ count: Int) -> Int { world.chance(percent) ? 1 + world.below(count) : 0 }
        instances = 1 + world.below(3)
        loops = 1 + world.below(2)
        users = 2 + world.below(2)
        rooms = 1 + world.below(2)
        sends = 4 + world.below(8)
        notifies = world.chance(85)
        milliseconds = 300 + world.below(900)
        lostRequests = often(25, 10)
        lostAnswers = often(35, 20)
        lostWakes = world.chance(30) ? world.below(100) : 0
        doubledWakes = often(20, 40)
        databaseMilliseconds = [3, 20, 120][world.below(3)]
        wakeMilliseconds = [3, 40, 300][world.below(3)]
        networkMilliseconds = [3, 30, 100][world.below(3)]
        cuts = often(60, 4)
        slowReaders = often(25, 2)
        listenerKills = often(25, 2)
        kills = often(20, 1)
        drains = often(15, 1)
        pauses = often(20, 1)
        jumps = often(15, 1)
        memberChanges = often(35, 3)
        newRooms = often(15, 1)
        sessionEnds = often(12, 1)
        outages = often(12, 1)
        wireBytes = [300, 2_000, 100_000][world.below(3)]
        limits = Self.limits(world)
    }

    /// Small, so that few messages reach them.
    private static func limits(_ world: World) -> ChatLimits {
        var limits = ChatLimits()
        limits.pollMilliseconds = UInt64(250 + world.below(300))
        limits.idlePollMilliseconds = 1_000
        limits.marksMilliseconds = 20
        limits.sendsPerSecond = 10_000
        limits.sendsBurstMax = 10_000
        limits.framesPerSecond = 10_000
        limits.framesBurstMax = 10_000
        limits.retryAfterMillisecondsMax = 200
        limits.resumeMessagesMax = [3, 8, 1_000][world.below(3)]
        limits.feedMessagesMax = [2, 200][world.below(2)]
        limits.catchUpMessagesMax = [1, 3, 100][world.below(3)]
        limits.outboundBytesMax = [1_000, 4_000, 256 * 1_024][world.below(3)]
        limits.batchSendsMax = [1, 3, 512][world.below(3)]
        return limits
    }
}
