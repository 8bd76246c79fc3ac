/// What an operator looks at when something may be wrong.
public protocol DatabaseHealth: Sendable {
    func facts() async throws -> DatabaseFacts
    /// What in the data is not as it should be, or waits for too long. Reads whole tables.
    func complaints() async throws -> [HealthComplaint]
}

/// A server, and what this role may do there.
public struct DatabaseFacts: Sendable, Equatable {
    /// As `server_version_num` says: 150006.
    public let version: Int
    public let isStandby: Bool
    /// Settings that are not `on`, though what was acknowledged may be lost without them.
    public let unsafeSettings: [String]
    public let encoding: String
    public let connectionsMax: Int
    public let connectionsUsed: Int
    /// Whether the role may make tables in the schema `public`: what migrations do.
    public let mayCreate: Bool

    public init(
        version: Int, isStandby: Bool, unsafeSettings: [String], encoding: String, connectionsMax: Int,
        connectionsUsed: Int, mayCreate: Bool
    ) {
        self.version = version
        self.isStandby = isStandby
        self.unsafeSettings = unsafeSettings
        self.encoding = encoding
        self.connectionsMax = connectionsMax
        self.connectionsUsed = connectionsUsed
        self.mayCreate = mayCreate
    }
}

public struct HealthComplaint: Sendable, Equatable {
    public enum Kind: String, Sendable, CaseIterable {
        case deadWork = "dead_work"
        case lateWork = "late_work"
        case lostLeases = "lost_leases"
        case roomNumbers = "room_numbers"
        case stuckUploads = "stuck_uploads"
    }

    public let kind: Kind
    /// Counted no further than a thousand.
    public let count: Int64
    /// A few ids of what it is about.
    public let examples: [Int64]

    public init(kind: Kind, count: Int64, examples: [Int64]) {
        self.kind = kind
        self.count = count
        self.examples = examples
    }
}
