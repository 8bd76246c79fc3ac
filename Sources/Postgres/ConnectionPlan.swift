import Foundation

/// What a connection is used for. Each has connections of its own.
enum LaneKind: String, Sendable {
    case short, long, write, leased, listen
}

/// One address of a server.
struct Target: Sendable, Equatable {
    /// A name, a numeric address, or a socket's folder.
    let host: String
    /// Numeric; empty where `host` needs no look-up.
    let address: String
    /// Empty for the usual one.
    let port: String
}

/// libpq's parameters for each lane, with host names looked up.
struct ConnectionPlan: Sendable {
    private let configuration: PostgresConfiguration
    private let base: [String: String]

    /// More addresses than this of one host are not tried.
    static let addressesMax = 8

    init(_ configuration: PostgresConfiguration) {
        self.configuration = configuration
        var base = configuration.parameters
        base["client_encoding"] = "UTF8"
        // A dead peer is noticed within about 25 s even where nothing is being sent.
        base["keepalives_idle"] = base["keepalives_idle"] ?? "10"
        base["keepalives_interval"] = base["keepalives_interval"] ?? "5"
        base["keepalives_count"] = base["keepalives_count"] ?? "3"
        base["tcp_user_timeout"] = base["tcp_user_timeout"] ?? "20000"
        // libpq would look for Kerberos tickets first, which may block.
        base["gssencmode"] = base["gssencmode"] ?? "disable"
        // A standby takes neither writes nor LISTEN, so it is not what we want, whatever its place in the list.
        base["target_session_attrs"] = base["target_session_attrs"] ?? "primary"
        self.base = base
    }

    /// Whether `resolved()` has to ask the resolver, which blocks.
    var needsResolving: Bool {
        guard base["hostaddr"] == nil else { return false }
        return hosts.contains { !$0.isEmpty && !Self.isSocket($0) && !Self.isNumeric($0) }
    }

    private var hosts: [String] {
        (base["host"] ?? "").split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    }

    private static func isSocket(_ host: String) -> Bool { host.hasPrefix("/") || host.hasPrefix("@") }

    private static func isNumeric(_ host: String) -> Bool {
        var four = in_addr()
        var six = in6_addr()
        return inet_pton(AF_INET, host, &four) == 1 || inet_pton(AF_INET6, host, &six) == 1
    }

    /// Every server of the list with its addresses, in order; names stay beside them for TLS. Blocks.
    ///
    /// A name that is not known is left out while there are others: that of a machine which is gone may be gone too.
    /// - Throws: `PostgresConfigurationError` when no name is known.
    func resolved() throws -> [Target] {
        let ports = list("port")
        if base["hostaddr"] != nil || !needsResolving { return targets(ports) }
        var found: [Target] = []
        var failure: (any Error)?
        for (index, host) in hosts.enumerated() {
            let port = ports.count == 1 ? ports[0] : (index < ports.count ? ports[index] : "")
            do {
                let addresses = host.isEmpty || Self.isSocket(host) ? [""] : try Self.addresses(of: host)
                found += addresses.map { Target(host: host, address: $0, port: port) }
            } catch {
                failure = error
            }
        }
        if found.isEmpty, let failure { throw failure }
        return found
    }

    /// As they were given, without a look-up.
    var servers: [Target] { targets(list("port")) }

    private func list(_ keyword: String) -> [String] {
        (base[keyword] ?? "").split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    }

    private func targets(_ ports: [String]) -> [Target] {
        let addresses = base["hostaddr"] == nil ? [] : list("hostaddr")
        let count = max(hosts.count, addresses.count)
        return (0..<count).map { index in
            Target(
                host: index < hosts.count ? hosts[index] : "",
                address: index < addresses.count ? addresses[index] : "",
                port: ports.count == 1 ? ports[0] : (index < ports.count ? ports[index] : ""))
        }
    }

