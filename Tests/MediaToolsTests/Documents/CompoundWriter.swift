import Foundation

@testable import MediaTools

/// A compound file made for a test, with sectors of 512 bytes; streams below 4096 go into the small ones.
struct CompoundWriter {
    var streams: [(name: String, bytes: [UInt8])]

    private static let end = 0xFFFF_FFFE

    func bytes() -> [UInt8] {
        var sectors: [UInt8] = []
        var table: [Int] = []
        var small: [UInt8] = []
        var smallTable: [Int] = []
        func add(_ bytes: [UInt8]) -> Int {
            guard !bytes.isEmpty else { return Self.end }
            let first = table.count
            sectors += padded(bytes, to: 512)
            let count = (bytes.count + 511) / 512
            table += (1..<(count + 1)).map { $0 == count ? Self.end : first + $0 }
            return first
        }
        var starts: [Int] = []
        for stream in streams {
            if stream.bytes.count >= 4096 {
                starts.append(add(stream.bytes))
            } else {
                let first = smallTable.count
                let count = max((stream.bytes.count + 63) / 64, 1)
                small += padded(stream.bytes, to: 64)
                smallTable += (1..<(count + 1)).map { $0 == count ? Self.end : first + $0 }
                starts.append(first)
            }
        }
        let smallStart = add(small)
        let smallTableStart = add(smallTable.flatMap { Samples.little($0, 4) })
        var directory = entry("Root Entry", kind: 5, start: smallStart, bytes: small.count)
        for (stream, start) in zip(streams, starts) {
            directory += entry(stream.name, kind: 2, start: start, bytes: stream.bytes.count)
        }
        let directoryStart = add(padded(directory, to: 512))
        // The table describes its own sectors too.
        let count = (table.count + 127) / 127
        let tableStart = table.count
        table += Array(repeating: 0xFFFF_FFFD, count: count)
        sectors += padded(table.flatMap { Samples.little($0, 4) }, to: 512, with: 0xFF)
        return header(tableStart..<(tableStart + count), directoryStart, smallTableStart) + sectors
    }

    private func padded(_ bytes: [UInt8], to size: Int, with fill: UInt8 = 0) -> [UInt8] {
        bytes + Array(repeating: fill, count: (size - bytes.count % size) % size)
    }

    private func entry(_ name: String, kind: UInt8, start: Int, bytes: Int) -> [UInt8] {
        var entry = name.utf16.flatMap { Samples.little(Int($0), 2) }
        let nameBytes = entry.count + 2
        entry += Array(repeating: 0, count: 64 - entry.count)
        entry += Samples.little(nameBytes, 2) + [kind, 1] + Array(repeating: 0xFF, count: 12)
        entry += Array(repeating: 0, count: 0x74 - entry.count)
        return entry + Samples.little(start, 4) + Samples.little(bytes, 4) + [0, 0, 0, 0]
    }

    private func header(_ table: Range<Int>, _ directory: Int, _ small: Int) -> [UInt8] {
        var header = CompoundFile.signature + Array(repeating: 0, count: 16)
        header += Samples.little(0x3E, 2) + Samples.little(3, 2) + Samples.little(0xFFFE, 2)
        header += Samples.little(9, 2) + Samples.little(6, 2) + Array(repeating: 0, count: 10)
        header += Samples.little(table.count, 4) + Samples.little(directory, 4) + [0, 0, 0, 0]
        header += Samples.little(4096, 4) + Samples.little(small, 4) + Samples.little(small == Self.end ? 0 : 1, 4)
        header += Samples.little(Self.end, 4) + Samples.little(0, 4)
        for index in 0..<109 {
            header += Samples.little(index < table.count ? table.lowerBound + index : 0xFFFF_FFFF, 4)
        }
        return header
    }
}

/// A DOC made for a test: the text in two pieces, of one byte a character and of two.
struct LegacyWordFile {
    var narrow: [UInt8] = []
    var wide = ""
    var flags = 0x0200
    var version = 0x00C1

    func bytes() -> [UInt8] {
        let units = Array(wide.utf16)
        let count = narrow.count + units.count
        let start = 0x400
        let wideStart = start + narrow.count + narrow.count % 2
        var document = Samples.little(0xA5EC, 2) + Samples.little(version, 2) + Array(repeating: 0, count: 6)
        document += Samples.little(flags, 2)
        document += Array(repeating: 0, count: start - document.count)
        document += narrow + Array(repeating: 0, count: narrow.count % 2) + units.flatMap { Samples.little(Int($0), 2) }
        let pieces =
            [0, narrow.count, count].flatMap { Samples.little($0, 4) } + [0, 0]
            + Samples.little(start * 2 | 0x4000_0000, 4) + [0, 0, 0, 0] + Samples.little(wideStart, 4) + [0, 0]
        // A property first, which is to be passed over.
        let table = [1, 2, 0, 9, 9] + [2] + Samples.little(pieces.count, 4) + pieces
        document.replaceSubrange(0x4C..<0x50, with: Samples.little(count, 4))
        document.replaceSubrange(0x1A2..<0x1A6, with: Samples.little(0, 4))
        document.replaceSubrange(0x1A6..<0x1AA, with: Samples.little(table.count, 4))
        document += Array(repeating: 0, count: max(0, 4096 - document.count))
        return CompoundWriter(streams: [("WordDocument", document), ("1Table", table)]).bytes()
    }
}
