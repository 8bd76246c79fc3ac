import Foundation

/// Work on offer.
public struct JobPosting: Sendable, Equatable, Identifiable {
    public typealias ID = Identifier<JobPosting>

    /// What is stored. `expired` never is: a published posting is expired from the second its `validThrough` passes.
    public enum State: String, Sendable, CaseIterable {
        case draft, published, closed
    }

    /// What people see.
    public enum Standing: String, Sendable {
        case draft, published, closed, expired

        /// The contracts' word for it; lists are filtered and sorted by this word.
        public var word: String { self == .published ? "available" : rawValue }
    }

    /// A company's own list goes out as one answer: more of either is left out, the oldest first.
    public static let mineMax = 500
    public static let mineApplicationsMax = 5000
    /// A total above this is an estimate: counting a million rows for every page would cost more than the page.
    public static let countedMax: Int64 = 100_000

    public let id: ID
    public let company: Company
    public let title: String
    /// Safe HTML.
    public let description: String
    public let terms: Terms
    public let state: State
    public let publishedAt: Date?
    public let validThrough: Date?
    public let createdAt: Date
    public let updatedAt: Date

    public init(
        id: ID, company: Company, title: String, description: String, terms: Terms, state: State, publishedAt: Date?,
        validThrough: Date?, createdAt: Date, updatedAt: Date
    ) {
        self.id = id
        self.company = company
        self.title = title
        self.description = description
        self.terms = terms
        self.state = state
        self.publishedAt = publishedAt
        self.validThrough = validThrough
        self.createdAt = createdAt
        self.updatedAt = updatedAt
    }

    public func standing(at now: Date) -> Standing { Self.standing(state, validThrough: validThrough, at: now) }

    public static func standing(_ state: State, validThrough: Date?, at now: Date) -> Standing {
        switch state {
        case .draft: .draft
        case .closed: .closed
        case .published: if let validThrough, validThrough <= now { .expired } else { .published }
        }
    }

    /// Everything about the work but its name, text and state.
    public struct Terms: Sendable, Equatable {
        public static let type = TextField("type", max: 255)
        public static let environment = TextField("environment", max: 255)
        public static let place = TextField("place", max: 255)
        public static let skill = TextField("skills", min: 1, max: 80)
        public static let applyURL = TextField("apply_url", max: 2000)
        public static let skillsMax = 50

        /// The client's own words, kept as they came.
        public let employmentType: String
        public let environment: String
        public let place: String
        public let coordinate: Coordinate?
        public let salary: Salary?
        public let skills: [String]
        public let applyURL: String

        /// What search understands by `employmentType` and `environment`.
        public var kind: EmploymentKind { EmploymentKind(text: employmentType) }
        public var remote: Remoteness { Remoteness(text: environment) }

        public init(
            employmentType: String = "", environment: String = "", place: String = "", coordinate: Coordinate? = nil,
            salary: Salary? = nil, skills: [String] = [], applyURL: String = ""
        ) throws(AppError) {
            self.employmentType = try Self.type.accept(employmentType)
            self.environment = try Self.environment.accept(environment)
            self.place = try Self.place.accept(place)
            self.coordinate = coordinate
            self.salary = salary
            guard skills.count <= Self.skillsMax else {
                throw .invalid("skills", "skills are limited to \(Self.skillsMax).")
            }
            var accepted: [String] = []
            for skill in skills { accepted.append(try Self.skill.accept(skill)) }
            self.skills = accepted
            self.applyURL = try WebLink.accept(applyURL, field: Self.applyURL)
        }
    }

    /// A posting that may be stored. The description must come from the sanitiser.
    public struct Draft: Sendable, Equatable {
        public static let title = TextField("name", min: 1, max: 255)
        /// Of the safe HTML, as the CHECK counts.
        public static let description = TextField("description", max: 100_000, multiline: true)

        public let title: String
        public let description: String
        public let terms: Terms
        public let state: State
        public let validThrough: Date?

        public init(
            title: String, safeDescription: String, terms: Terms, state: State = .published, validThrough: Date? = nil
        ) throws(AppError) {
            self.title = try Self.title.accept(title)
            description = try Self.description.accept(safeDescription)
            self.terms = terms
            self.state = state
            self.validThrough = validThrough
        }
    }
}