    private static func addresses(of host: String) throws -> [String] {
        if isNumeric(host) { return [host] }
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, nil, &hints, &list)
        guard code == 0 else { throw PostgresConfigurationError("the host's name is not known") }
        defer { freeaddrinfo(list) }
        var found: [String] = []
        var entry = list
        while let info = entry?.pointee, found.count < addressesMax {
            var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
            if getnameinfo(info.ai_addr, info.ai_addrlen, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST) == 0 {
                let name = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
                if !found.contains(name) { found.append(name) }
            }
            entry = info.ai_next
        }
        return found
    }

    /// What connecting takes, with what a lane asks of its sessions.
    /// - Parameter targets: in the order in which they are to be tried.
    func parameters(_ targets: [Target], for lane: LaneKind) -> [(keyword: String, value: String)] {
        var parameters = base
        if base["host"] != nil || base["hostaddr"] != nil {
            parameters["host"] = targets.map(\.host).joined(separator: ",")
            let isAddressed = targets.contains { !$0.address.isEmpty }
            parameters["hostaddr"] = isAddressed ? targets.map(\.address).joined(separator: ",") : nil
            if base["port"] != nil { parameters["port"] = targets.map(\.port).joined(separator: ",") }
        }
        // Our own read-only lanes are not what "read-write" means to pass by.
        if !configuration.isPooled, lane == .short || lane == .long, base["target_session_attrs"] == "read-write" {
            parameters["target_session_attrs"] = "primary"
        }
        parameters["application_name"] = "\(configuration.applicationName)/\(lane.rawValue)"
        if !configuration.isPooled {
            let own = settings(for: lane).map { "-c \($0.name)=\(Self.escape($0.value))" }
            // What the URL says comes last, and so holds.
            parameters["options"] = (own + [parameters["options"] ?? ""]).joined(separator: " ")
        }
        return parameters.map { (keyword: $0.key, value: $0.value) }
    }

    /// In `options` a space separates; a backslash before it keeps it (PostgreSQL manual, 34.1.2).
    private static func escape(_ value: String) -> String {
        value.replacing("\\", with: "\\\\").replacing(" ", with: "\\ ")
    }

    private func settings(for lane: LaneKind) -> [(name: String, value: String)] {
        var settings = [
            (name: "client_min_messages", value: "warning"),
            (name: "TimeZone", value: "UTC"),
            (name: "DateStyle", value: "ISO"),
            (name: "idle_in_transaction_session_timeout", value: "\(configuration.idleInTransactionMilliseconds)"),
            (name: "lock_timeout", value: "\(configuration.lockMilliseconds)"),
            (name: "statement_timeout", value: "\(configuration.statementMilliseconds(lane))"),
        ]
        if lane == .short || lane == .long {
            settings.append((name: "default_transaction_read_only", value: "on"))
        }
        if lane == .short || lane == .write { settings += Self.plannedOnce + Self.byKey }
        if lane == .listen {
            // The server's side: the lock of a process whose machine is gone is let go within about 10 s, not after the
            // system's two hours.
            settings.append((name: "tcp_keepalives_idle", value: "4"))
            settings.append((name: "tcp_keepalives_interval", value: "2"))
            settings.append((name: "tcp_keepalives_count", value: "3"))
        }
        return settings
    }

    /// What goes by key has the same plan whatever is bound. A short statement that takes arrays may cost as much to
    /// plan as to do, and the server, which judges by their length, would plan it anew each time. None is worth
    /// compiling.
    private static let plannedOnce = [
        (name: "plan_cache_mode", value: "force_generic_plan"), (name: "jit", value: "off"),
    ]

    /// What is reached by key is reached by an index, however small the table. Of reads that is a quarter of the cost:
    /// a plan made once would scan and hash a hundred companies for the one of a posting. Of writes it is the order of
    /// locks: without scans, hashes and bitmaps rows are locked in the order of the keys that lead to them, and two
    /// that write the same rows do not wait for each other in a circle. And a claim reads the beginning of the queue,
    /// where a planner that has not heard of a backlog yet would sort all of it.
    private static let byKey = [
        (name: "enable_seqscan", value: "off"), (name: "enable_hashjoin", value: "off"),
        (name: "enable_bitmapscan", value: "off"),
    ]
}

extension PostgresConfiguration {
    func statementMilliseconds(_ lane: LaneKind) -> Int {
        switch lane {
        case .short: shortMilliseconds
        case .long: longMilliseconds
        case .write: writeMilliseconds
        case .leased: leasedMilliseconds
        case .listen: 0
        }
    }
}
