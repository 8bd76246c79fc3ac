/// What the list language speaks of. Each kind has one rule of who sees what (`EntryRepository`).
public enum EntryKind: Sendable, Hashable, CaseIterable {
    case posting, company, application, user, media
}

/// A way from one entry to others. It shows what the viewer may see at its end, and to a filter the rest is not there
/// either.
public enum EntryRelation: Sendable, Hashable, CaseIterable {
    case postingCompany, postingApplications
    case companyLogo, companyPostings
    /// For members of the company only: nobody else is told who stands for it.
    case companyRepresentative
    /// Whoever sees an application sees its posting, closed or expired as it may be, its CV and its applicant.
    case applicationPosting, applicationApplicant, applicationCV
    case userProfile, userApplications
    /// The user's own, or the viewer's where both are in the same one.
    case userCompany

    /// What is at its end does not depend on who looks.
    var isSameForEveryone: Bool { self == .postingCompany || self == .companyLogo }

    public var from: EntryKind {
        switch self {
        case .postingCompany, .postingApplications: .posting
        case .companyLogo, .companyPostings, .companyRepresentative: .company
        case .applicationPosting, .applicationApplicant, .applicationCV: .application
        case .userProfile, .userApplications, .userCompany: .user
        }
    }

    public var to: EntryKind {
        switch self {
        case .postingCompany, .userCompany: .company
        case .postingApplications, .userApplications: .application
        case .companyPostings, .applicationPosting: .posting
        case .companyRepresentative, .applicationApplicant: .user
        case .companyLogo, .applicationCV, .userProfile: .media
        }
    }

    /// Leads to a list; the others to one entry or none.
    public var isMany: Bool {
        switch self {
        case .postingApplications, .companyPostings, .userApplications: true
        case .postingCompany, .companyLogo, .companyRepresentative, .applicationPosting, .applicationApplicant,
            .applicationCV, .userProfile, .userCompany:
            false
        }
    }
}
