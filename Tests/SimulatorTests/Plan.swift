import ChatApp

/// What a seed makes of a simulation: how much of everything, and how often things go wrong. By itself: one instance,
/// where nothing does.
struct Plan {
    var instances = 1
    var loops = 2
    var users = 2
    var rooms = 1
    var sends = 0
    /// Wake-ups are sent and heard.
    var notifies = true
    /// How long things are made to happen; after that nothing goes wrong any more.
    var milliseconds = 0

    /// In percent of what they may happen to.
    var lostRequests = 0
    var lostAnswers = 0
    var lostWakes = 0
    var doubledWakes = 0
    /// Lists of rooms that take long, and meet a message that is written meanwhile.
    var lateLists = 0
    /// The slowest statement, wake-up and packet.
    var databaseMilliseconds = 3
    var wakeMilliseconds = 3
    var networkMilliseconds = 3

    var cuts = 0
    var leavers = 0
    var slowReaders = 0
    var listenerKills = 0
    var kills = 0
    var drains = 0
    var pauses = 0
    var jumps = 0
    var memberChanges = 0
    var newRooms = 0
    var sessionEnds = 0
    var outages = 0

    /// Clients that want to know who is online, in percent.
    var watchers = 0
    var wireBytes = 100_000
    var limits = ChatLimits()

    init() {}

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
        lateLists = often(25, 60)
        databaseMilliseconds = [3, 20, 120][world.below(3)]
        wakeMilliseconds = [3, 40, 300][world.below(3)]
        networkMilliseconds = [3, 30, 100][world.below(3)]
        cuts = often(60, 4)
        leavers = often(25, 2)
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
        watchers = world.chance(40) ? 60 : 0
        wireBytes = [300, 2_000, 100_000][world.below(3)]
        limits = Self.limits(world)
    }

    /// Small, so that few messages reach them.
    private static func limits(_ world: World) -> ChatLimits {
        var limits = ChatLimits()
        // Quick ones look while lists are being read: what a look has passed over, nothing names again.
        limits.pollMilliseconds = UInt64(world.chance(20) ? 10 + world.below(40) : 250 + world.below(300))
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
