import Core
import Foundation
import Testing

@testable import GatewayApp

@Suite("Strapi's list language, read")
struct RestQueryTests {
    typealias Posting = EntryField.Posting

    private func read(_ query: String, _ kind: EntryKind = .posting) throws -> EntryQuery {
        try RestQuery(list: query, of: kind).entries
    }

    private func compare(_ field: EntryField, _ comparison: EntryComparison) throws -> EntryFilter {
        try EntryFilter.compare(field, comparison)
    }

    private func title(_ comparison: EntryComparison) throws -> EntryFilter {
        try compare(.posting(.title), comparison)
    }

    @Test("each operator is what it says")
    func operators() throws {
        let x = EntryValue.text("x")
        let expected: [(String, EntryFilter)] = [
            ("$eq", try title(.equals(x))), ("$eqi", try title(.equalsIgnoringCase("x"))),
            ("$ne", .not(try title(.equals(x)))), ("$nei", .not(try title(.equalsIgnoringCase("x")))),
            ("$lt", try title(.less(x))), ("$lte", try title(.lessOrEqual(x))), ("$gt", try title(.greater(x))),
            ("$gte", try title(.greaterOrEqual(x))), ("$in", try title(.isIn([x]))),
            ("$notIn", .not(try title(.isIn([x])))), ("$contains", try title(.contains("x", ignoringCase: false))),
            ("$notContains", .not(try title(.contains("x", ignoringCase: false)))),
            ("$containsi", try title(.contains("x", ignoringCase: true))),
            ("$notContainsi", .not(try title(.contains("x", ignoringCase: true)))),
            ("$startsWith", try title(.startsWith("x", ignoringCase: false))),
            ("$startsWithi", try title(.startsWith("x", ignoringCase: true))),
            ("$endsWith", try title(.endsWith("x", ignoringCase: false))),
            ("$endsWithi", try title(.endsWith("x", ignoringCase: true))), ("$not", .not(try title(.equals(x)))),
        ]
        for (name, filter) in expected {
            #expect(try read("filters[name][\(name)]=x").filter == filter, "\(name)")
        }
        #expect(try read("filters[name][$null]=true").filter == title(.isNull))
        #expect(try read("filters[name][$null]=false").filter == .not(title(.isNull)))
        #expect(try read("filters[name][$notNull]=1").filter == .not(title(.isNull)))
        #expect(try read("filters[name][$notNull]=f").filter == title(.isNull))
        let between = try read("filters[name][$between][0]=x&filters[name][$between][1]=y").filter
        #expect(try between == title(.between(x, .text("y"))))
    }

