/// The path of a request target: found, decoded and checked.
enum RequestPath {
    private static let percent = UInt8(ascii: "%")
    private static let slash = UInt8(ascii: "/")

    /// - Parameter target: origin-form (`/path?query`), absolute-form (`http://host/path?query`) or `*`.
    /// - Throws: 400 for other forms, bad escapes, encoded slashes, NUL, invalid UTF-8, fragments and `..`
    ///   segments.
    static func decode(_ target: ArraySlice<UInt8>) throws(HTTPError) -> String {
        var path = target
        if path.first != slash {
            if path.elementsEqual("*".utf8) { return "*" }
            path = try afterAuthority(target)
        }
        // One look at each byte finds what needs more looking; most paths need none.
        var end = path.endIndex
        var isPlain = true
        var before = slash
        for index in path.indices {
            let byte = path[index]
            if byte == UInt8(ascii: "#") { throw HTTPError(400, "A request target has no fragment.") }
            guard end == path.endIndex else { continue }
            if byte == UInt8(ascii: "?") {
                end = index
                continue
            }
            if byte == percent || byte == 0 || byte >= 0x80 || (byte == UInt8(ascii: ".") && before == slash) {
                isPlain = false
            }
            before = byte
        }
        path = path[..<end]
        if path.isEmpty { return "/" }
        if isPlain { return String(decoding: path, as: UTF8.self) }
        return try checked(path.contains(percent) ? unescaped(path)[...] : path)
    }

    private static func afterAuthority(_ target: ArraySlice<UInt8>) throws(HTTPError) -> ArraySlice<UInt8> {
        for scheme in ["http://", "https://"] where target.count > scheme.utf8.count {
            let rest = target.dropFirst(scheme.utf8.count)
            let start = target.prefix(scheme.utf8.count)
            guard start.elementsEqual(scheme.utf8, by: { lowercase($0) == $1 }) else { continue }
            let path = rest.drop { $0 != slash && $0 != UInt8(ascii: "?") }
            guard path.startIndex > rest.startIndex else { break }
            return path
        }
        throw HTTPError(400, "The request target is neither a path nor an absolute URL.")
    }

    private static func unescaped(_ path: ArraySlice<UInt8>) throws(HTTPError) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(path.count)
        var index = path.startIndex
        while index < path.endIndex {
            guard path[index] == percent else {
                bytes.append(path[index])
                index += 1
                continue
            }
            guard index + 2 < path.endIndex, let high = hexadecimal(path[index + 1]),
                let low = hexadecimal(path[index + 2])
            else { throw HTTPError(400, "The path has a percent sign without two hexadecimal digits.") }
            // Decoded it would part segments that the client meant to be one, and proxies before us disagree on it.
            guard high << 4 | low != slash else { throw HTTPError(400, "The path has an encoded slash.") }
            bytes.append(high << 4 | low)
            index += 3
        }
        return bytes
    }

    private static func checked(_ path: ArraySlice<UInt8>) throws(HTTPError) -> String {
        guard !path.contains(0) else { throw HTTPError(400, "The path has a NUL.") }
        guard let text = path.withUnsafeBufferPointer({ String(validating: $0, as: UTF8.self) }) else {
            throw HTTPError(400, "The path is not UTF-8.")
        }
        // Two dots alone between slashes; handlers that meet files must not have to think of it.
        var dots = 0
        var length = 0
        for byte in path {
            if byte == slash {
                if dots == 2 && length == 2 { throw HTTPError(400, "The path has a `..` segment.") }
                dots = 0
                length = 0
            } else {
                length += 1
                if byte == UInt8(ascii: ".") { dots += 1 }
            }
        }
        if dots == 2 && length == 2 { throw HTTPError(400, "The path has a `..` segment.") }
        return text
    }
}

func hexadecimal(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 0x30...0x39: byte - 0x30
    case 0x41...0x46: byte - 0x41 + 10
    case 0x61...0x66: byte - 0x61 + 10
    default: nil
    }
}
