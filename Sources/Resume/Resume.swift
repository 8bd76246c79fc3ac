/// What a CV says of its person, each with where it says so. Suggestions for a form: never more right than what the
/// person typed.
public struct Resume: Sendable, Equatable, Codable {
    public static let emailsMax = 5
    public static let phonesMax = 5
    public static let linksMax = 20
    public static let skillsMax = 200
    public static let educationMax = 20
    public static let languagesMax = 20

    /// Somewhere in the text of the CV.
    public struct Place: Sendable, Equatable, Codable {
        /// From 1.
        public let page: Int
        /// In the UTF-8 of the whole text.
        public let offset: Int
        /// In bytes of UTF-8; 0 for what stands behind a word, as a link does.
        public let length: Int

        public init(page: Int, offset: Int, length: Int) {
            self.page = page
            self.offset = offset
            self.length = length
        }
    }

    public struct Finding: Sendable, Equatable, Codable {
        /// In UTF-8.
        public static let valueBytesMax = 200

        public let value: String
        public let place: Place
    }

    public struct Experience: Sendable, Equatable, Codable {
        public enum Basis: String, Sendable, Codable {
            /// "Ten years of experience."
            case stated
            /// The time that the stations of work cover together, until the day of reading.
            case dates
        }

        /// Whole years.
        public let years: Int
        public let basis: Basis
        public let place: Place
    }

    public struct Education: Sendable, Equatable, Codable {
        public enum Level: String, Sendable, Codable, CaseIterable {
            case school, vocational, bachelor, master, doctorate
        }

        public let level: Level
        /// The line that says so.
        public let value: String
        public let place: Place
    }

    public struct Language: Sendable, Equatable, Codable {
        public enum Level: String, Sendable, Codable, CaseIterable {
            case basic, intermediate, advanced, fluent, native
        }

        /// ISO 639-1.
        public let code: String
        /// The Common European Framework's A1 to C2 count as basic (A), intermediate (B1), advanced (B2), fluent (C).
        public let level: Level?
        public let place: Place
    }

    public internal(set) var name: Finding?
    public internal(set) var emails: [Finding] = []
    public internal(set) var phones: [Finding] = []
    public internal(set) var links: [Finding] = []
    /// By the names of our list, in the order of the text.
    public internal(set) var skills: [Finding] = []
    public internal(set) var experience: Experience?
    public internal(set) var education: [Education] = []
    public internal(set) var languages: [Language] = []

    init() {}

    /// An address behind a word of the CV.
    public struct Link: Sendable, Equatable {
        public let offset: Int
        public let target: String

        public init(offset: Int, target: String) {
            self.offset = offset
            self.target = target
        }
    }

    /// A month, to count until now.
    public struct Month: Sendable, Equatable, Comparable, Codable {
        /// Since the year 0.
        let count: Int

        /// - Parameter month: 1 to 12.
        public init(year: Int, month: Int) { count = year * 12 + month - 1 }

        public static func < (left: Month, right: Month) -> Bool { left.count < right.count }
    }

    /// Reads a CV. Takes time in proportion to the text, whatever it holds; does not fail.
    /// - Parameters:
    ///   - pageOffsets: where pages begin in the UTF-8 of the text, rising.
    ///   - links: where the document links to, beside what its text says.
    ///   - now: until when a station lasts that has not ended.
    public static func read(_ text: String, pageOffsets: [Int], links: [Link] = [], now: Month) -> Resume {
        let page = PageText(text, pageOffsets: pageOffsets)
        var resume = Resume()
        let contacts = ContactFinder(page).find(links: links)
        resume.emails = contacts.emails
        resume.phones = contacts.phones
        resume.links = contacts.links
        resume.skills = SkillFinder(page, passing: contacts.ranges).find()
        resume.name = NameFinder(page, emails: contacts.emails.map(\.value)).find()
        resume.experience = ExperienceFinder(page, now: now).find()
        resume.education = EducationFinder(page).find()
        resume.languages = LanguageFinder(page).find()
        return resume
    }
}
