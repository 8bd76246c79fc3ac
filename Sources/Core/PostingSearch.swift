import Foundation

/// A search as people ask it, and as an alert saves it.
public struct PostingSearch: Sendable, Equatable {
    public static let text = TextField("q", max: 400)
    public static let pageSizeMax = 100
    public static let radiusKmMax: Float = 500

    public struct Place: Sendable, Equatable {
        public let center: Coordinate
        public let radiusKm: Float

        public init(center: Coordinate, radiusKm: Float) throws(AppError) {
            guard radiusKm.isFinite, radiusKm > 0, radiusKm <= PostingSearch.radiusKmMax else {
                throw .invalid("radius", "radius must be above 0 and at most \(Int(PostingSearch.radiusKmMax)) km")
            }
            self.center = center
            self.radiusKm = radiusKm
        }
    }

    /// Words; `"a phrase"`, `-not`, `a OR b`. Empty: everything that passes the filters.
    public let q: String
    public let kind: EmploymentKind?
    public let remote: Remoteness?
    /// Whole units a year.
    public let salaryAtLeast: Int32?
    public let companyID: Company.ID?
    /// A name to find near: resolved by the places that postings have. Either this or `place`.
    public let placeName: String
    public let place: Place?

    public init(
        q: String = "", kind: EmploymentKind? = nil, remote: Remoteness? = nil, salaryAtLeast: Int32? = nil,
        companyID: Company.ID? = nil, placeName: String = "", place: Place? = nil
    ) throws(AppError) {
        self.q = try Self.text.accept(q)
        self.kind = kind
        self.remote = remote
        if let salaryAtLeast, !(0...190_000).contains(salaryAtLeast) {
            throw .invalid("salary", "salary must be between 0 and 190000 a year")
        }
        self.salaryAtLeast = salaryAtLeast
        self.companyID = companyID
        self.placeName = try TextField("place", max: 100).accept(placeName)
        if !self.placeName.isEmpty, place != nil {
            throw .invalid("place", "give either place or lat, lng and radius, not both")
        }
        self.place = place
    }

    /// Where the next page begins. Opaque to clients.
    public struct Cursor: Sendable, Equatable {
        public let fromDay: Int32
        public let toDay: Int32
        public let score: Float
        public let id: JobPosting.ID

        public init(fromDay: Int32, toDay: Int32, score: Float, id: JobPosting.ID) {
            self.fromDay = fromDay
            self.toDay = toDay
            self.score = score
            self.id = id
        }
    }

    public struct Page: Sendable {
        public let postings: [JobPosting]
        public let next: Cursor?

        public init(postings: [JobPosting], next: Cursor?) {
            self.postings = postings
            self.next = next
        }
    }

    public struct Facet: Sendable, Equatable {
        public let name: String
        public let value: Int32
        public let count: Int64
        /// Counted, not estimated from a sample.
        public let exact: Bool

        public init(name: String, value: Int32, count: Int64, exact: Bool) {
            self.name = name
            self.value = value
            self.count = count
            self.exact = exact
        }
    }
}
