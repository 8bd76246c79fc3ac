import Foundation

/// The processor's time that this takes on its thread. On a busy machine a clock would tell of the others, too.
public func processorTime(_ body: () throws -> Void) rethrows -> Duration {
    let begin = threadTime()
    try body()
    return threadTime() - begin
}

private func threadTime() -> Duration {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
}
