/// What a request asks of a file: all of it, a part, or only to know whether it has changed (RFC 9110 §13, §14).
struct FileConditions {
    enum Outcome: Equatable {
        case whole
        /// Offsets of the file.
        case part(Range<Int>)
        /// 304
        case notModified
        /// 412
        case failed
        /// 416
        case unsatisfiable
    }

    let size: Int
    /// With its quotes, and strong.
    let etag: String
    /// Seconds since 1970.
    let modified: Int

    /// In the order of RFC 9110 §13.2.2. Dates that are not understood are ignored, and so is more than one range: the
    /// whole file is a right answer to both.
    func evaluate(_ method: HTTPMethod, _ headers: HTTPHeaders) -> Outcome {
        if headers.contains("If-Match") {
            guard matches(headers.all("If-Match"), weakly: false) else { return .failed }
        } else if let date = headers["If-Unmodified-Since"].flatMap(HTTPDate.seconds), modified > date {
            return .failed
        }
        if headers.contains("If-None-Match") {
            if matches(headers.all("If-None-Match"), weakly: true) { return .notModified }
        } else if let date = headers["If-Modified-Since"].flatMap(HTTPDate.seconds), modified <= date {
            return .notModified
        }
        guard method == .get, let range = headers["Range"], headers.all("Range").count == 1 else { return .whole }
        if let condition = headers["If-Range"], condition != etag, HTTPDate.seconds(condition) != modified {
            return .whole
        }
        return part(range)
    }

    private func matches(_ lists: [String], weakly: Bool) -> Bool {
        lists.contains { list in
            // Our own tags have no comma, so that splitting at commas finds them.
            list.split(separator: ",").contains { item in
                var tag = item.drop { $0 == " " || $0 == "\t" }
                while tag.last == " " || tag.last == "\t" { tag.removeLast() }
                if tag == "*" { return true }
                return tag == etag || (weakly && tag.hasPrefix("W/") && tag.dropFirst(2) == etag)
            }
        }
    }

    /// `bytes=0-9`, `bytes=10-`, `bytes=-5`.
    private func part(_ text: String) -> Outcome {
        guard text.lowercased().hasPrefix("bytes=") else { return .whole }
        let bounds = text.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
        guard bounds.count == 2, bounds.allSatisfy({ $0.utf8.allSatisfy { $0 >= 0x30 && $0 <= 0x39 } }) else {
            return .whole
        }
        if bounds[0].isEmpty {
            guard let count = Int(bounds[1]) else { return .whole }
            guard count > 0, size > 0 else { return .unsatisfiable }
            return .part(max(0, size - count)..<size)
        }
        guard let first = Int(bounds[0]) else { return .whole }
        var last = size - 1
        if !bounds[1].isEmpty {
            guard let given = Int(bounds[1]), given >= first else { return .whole }
            last = min(last, given)
        }
        return first < size ? .part(first..<(last + 1)) : .unsatisfiable
    }
}
