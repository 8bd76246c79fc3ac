import Core
import CoreHTTP
import Seeded
import Testing

@Suite("The query string as a tree")
struct QueryTreeTests {
    @Test(
        "names with brackets become objects and lists, as qs has it",
        arguments: [
            ("", "{}"), ("&&", "{}"), ("a=1", "{a:1}"), ("a", "{a:null}"), ("a=", "{a:}"), ("=1", "{}"),
            ("a=1=2", "{a:1=2}"), ("a=b+c%2B%26", "{a:b c+&}"), ("a[b]=1", "{a:{b:1}}"),
            ("a%5Bb%5D%5bc%5d=1", "{a:{b:{c:1}}}"), ("a[b=c]=d", "{a:{b=c:d}}"), ("a%5Bb=c%5D=d", "{a:{b=c:d}}"),
            ("a[]=x&a[]=y", "{a:[x,y]}"), ("a=x&a=y&a=z", "{a:[x,y,z]}"), ("a[0]=x&a[1]=y", "{a:[x,y]}"),
            ("a[1]=y&a[0]=x", "{a:[x,y]}"), ("a[7]=x", "{a:[x]}"), ("a[]=x", "{a:[x]}"), ("a[]", "{a:[null]}"),
            ("a=x&a[]=y", "{a:[x,y]}"), ("a[]=x&a=y", "{a:[x,y]}"), ("a[]=x&a[0]=y", "{a:[x,y]}"),
            ("a[b][]=1&a[b][]=2", "{a:{b:[1,2]}}"), ("a[0][b]=1&a[0][c]=2&a[1][b]=3", "{a:[{b:1,c:2},{b:3}]}"),
            ("a[][b]=1&a[][c]=2", "{a:[{b:1,c:2}]}"), ("a[b]=1&c=2&a[d]=3", "{a:{b:1,d:3},c:2}"), ("[a]=1", "{a:1}"),
            ("a.b=1", "{a.b:1}"), ("a[01]=x&a[-1]=y", "{a:{01:x,-1:y}}"), ("a]=1", "{a]:1}"),
            ("a[%E2%82%AC]=%F0%9F%98%80", "{a:{€:😀}}"),
        ])
    func forms(query: String, expected: String) throws {
        #expect(try QueryTree(query).drawn == expected)
    }

    @Test(
        "what contradicts itself keeps every part of it",
        arguments: [
            ("a=1&a[b]=2", "{a:[1,{b:2}]}"), ("a[b]=2&a=1", "{a:{b:2,1:true}}"), ("a[0]=x&a[b]=y", "{a:{0:x,b:y}}"),
            ("a[b]=y&a[0]=x", "{a:{b:y,0:x}}"), ("a[b]=y&a[]=x", "{a:{b:y,0:x}}"), ("a[0]=x&a[0]=y", "{a:[[x,y]]}"),
            ("a[0]=x&a[0][b]=1", "{a:[x,{b:1}]}"), ("a[0][b]=1&a[0]=x", "{a:[{b:1},x]}"),
            ("a[b]=1&a[b]=2&a[b][c]=3", "{a:{b:{0:1,1:2,c:3}}}"), ("a=1&a=2&a[b]=3", "{a:{0:1,1:2,b:3}}"),
        ])
    func conflicts(query: String, expected: String) throws {
        #expect(try QueryTree(query).drawn == expected)
    }

    @Test("words that are special elsewhere are names like any other")
    func prototypes() throws {
        let tree = try QueryTree("__proto__[x]=1&a[constructor]=2&a[hasOwnProperty]=3&toString=4")
        #expect(tree.drawn == "{__proto__:{x:1},a:{constructor:2,hasOwnProperty:3},toString:4}")
    }

    @Test(
        "malformed queries are refused",
        arguments: [
            "a[b=1", "a[b]c=1", "a[b][c=1", "a[[b]]=1", "[]=1", "[][a]=1", "a=%", "a=%4", "a=%zz", "%FF=1",
            "a=%C3%28", "a=%00", "a[%00]=1",
        ])
    func malformed(query: String) {
        let error = #expect(throws: AppError.self) { try QueryTree(query) }
        #expect(error?.code == .invalid)
    }