    @Test("a value alone is $eq, a list $in, null is null; a list with an operator of one value means any of them")
    func implicit() throws {
        let (x, y) = (EntryValue.text("x"), EntryValue.text("y"))
        #expect(try read("filters[name]=x").filter == title(.equals(x)))
        #expect(try read("filters[name]").filter == title(.isNull))
        #expect(try read("filters[name][0]=x&filters[name][1]=y").filter == title(.isIn([x, y])))
        #expect(try read("filters[name]=x&filters[name]=y").filter == title(.isIn([x, y])))
        #expect(
            try read("filters[name][$eq]=x&filters[name][$eq]=y").filter
                == .any([title(.equals(x)), title(.equals(y))])
        )
        #expect(try read("filters[name][$contains]=").filter == title(.contains("", ignoringCase: false)))
        #expect(try read("filters").filter == nil)
    }

    @Test("conditions of one object are joined by and; $and, $or and $not join as they say")
    func joining() throws {
        let (x, y) = (try title(.equals(.text("x"))), try compare(.posting(.place), .equals(.text("y"))))
        #expect(try read("filters[name]=x&filters[place]=y").filter == .all([x, y]))
        #expect(try read("filters[$or][0][name]=x&filters[$or][1][place][$eq]=y").filter == .any([x, y]))
        #expect(try read("filters[$and][0][name]=x&filters[$and][1][place]=y").filter == .all([x, y]))
        #expect(try read("filters[0][name]=x&filters[1][place]=y").filter == .all([x, y]))
        #expect(try read("filters[$not][name]=x").filter == .not(x))
        #expect(try read("filters[$or][name]=x").filter == x)
        #expect(
            try read("filters[$not][$or][0][name]=x&filters[$not][$or][1][$and][0][place]=y").filter
                == .not(.any([x, y])))
        let both = try read("filters[name][$eq]=x&filters[name][$ne]=y").filter
        #expect(try both == .all([x, .not(title(.equals(.text("y"))))]))
    }

    @Test("relations nest, are null or not, and a value for one is its id")
    func relations() throws {
        let name = try compare(.company(.name), .contains("swift", ignoringCase: true))
        #expect(
            try read("filters[company][name][$containsi]=swift").filter == .related(.postingCompany, name))
        let id = try compare(.company(.id), .equals(.integer(7)))
        for query in [
            "filters[company]=7", "filters[company][$eq]=7", "filters[company][id]=7", "filters[company][id][$eq]=7",
        ] {
            #expect(try read(query).filter == .related(.postingCompany, id), "\(query)")
        }
        #expect(
            try read("filters[company][$in][]=7").filter
                == .related(.postingCompany, compare(.company(.id), .isIn([.integer(7)]))))
        #expect(try read("filters[logo][$null]=true", .company).filter == .hasRelated(.companyLogo, false))
        #expect(try read("filters[logo][$notNull]=true", .company).filter == .hasRelated(.companyLogo, true))
        #expect(try read("filters[logo]", .company).filter == .hasRelated(.companyLogo, false))
        let nested = try read("filters[job][company][logo][mime]=image/png", .application).filter
        let png = try compare(.media(.mime), .equals(.text("image/png")))
        #expect(
            nested == .related(.applicationPosting, .related(.postingCompany, .related(.companyLogo, png))))
    }

    @Test(
        "values have the type of their field",
        arguments: [
            ("filters[id]=12", EntryField.posting(.id), EntryValue.integer(12)),
            ("filters[lat]=-1.5e1", .posting(.latitude), .number(-15)),
            ("filters[remote]=t", .posting(.isRemote), .boolean(true)),
            ("filters[remote]=0", .posting(.isRemote), .boolean(false)),
            (
                "filters[createdAt]=2027-01-31T12:00:00.000Z", .posting(.createdAt),
                .date(Date(timeIntervalSince1970: 1_801_396_800))
            ),
            (
                "filters[createdAt]=2027-01-31T13:00:00+01:00", .posting(.createdAt),
                .date(Date(timeIntervalSince1970: 1_801_396_800))
            ),
            ("filters[createdAt]=2027-01-31", .posting(.createdAt), .date(Date(timeIntervalSince1970: 1_801_353_600))),
            (
                "filters[createdAt]=1801396800000", .posting(.createdAt),
                .date(Date(timeIntervalSince1970: 1_801_396_800))
            ),
            ("filters[status]=available", .posting(.standing), .text("available")),
        ])
    func types(query: String, field: EntryField, value: EntryValue) throws {
        #expect(try read(query).filter == compare(field, .equals(value)))
    }

    @Test("sort in all its spellings")
    func sorts() throws {
        let name = try EntrySort(.posting(.title))
        let nameDown = try EntrySort(.posting(.title), descending: true)
        let id = try EntrySort(.posting(.id))
        let company = try EntrySort(path: [.postingCompany], .company(.name), descending: true)
        for (query, sorts) in [
            ("sort=name", [name]), ("sort=name:asc", [name]), ("sort=name:DESC", [nameDown]),
            ("sort=name:desc,id", [nameDown, id]), ("sort[0]=name:desc&sort[1]=id:asc", [nameDown, id]),
            ("sort[]=name&sort[]=id", [name, id]), ("sort=name&sort=id", [name, id]),
            ("sort= name : desc , id,", [nameDown, id]),
            ("sort[name]=desc", [nameDown]), ("sort[name]=desc&sort[id]=asc", [nameDown, id]),
            ("sort[0][name]=desc&sort[1]=id", [nameDown, id]), ("sort=company.name:desc", [company]),
            ("sort[company][name]=desc", [company]), ("sort[0][company][name]=desc", [company]), ("sort", []),
            ("sort=", []),
        ] as [(String, [EntrySort])] {
            #expect(try read(query).sort == sorts, "\(query)")
        }
    }

    @Test("fields in all their spellings")
    func fields() throws {
        let both: Set<EntryField> = [.posting(.title), .posting(.employmentType)]
        for query in [
            "fields=name,type", "fields=name, type", "fields[0]=name&fields[1]=type", "fields[]=name&fields[]=type",
            "fields=name&fields=type", "fields[0]=name,type",
        ] {
            #expect(try read(query).fields == both, "\(query)")
        }
        for query in ["", "fields=*", "fields[0]=*"] { #expect(try read(query).fields == nil, "\(query)") }
        #expect(try read("fields=id").fields == [.posting(.id)])
    }

    @Test("populate in all its spellings")
    func populates() throws {
        let company = try EntryQuery(.company, limit: 0)
        let logo = try EntryQuery(.media, limit: 0)
        let withLogo = try EntryQuery(.company, limit: 0, populate: [.companyLogo: logo])
        let applications = try EntryQuery(.application, limit: 0)
        for (query, populate) in [
            ("populate=company", [.postingCompany: company]), ("populate[0]=company", [.postingCompany: company]),
            ("populate[company]=true", [.postingCompany: company]), ("populate[company]=*", [.postingCompany: company]),
            ("populate[company]=1", [.postingCompany: company]), ("populate[company]=false", [:]),
            ("populate[company]", [:]),
            ("populate=", [:]), ("populate", [:]), ("populate=true", [:]),
            ("populate=*", [.postingCompany: company, .postingApplications: applications]),
            ("populate=company,applications", [.postingCompany: company, .postingApplications: applications]),
            ("populate=company&populate=applications", [.postingCompany: company, .postingApplications: applications]),
            (
                "populate[0]=company&populate[1]=applications",
                [.postingCompany: company, .postingApplications: applications]
            ),
            ("populate=company.logo", [.postingCompany: withLogo]),
            ("populate[0]=company.logo", [.postingCompany: withLogo]),
            ("populate=company,company.logo", [.postingCompany: withLogo]),
            ("populate=company.logo,company", [.postingCompany: withLogo]),
            ("populate[company][populate][0]=logo", [.postingCompany: withLogo]),
            ("populate%5Bcompany%5D%5Bpopulate%5D%5B0%5D=logo", [.postingCompany: withLogo]),
            ("populate[company][populate]=logo", [.postingCompany: withLogo]),
            ("populate[company][populate][logo]=true", [.postingCompany: withLogo]),
            ("populate[company][populate][logo][populate]=*", [.postingCompany: withLogo]),
        ] as [(String, [EntryRelation: EntryQuery])] {
            #expect(try read(query).populate == populate, "\(query)")
        }
        let rich = try read(
            "populate[applications][fields][0]=status&populate[applications][sort]=id:desc"
                + "&populate[applications][filters][status]=accepted&populate[applications][populate]=cv")
        let expected = try EntryQuery(
            .application, filter: compare(.application(.status), .equals(.text("accepted"))),
            sort: [EntrySort(.application(.id), descending: true)], limit: 0, fields: [.application(.status)],
            populate: [.applicationCV: logo])
        #expect(rich.populate == [.postingApplications: expected])
        let me = try RestQuery(entry: "populate=profile&populate=role", of: .user).entries
        #expect(me.populate == [.userProfile: logo])
    }

    @Test("both paginations, clamped")
    func pages() throws {
        for (query, style, offset, limit) in [
            ("", .pages, 0, 25), ("pagination[page]=3", .pages, 50, 25),
            ("pagination[page]=2&pagination[pageSize]=10", .pages, 10, 10),
            ("pagination[page]=0&pagination[pageSize]=0", .pages, 0, 1),
            ("pagination[page]=-7&pagination[pageSize]=-1", .pages, 0, 1),
            ("pagination[pageSize]=101", .pages, 0, 100), ("pagination[start]=7", .offsets, 7, 25),
            ("pagination[start]=-7&pagination[limit]=0", .offsets, 0, 1), ("pagination[limit]=-1", .offsets, 0, 100),
            ("pagination[limit]=1000", .offsets, 0, 100), ("pagination[limit]=-2", .offsets, 0, 1),
        ] as [(String, RestPage.Style, Int, Int)] {
            let read = try RestQuery(list: query, of: .posting)
            #expect(
                read.page.style == style && read.entries.offset == offset && read.entries.limit == limit, "\(query)")
        }
        for (text, counted) in [("true", true), ("t", true), ("1", true), ("false", false), ("f", false), ("0", false)]
        {
            #expect(try read("pagination[withCount]=\(text)").counted == counted)
        }
        #expect(try !RestQuery(list: "", of: .media, counted: false).entries.counted)
    }

    @Test("what Strapi ignores is ignored; for one entry so is what only lists have")
    func ignored() throws {
        let plain = try read("")
        #expect(try read("locale=en&publicationState=preview&x[y]=z") == plain)
        let one = try RestQuery(entry: "filters[nonsense]=1&sort=nonsense&pagination[page]=x&fields=name", of: .posting)
        #expect(one.entries.filter == nil && one.entries.fields == [.posting(.title)])
    }
}
