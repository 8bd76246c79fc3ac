import Foundation

/// schema.org employmentType, as far as search tells apart. The numbers are stored.
public enum EmploymentKind: Int16, Sendable, CaseIterable {
    case fullTime = 1
    case partTime, contract, consultancy, internship, longTerm, shortTerm, temporary, other

    /// Reads the words of clients and sources: "Full Time", "FULL_TIME", "Contractor", "Long Term", "Intern".
    public init(text: String) {
        let key = text.lowercased().filter { $0.isLetter }
        self =
            switch key {
            case "fulltime", "permanent", "regular", "permanentfulltime": .fullTime
            case "parttime": .partTime
            case "contract", "contractor", "freelance": .contract
            case "consultancy", "consultant", "consulting": .consultancy
            case "intern", "internship", "internships": .internship
            case "longterm": .longTerm
            case "shortterm": .shortTerm
            case "temporary", "temp", "term", "seasonal": .temporary
            default: .other
            }
    }
}

/// How far the work can be done elsewhere. The numbers are stored.
public enum Remoteness: Int16, Sendable, CaseIterable {
    case onSite = 0
    case hybrid, remote

    public init(text: String) {
        let key = text.lowercased().filter { $0.isLetter }
        self =
            switch key {
            case "remote", "fullyremote", "telework", "anywhere": .remote
            case "halfremote", "hybrid", "semiremote", "partlyremote": .hybrid
            default: .onSite
            }
    }
}

public struct Coordinate: Sendable, Equatable {
    public let latitude: Float
    public let longitude: Float

    public init(latitude: Float, longitude: Float) throws(AppError) {
        guard latitude.isFinite, longitude.isFinite, (-90...90).contains(latitude), (-180...180).contains(longitude)
        else { throw .invalid("lat", "lat must be within -90…90 and lng within -180…180") }
        self.latitude = latitude
        self.longitude = longitude
    }
}

/// Money for a period: minor units of an ISO 4217 currency.
public struct Salary: Sendable, Equatable {
    public enum Period: String, Sendable, CaseIterable {
        case hour, day, week, month, year

        /// How many of them a working year has, for comparing.
        public var perYear: Int64 {
            switch self {
            case .hour: 2080
            case .day: 260
            case .week: 52
            case .month: 12
            case .year: 1
            }
        }
    }

    public static let amountMax: Int64 = 1_000_000_000_000

    public let minimum: Int64?
    public let maximum: Int64?
    public let currency: String
    public let period: Period

    public init(minimum: Int64?, maximum: Int64?, currency: String, period: Period) throws(AppError) {
        for amount in [minimum, maximum] {
            guard let amount else { continue }
            guard (0...Self.amountMax).contains(amount) else {
                throw .invalid("salary", "salary must be between 0 and \(Self.amountMax) minor units")
            }
        }
        if let minimum, let maximum, minimum > maximum {
            throw .invalid("salary", "the lower end of salary is above the upper end")
        }
        guard currency.utf8.count == 3, currency.utf8.allSatisfy({ (0x41...0x5A).contains($0) }) else {
            throw .invalid("salary.currency", "salary.currency must be an ISO 4217 code such as EUR")
        }
        self.minimum = minimum
        self.maximum = maximum
        self.currency = currency
        self.period = period
    }

    /// The upper end a year in whole units, for the bands of search; currencies are not converted.
    public var yearlyMaximum: Int32 {
        let amount = (maximum ?? minimum ?? 0) / 100
        return Int32(clamping: amount.multipliedReportingOverflow(by: period.perYear).partialValue)
    }
}
