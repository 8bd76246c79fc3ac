import Core

/// The entries of an answer while what they are shown with is being read, one level of relations after the other. No
/// I/O. However often an entry is shown, it is read and kept once for each way that leads to it.
struct EntryTree {
    /// A relation's ends, to be read for all of its starts at once.
    struct Request {
        let branch: Int
        let relation: EntryRelation
        let query: EntryQuery
        let starts: [Int64]
    }

    /// All that is reached by one way of relations from the page.
    private struct Branch {
        let relation: EntryRelation?
        let query: EntryQuery
        var values: [Int64: Entry.Value] = [:]
        /// In which order, for each start.
        var ends: [Int64: [Int64]] = [:]
        /// How often each is shown.
        var times: [Int64: Int] = [:]
        var children: [Int] = []
    }

    private let page: [Int64]
    private var branches: [Branch]
    /// Branches whose relations have not been looked at.
    private var latest = [0]
    /// What may still be shown.
    private(set) var rowsLeft = EntryQuery.populatedMax
    private(set) var bytesLeft = EntryStatements.populatedBytesMax

    init(_ values: [Entry.Value], _ query: EntryQuery) {
        page = values.map(\.id)
        var root = Branch(relation: nil, query: query)
        for value in values {
            root.values[value.id] = value
            root.times[value.id] = 1
        }
        branches = [root]
    }

    /// Goes down one level: what comes along with its rows is put in place, the rest is to be read and given to `add`.
    /// Nil at the bottom.
    mutating func descend() throws(AppError) -> [Request]? {
        var requests: [Request] = []
        var next: [Int] = []
        for parent in latest {
            let query = branches[parent].query
            for relation in EntryRelation.allCases {
                guard let wanted = query.populate[relation] else { continue }
                let branch = branches.count
                branches.append(Branch(relation: relation, query: wanted))
                branches[parent].children.append(branch)
                next.append(branch)
                let starts = branches[parent].values.keys.sorted()
                if let carried = carried(relation, wanted, from: parent, starts) {
                    try add(carried, to: branch, of: parent)
                } else if !starts.isEmpty {
                    requests.append(Request(branch: branch, relation: relation, query: wanted, starts: starts))
                }
            }
        }
        latest = next
        return next.isEmpty ? nil : requests
    }

    private func carried(
        _ relation: EntryRelation, _ query: EntryQuery, from parent: Int, _ starts: [Int64]
    ) -> [EntryRows.Link]? {
        guard relation.comesAlong, query.filter == nil else { return nil }
        return starts.compactMap { start in
            branches[parent].values[start]?.end(of: relation).map { EntryRows.Link(start: start, value: $0) }
        }
    }

    mutating func add(_ links: [EntryRows.Link], to request: Request) throws(AppError) {
        guard let parent = branches.firstIndex(where: { $0.children.contains(request.branch) }) else { return }
        try add(links, to: request.branch, of: parent)
    }

    private mutating func add(_ links: [EntryRows.Link], to branch: Int, of parent: Int) throws(AppError) {
        for link in links {
            let id = link.value.id
            let times = branches[parent].times[link.start] ?? 0
            branches[branch].values[id] = link.value
            branches[branch].ends[link.start, default: []].append(id)
            branches[branch].times[id, default: 0] += times
            rowsLeft -= times
            bytesLeft -= times * link.value.weight
            guard rowsLeft >= 0, bytesLeft >= 0 else {
                throw AppError(
                    .refused, "There is too much to populate: ask for fewer entries, or filter the relations.")
            }
        }
    }

    func entries() -> [Entry] { page.compactMap { entry($0, of: 0) } }

    private func entry(_ id: Int64, of branch: Int) -> Entry? {
        guard let value = branches[branch].values[id] else { return nil }
        var related: [(relation: EntryRelation, related: Entry.Related)] = []
        for child in branches[branch].children {
            guard let relation = branches[child].relation else { continue }
            let ends = (branches[child].ends[id] ?? []).compactMap { entry($0, of: child) }
            related.append((relation, relation.isMany ? .many(ends) : .one(ends.first)))
        }
        return Entry(value, related: Entry.Relations(related))
    }
}
