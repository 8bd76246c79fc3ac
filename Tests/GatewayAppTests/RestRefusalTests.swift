import Core
import Seeded
import Testing

@testable import GatewayApp

@Suite("Strapi's list language, refused")
struct RestRefusalTests {
    @Test(
        "what is not on the list is refused with its path, whether there is such a column or not",
        arguments: [
            ("filters[secret]=1", EntryKind.posting, ["filters", "secret"]),
            ("filters[company_id]=1", .posting, ["filters", "company_id"]),
            ("filters[company][owner_id]=1", .posting, ["filters", "company", "owner_id"]),
            ("filters[password][$startsWith]=$argon2", .user, ["filters", "password"]),
            ("filters[password_hash][$startsWith]=$", .user, ["filters", "password_hash"]),
            ("filters[applicant][password][$null]=true", .application, ["filters", "applicant", "password"]),
            ("filters[applicant][resetPasswordToken]=x", .application, ["filters", "applicant", "resetPasswordToken"]),
            ("filters[role]=1", .user, ["filters", "role"]),
            ("filters[storage_key]=x", .media, ["filters", "storage_key"]),
            ("filters[$or][0][name]=a&filters[$or][1][x]=b", .posting, ["filters", "$or", "1", "x"]),
            ("filters[name][$regex]=x", .posting, ["filters", "name", "$regex"]),
            ("filters[name][eq]=x", .posting, ["filters", "name", "eq"]),
            ("filters[company][$regex]=x", .posting, ["filters", "company", "$regex"]),
            ("filters[$in][]=x", .posting, ["filters", "$in"]),
            ("filters[__proto__][x]=1", .posting, ["filters", "__proto__"]),
            ("sort=password", .user, ["sort", "password"]),
            ("sort=name:desc,created_by", .posting, ["sort", "created_by"]),
            ("sort[1]=company.owner_id&sort[0]=name", .posting, ["sort", "1", "owner_id"]),
            ("sort[company][x]=asc", .posting, ["sort", "company", "x"]),
            ("sort=company", .posting, ["sort", "company"]),
            ("fields=password", .user, ["fields", "password"]),
            ("fields[1]=x&fields[0]=name", .posting, ["fields", "1", "x"]),
            ("fields=company", .posting, ["fields", "company"]), ("populate=owner", .posting, ["populate", "owner"]),
            ("populate=company.owner", .posting, ["populate", "company", "owner"]),
            ("populate=name", .posting, ["populate", "name"]),
            ("populate[created_by]=true", .posting, ["populate", "created_by"]),
            ("populate[company][populate]=x", .posting, ["populate", "company", "populate", "x"]),
            ("populate[company][fields]=x", .posting, ["populate", "company", "fields", "x"]),
            ("populate[company][filters][x]=1", .posting, ["populate", "company", "filters", "x"]),
            ("populate[company][sort]=x", .posting, ["populate", "company", "sort", "x"]),
            ("populate[company][limit]=1", .posting, ["populate", "company", "limit"]),
            ("populate[company][pagination][page]=1", .posting, ["populate", "company", "pagination"]),
            ("pagination[size]=1", .posting, ["pagination", "size"]),
        ])
    func unknown(query: String, kind: EntryKind, path: [String]) {
        let error = #expect(throws: AppError.self, "\(query)") { try RestQuery(list: query, of: kind) }
        #expect(error?.code == .invalid && error?.issues.first?.path == path)
        #expect(error?.message == "Invalid key \(path.last ?? "")")
    }

