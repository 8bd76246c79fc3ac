import Core
import CoreHTTP
import JSON

/// `pagination`: by `page` and `pageSize`, or by `start` and `limit` (contracts/01 §4).
struct RestPage: Sendable, Equatable {
    enum Style: Sendable {
        case pages, offsets
    }

    static let sizeDefault = 25
    static let sizeMax = EntryQuery.pageSizeMax

    let style: Style
    let offset: Int
    let limit: Int
    let counted: Bool

    init() {
        style = .pages
        offset = 0
        limit = Self.sizeDefault
        counted = true
    }

    /// Below the least value the least counts, above the greatest size the greatest, and a limit of -1 is the greatest.
    /// - Throws: `invalid` for what is no number, for both styles at once, and for pages so deep that the database
    ///   would only skip rows.
    init(_ pagination: QueryTree) throws(AppError) {
        var numbers: [String: Int] = [:]
        var counted = true
        switch pagination {
        case .null: break
        case .text, .list: throw .query(["pagination"], "pagination must be an object.")
        case .object(let members):
            for member in members {
                let path = ["pagination", member.name]
                switch member.name {
                case "page", "pageSize", "start", "limit":
                    guard case .text(let text) = member.value, let number = RestValue.integer(text) else {
                        throw .query(path, "\(member.name) must be a whole number.")
                    }
                    numbers[member.name] = Int(number)
                case "withCount":
                    guard case .text(let text) = member.value, let flag = RestValue.boolean(text) else {
                        throw .query(
                            path, "Invalid withCount parameter. Expected \"t\",\"1\",\"true\",\"false\",\"0\",\"f\"")
                    }
                    counted = flag
                default: throw .unknownKey(member.name, path)
                }
            }
        }
        let isPaged = numbers["page"] != nil || numbers["pageSize"] != nil
        let isOffset = numbers["start"] != nil || numbers["limit"] != nil
        guard !(isPaged && isOffset) else {
            throw .query(
                ["pagination"], "Invalid pagination parameters. Expected either start/limit or page/pageSize")
        }
        self.counted = counted
        style = isOffset ? .offsets : .pages
        let size = numbers[isOffset ? "limit" : "pageSize"] ?? Self.sizeDefault
        limit = isOffset && size == -1 ? Self.sizeMax : min(max(size, 1), Self.sizeMax)
        if isOffset {
            offset = max(numbers["start"] ?? 0, 0)
        } else {
            let (product, overflow) = (max(numbers["page"] ?? 1, 1) - 1).multipliedReportingOverflow(by: limit)
            offset = overflow ? .max : product
        }
        guard offset <= EntryQuery.offsetMax else {
            throw .query(
                ["pagination", isOffset ? "start" : "page"],
                "Pages end at entry \(EntryQuery.offsetMax); narrow the list by filters.")
        }
    }

    /// `meta.pagination` as Strapi writes it.
    func write(total: Int64?, to json: inout JSONWriter) {
        json.object("meta") { json in
            json.object("pagination") { json in
                switch style {
                case .pages:
                    json.field("page", offset / limit + 1)
                    json.field("pageSize", limit)
                    if let total { json.field("pageCount", (total + Int64(limit) - 1) / Int64(limit)) }
                case .offsets:
                    json.field("start", offset)
                    json.field("limit", limit)
                }
                if let total { json.field("total", total) }
            }
        }
    }
}
