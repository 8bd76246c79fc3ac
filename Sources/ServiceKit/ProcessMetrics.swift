import Dispatch
import Foundation

/// What the kernel knows of this process, under the names that Prometheus' own clients use.
enum ProcessMetrics {
    /// On a thread that may wait: with many sockets the list of descriptors takes a while.
    static func families() async -> [MetricFamily] {
        await withCheckedContinuation { continuation in
            DispatchQueue.global(qos: .utility).async { continuation.resume(returning: read()) }
        }
    }

    private static func read() -> [MetricFamily] {
        var all: [MetricFamily] = []
        func one(_ name: String, _ help: String, _ kind: MetricFamily.Kind, _ value: Double?) {
            guard let value else { return }
            var family = MetricFamily("process_" + name, help, kind)
            family.add(value)
            all.append(family)
        }
        let fields = stat()
        let ticks = Double(sysconf(Int32(_SC_CLK_TCK)))
        func field(_ number: Int) -> Double? { fields.count > number ? Double(fields[number]) : nil }
        // proc(5), counted from the state, which is the third field: utime, stime, starttime and rss.
        let cpu = field(11).flatMap { user in field(12).map { (user + $0) / ticks } }
        one("cpu_seconds_total", "Processor time, user and system.", .counter, cpu)
        let pages = field(21).map { $0 * Double(sysconf(Int32(_SC_PAGESIZE))) }
        one("resident_memory_bytes", "Memory that is in RAM.", .gauge, pages)
        let began = field(19).flatMap { since in bootedAt().map { $0 + since / ticks } }
        one("start_time_seconds", "When the process began, in seconds since 1970.", .gauge, began)
        let open = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
        one("open_fds", "Descriptors that are open.", .gauge, open.map(Double.init))
        var limit = rlimit()
        let isKnown = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
        one("max_fds", "Descriptors there may be.", .gauge, isKnown ? Double(limit.rlim_cur) : nil)
        return all
    }

    /// The fields behind the program's name, which may hold anything.
    private static func stat() -> [Substring] {
        guard let text = text("/proc/self/stat"), let end = text.lastIndex(of: ")") else { return [] }
        return text[text.index(after: end)...].split(separator: " ")
    }

    private static func bootedAt() -> Double? {
        let line = text("/proc/stat")?.split(separator: "\n").first { $0.hasPrefix("btime ") }
        return line.flatMap { Double($0.dropFirst("btime ".count)) }
    }

    private static func text(_ path: String) -> String? {
        guard let file = FileHandle(forReadingAtPath: path), let data = try? file.readToEnd() else { return nil }
        return String(decoding: data, as: UTF8.self)
    }
}