    @Test(
        "values that do not fit are refused with their path",
        arguments: [
            ("filters=x", ["filters"]), ("filters[$or]=x", ["filters", "$or"]),
            ("filters[$or][]=x", ["filters", "$or", "0"]),
            ("filters[$not]=x", ["filters", "$not"]), ("filters[id]=x", ["filters", "id"]),
            ("filters[id]=1.5", ["filters", "id"]),
            ("filters[id]=0x1", ["filters", "id"]), ("filters[id][$gt]=", ["filters", "id", "$gt"]),
            ("filters[id]=9223372036854775808", ["filters", "id"]),
            ("filters[id][$contains]=1", ["filters", "id", "$contains"]),
            ("filters[lat][$lt]=0x1p3", ["filters", "lat", "$lt"]), ("filters[lat]=nan", ["filters", "lat"]),
            ("filters[remote]=yes", ["filters", "remote"]),
            ("filters[remote][$lt]=true", ["filters", "remote", "$lt"]),
            ("filters[createdAt]=tomorrow", ["filters", "createdAt"]),
            ("filters[createdAt][$eqi]=x", ["filters", "createdAt", "$eqi"]),
            ("filters[createdAt]=-9223372036854775808", ["filters", "createdAt"]),
            ("filters[description]=x", ["filters", "description"]),
            ("filters[description][$lt]=x", ["filters", "description", "$lt"]),
            ("filters[salary]=1", ["filters", "salary"]),
            ("filters[salary][$null]=true", ["filters", "salary", "$null"]),
            ("filters[skills][$contains]=x", ["filters", "skills", "$contains"]),
            ("filters[name][$null]=maybe", ["filters", "name", "$null"]),
            ("filters[name][$null]", ["filters", "name", "$null"]),
            ("filters[name][$between]=x", ["filters", "name", "$between"]),
            ("filters[name][$in][a]=x", ["filters", "name", "$in"]),
            (
                "filters[name][$between][]=1&filters[name][$between][]=2&filters[name][$between][]=3",
                ["filters", "name", "$between"]
            ),
            ("filters[name]=a&filters[name][$ne]=b", ["filters", "name"]),
            ("filters[company]=x", ["filters", "company"]),
            ("sort=name:down", ["sort"]), ("sort=name:asc:asc", ["sort"]), ("sort[name]=up", ["sort", "name"]),
            ("sort[name][]=asc", ["sort", "name"]), ("sort=description", ["sort"]), ("sort=skills", ["sort"]),
            ("sort=applications.id", ["sort"]), ("sort=id,name,type,place,status,environment", ["sort"]),
            ("fields[a]=name", ["fields"]), ("fields[0][0]=name", ["fields", "0"]),
            ("populate[0][company]=true", ["populate", "0"]),
            ("populate[company]=maybe", ["populate", "company"]),
            ("populate[company][0]=logo", ["populate", "company"]),
            ("populate=company.jobs.company.jobs", ["populate"]), ("pagination=1", ["pagination"]),
            ("pagination[page]=x", ["pagination", "page"]), ("pagination[page]=1.5", ["pagination", "page"]),
            ("pagination[page]", ["pagination", "page"]), ("pagination[limit]=1e2", ["pagination", "limit"]),
            ("pagination[page]=1&pagination[start]=0", ["pagination"]),
            ("pagination[pageSize]=1&pagination[limit]=1", ["pagination"]),
            ("pagination[withCount]=yes", ["pagination", "withCount"]),
            ("pagination[page]=9223372036854775807", ["pagination", "page"]),
            ("pagination[start]=1000001", ["pagination", "start"]), ("_q=swift", ["_q"]),
        ])
    func wrong(query: String, path: [String]) {
        let error = #expect(throws: AppError.self, "\(query)") { try RestQuery(list: query, of: .posting) }
        #expect(error?.code == .invalid && error?.issues.first?.path == path, "\(query)")
    }

    @Test("the limits of a query are held: conditions, levels, relations, values, names")
    func limits() {
        func many(_ count: Int, _ part: (Int) -> String) -> String { (0..<count).map(part).joined(separator: "&") }
        let nested = { (levels: Int) in "filters" + String(repeating: "[$not]", count: levels) + "[name]=x" }
        #expect(throws: Never.self) { try RestQuery(list: nested(9), of: .posting) }
        #expect(throws: Never.self) { try RestQuery(list: many(90) { "filters[name][$eq][\($0)]=x" }, of: .posting) }
        for query in [
            nested(10), many(100) { "filters[$or][\($0)][name]=x" },
            "filters[name]=" + String(repeating: "x", count: 2001),
            many(3) { n in many(60) { "filters[$or][\(n * 30 + $0 % 30)][\($0 < 30 ? "name" : "place")]=x" } },
            "fields=" + String(repeating: "name,", count: 101), "populate=" + String(repeating: "company,", count: 101),
            "populate=company" + String(repeating: ".jobs.company", count: 500),
            "filters[company][jobs][company][jobs][name]=x",
            "populate[company][populate][jobs][populate][company][populate][jobs]=true",
        ] {
            let error = #expect(throws: AppError.self, "\(query.prefix(80))") {
                try RestQuery(list: query, of: .posting)
            }
            #expect(error?.code == .invalid)
        }
    }

    @Test("no query breaks it: random ones are read or refused as invalid, with a sentence")
    func fuzz() {
        let words = [
            "filters", "sort", "fields", "populate", "pagination", "name", "id", "company", "logo", "jobs",
            "applications",
            "applicant", "cv", "job", "createdAt", "remote", "lat", "description", "salary", "password", "$or", "$and",
            "$not", "$eq", "$in", "$between", "$null", "$containsi", "$gt", "0", "1", "", "page", "limit", "withCount",
            "*",
        ]
        let values = [
            "", "*", "1", "-1", "true", "f", "x", "name:desc", "company.name", "company.logo,applications",
            "2027-01-31",
            "a,b,,c", ".", ":", "9223372036854775808", "1e3", "%E2%82%AC",
        ]
        var random = SeededGenerator(seed: 15)
        var taken = 0
        for _ in 0..<10_000 {
            let query = (0..<Int.random(in: 1...3, using: &random)).map { _ in
                let path = (0..<Int.random(in: 0...3, using: &random)).map { _ in
                    "[\(words.randomElement(using: &random) ?? "")]"
                }
                let first = words.prefix(5).randomElement(using: &random) ?? ""
                return "\(first)\(path.joined())=\(values.randomElement(using: &random) ?? "")"
            }.joined(separator: "&")
            for kind in [EntryKind.posting, .application] {
                do {
                    _ = try RestQuery(list: query, of: kind)
                    taken += 1
                } catch {
                    #expect(error.code == .invalid && !error.message.isEmpty && !error.issues.isEmpty, "\(query)")
                }
            }
        }
        #expect(taken > 100)
    }
}
