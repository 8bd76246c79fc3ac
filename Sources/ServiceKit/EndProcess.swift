import Foundation

/// Ends the process: stdio's buffers are written, and what libraries do at the exit of a process is not done.
///
/// OpenSSL and others take themselves down there while threads of the process still end and give back what they have
/// in them. Seldom that frees something twice, and an end that had gone well is a crash (SIGABRT). Nothing is left to
/// do: what was acknowledged is in the database, and the log is written.
public func endProcess(_ status: Int32) -> Never {
    fflush(nil)
    _exit(status)
}