    @Test("each limit is held: its number is taken, one more is refused")
    func limits() throws {
        func brackets(_ count: Int) -> String { "a" + String(repeating: "[b]", count: count) + "=1" }
        func pairs(_ count: Int, _ part: (Int) -> String) -> String { (0..<count).map(part).joined(separator: "&") }
        _ = try QueryTree(brackets(20))
        _ = try QueryTree("a[99]=x")
        _ = try QueryTree(pairs(100) { _ in "a[]=x" })
        _ = try QueryTree(pairs(100) { "a[n\($0)]=x" })
        _ = try QueryTree(pairs(300) { "n\($0 % 60)=1" })
        _ = try QueryTree(String(repeating: "n", count: 1024) + "=1")
        _ = try QueryTree("a=" + String(repeating: "x", count: 16 * 1024 - 2))
        for refused in [
            brackets(21), "a[100]=x", "a[99999999999999999999]=x", pairs(101) { _ in "a[]=x" },
            pairs(101) { _ in "a=x" }, pairs(101) { "a[n\($0)]=x" }, pairs(101) { "n\($0)=x" },
            pairs(301) { "n\($0 % 60)=1" }, "a=" + String(repeating: "x", count: 16 * 1024 - 1),
            pairs(300) { "n\($0 % 60)[a\($0)][b][c][d]=1" },
            String(repeating: "n", count: 1025) + "=1",
        ] {
            #expect(throws: AppError.self, "\(refused.prefix(60))") { try QueryTree(refused) }
        }
    }

    @Test("the path of what is wrong is told, and not more of it than anyone needs")
    func paths() {
        let deep = #expect(throws: AppError.self) {
            try QueryTree("filters[a][b]" + String(repeating: "[c]", count: 30))
        }
        #expect(deep?.issues.first?.path.prefix(3) == ["filters", "a", "b"])
        let long = #expect(throws: AppError.self) {
            try QueryTree("a[" + String(repeating: "n", count: 900) + "][%00]=1")
        }
        #expect(long?.issues.first?.path.last?.count == 80)
    }

    @Test("huge queries are refused at once")
    func huge() {
        for query in [
            String(repeating: "filters[id][$in][]=1&", count: 1_000_000),
            "populate" + String(repeating: "[a]", count: 10_000) + "=1",
            "populate" + String(repeating: "[", count: 10_000),
            "populate=" + String(repeating: "a,", count: 1 << 19),
        ] {
            var shortest = Duration.seconds(60)
            // The shortest of a few: the first finds nothing in the caches.
            for _ in 0..<10 {
                let time = processorTime { #expect(throws: AppError.self) { _ = try QueryTree(query) } }
                shortest = min(shortest, time)
            }
            #expect(shortest < .milliseconds(30), "\(query.prefix(20))")
        }
    }

    @Test("without a limit on bytes the others hold on their own")
    func unlimitedBytes() {
        var limits = QueryTree.Limits()
        limits.bytesMax = .max
        for query in [
            String(repeating: "filters[id][$in][]=1&", count: 1_000_000),
            (0..<100_000).map { "filters[id][$in][\($0)]=1" }.joined(separator: "&"),
            "populate" + String(repeating: "[a]", count: 10_000) + "=1", String(repeating: "a&", count: 500_000),
        ] {
            #expect(throws: AppError.self) { try QueryTree(query, limits: limits) }
        }
    }
}

extension QueryTree {
    /// Short, for comparing: `{a:[x,{b:1}],c:null}`.
    var drawn: String {
        switch self {
        case .null: "null"
        case .text(let text): text
        case .list(let items): "[" + items.map(\.drawn).joined(separator: ",") + "]"
        case .object(let members): "{" + members.map { "\($0.name):\($0.value.drawn)" }.joined(separator: ",") + "}"
        }
    }

    var children: [QueryTree] {
        switch self {
        case .null, .text: []
        case .list(let items): items
        case .object(let members): members.map(\.value)
        }
    }

    var size: Int { children.reduce(1) { $0 + $1.size } }
    var depth: Int { 1 + (children.map(\.depth).max() ?? 0) }
}
