import Cseccomp
import Foundation

/// What a child may still do when it opens a stranger's file: read and write within its folders, compute, and answer.
///
/// In this order: limits on memory, time, files; no privileges by exec, no core, no reading of our memory by others;
/// Landlock, so that nothing but the system's libraries and data (read) and the roots (read and write) can be opened:
/// not the worker's environment in /proc, not its secrets; then, when all libraries are loaded, seccomp by an
/// allow-list. A call that is not on it fails with EPERM: a library that tries something odd sees an error.
enum Sandbox {
    /// Memory of its own. With the libraries' pages, about 50 MiB, the child stays under 256 MiB whatever a file does
    /// to it; `MediaLimits.decodeBytesMax` sees to it that most files that would not fit hear why.
    static let memoryBytesMax: UInt64 = 205 << 20
    /// What libvips asks for at least.
    private static let threadStackBytes = 2 << 20
    /// Mappings of every kind: libraries and input files, and what threads reserve and do not use.
    static let addressSpaceBytesMax: UInt64 = 1 << 30
    /// For all files of one child together. The parent's deadline comes long before; this ends a child left alone.
    static let cpuSecondsMax: UInt64 = 300
    static let outputFileBytesMax: UInt64 = 256 << 20
    static let descriptorsMax: UInt64 = 64

    /// Read by the libraries: codecs, fonts and colour data, libmagic's database, character sets, the dynamic linker's.
    private static let systemFolders = ["/usr", "/lib", "/lib64", "/etc", "/opt"]

    /// Everything but seccomp. To be called before any second thread exists: Landlock binds the calling thread and
    /// those it makes.
    /// - Returns: Whether the kernel has Landlock.
    static func enter(roots: [String]) throws(MediaToolsError) -> Bool {
        try limit(martlet_limit_memory, memoryBytesMax)
        try limit(martlet_limit_address_space, addressSpaceBytesMax)
        try limit(martlet_limit_cpu, cpuSecondsMax)
        try limit(martlet_limit_file, outputFileBytesMax)
        try limit(martlet_limit_files, descriptorsMax)
        try limit(martlet_limit_core, 0)
        // Threads count with all they may use, and eight megabytes each are the default.
        try check(martlet_thread_stack(threadStackBytes), "stack size")
        // A file over its limit is to be an error of write, not our end.
        signal(SIGXFSZ, SIG_IGN)
        try check(martlet_renounce(), "prctl")

        let ruleset = martlet_landlock_new()
        guard ruleset >= 0 else { return false }
        for folder in systemFolders where access(folder, R_OK) == 0 {
            try check(martlet_landlock_allow(ruleset, folder, 0), "landlock \(folder)")
        }
        try check(martlet_landlock_allow(ruleset, Bundle.main.bundlePath, 0), "landlock program")
        for root in roots { try check(martlet_landlock_allow(ruleset, root, 1), "landlock \(root)") }
        try check(martlet_landlock_enter(ruleset), "landlock")
        return true
    }

    /// No way back: from here on only the calls of the list.
    static func lock() throws(MediaToolsError) {
        guard let filter = martlet_seccomp_new() else { throw .sandbox("seccomp", ENOMEM) }
        defer { seccomp_release(filter) }
        for name in allowedCalls { try check(martlet_seccomp_allow(filter, name), name) }
        try check(martlet_seccomp_allow_threads(filter), "clone")
        try check(martlet_seccomp_allow_own_signals(filter), "tgkill")
        try check(martlet_seccomp_allow_thread_names(filter), "prctl")
        try check(martlet_seccomp_allow_reading_limits(filter), "prlimit64")
        try check(-seccomp_load(filter), "seccomp_load")
    }

    /// Tries what must fail. A sandbox is believed when it has held, not when it was asked for.
    static func probe(readsScans: Bool = false) -> MediaHello {
        let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        if socket >= 0 { close(socket) }
        var pid: pid_t = 0
        // A program that exists and does nothing, should it start after all.
        let arguments: [UnsafeMutablePointer<CChar>?] = [nil]
        let spawned = posix_spawn(&pid, "/bin/true", nil, nil, arguments, arguments)
        if spawned == 0 { waitpid(pid, nil, 0) }
        // Everybody may read it, but for the sandbox.
        let file = open("/proc/version", O_RDONLY | O_CLOEXEC)
        if file >= 0 { close(file) }
        return MediaHello(
            networkDenied: socket < 0, processesDenied: spawned != 0, filesDenied: file < 0, readsScans: readsScans)
    }

    private static func limit(_ resource: Int, _ value: UInt64) throws(MediaToolsError) {
        try check(martlet_limit(Int32(resource), value), "setrlimit \(resource)")
    }

    private static func check(_ code: Int32, _ what: String) throws(MediaToolsError) {
        guard code == 0 else { throw .sandbox(what, code) }
    }

    /// What the C library, the Swift runtime, GLib, libvips and its codecs, poppler and libmagic use to open, read,
    /// write and remove files, to have memory and threads, to know the time and themselves. Nothing here reaches
    /// another process, the network, or the settings of the machine.
    private static let allowedCalls = [
        "read", "readv", "pread64", "preadv", "write", "writev", "pwrite64", "pwritev", "lseek", "open", "openat",
        "close",
        "close_range", "stat", "fstat", "lstat", "newfstatat", "statx", "statfs", "fstatfs", "access", "faccessat",
        "faccessat2", "readlink", "readlinkat", "getdents64", "getcwd", "fcntl", "flock", "ftruncate", "fallocate",
        "fadvise64", "fsync", "fdatasync", "unlink", "unlinkat", "umask", "dup", "dup2", "dup3", "pipe2", "eventfd2",
        "poll",
        "ppoll", "select", "pselect6", "ioctl", "copy_file_range", "sendfile",
        "mmap", "munmap", "mprotect", "mremap", "madvise", "msync", "mincore", "brk", "membarrier",
        "futex", "futex_waitv", "set_robust_list", "get_robust_list", "rseq", "set_tid_address", "sched_yield",
        "sched_getaffinity", "sched_getparam", "sched_getscheduler", "sched_get_priority_max", "sched_get_priority_min",
        "exit", "exit_group", "restart_syscall",
        "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "sigaltstack",
        "clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday", "time", "times", "getrusage",
        "getpid", "getppid", "gettid", "getuid", "geteuid", "getgid", "getegid", "getresuid", "getresgid", "getrlimit",
        "uname", "sysinfo", "getrandom", "getcpu", "arch_prctl",
    ]
}
