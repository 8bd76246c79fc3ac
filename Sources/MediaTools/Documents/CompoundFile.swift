import Foundation

/// A compound file ([MS-CFB]): what programs wrote before documents were archives. A small file system of sectors in
/// chains; every chain is followed at most as far as the file has sectors.
struct CompoundFile {
    static let signature: [UInt8] = [0xD0, 0xCF, 0x11, 0xE0, 0xA1, 0xB1, 0x1A, 0xE1]
    /// Entries of the directory. A document has some twenty.
    private static let entriesMax = 4096
    private static let headerBytes = 512
    /// What ends a chain, and every number that is no sector.
    private static let sectorsEnd: UInt32 = 0xFFFF_FFFA

    private struct Entry {
        let name: String
        let start: UInt32
        let bytes: Int
        let isRoot: Bool
    }

    private let file: [UInt8]
    private let sectorBytes: Int
    private let smallBytesMax: Int
    private var table: [UInt32] = []
    private var smallTable: [UInt32] = []
    private var smallStream: [UInt8] = []
    private var entries: [Entry] = []

    /// Nil for what is none, or is damaged in a way that leaves nothing to find.
    init?(_ file: [UInt8]) {
        guard file.count >= Self.headerBytes, file.starts(with: Self.signature) else { return nil }
        let shift = file.little(2, at: 0x1E) ?? 0
        guard shift == 9 || shift == 12 else { return nil }
        self.file = file
        sectorBytes = 1 << shift
        smallBytesMax = min(file.little(4, at: 0x38) ?? 4096, 1 << 16)
        table = Self.numbers(readTable())
        guard let directory = file.little(4, at: 0x30).map({ chain(UInt32(truncatingIfNeeded: $0), bytesMax: .max) })
        else { return nil }
        entries = Self.entries(directory)
        guard let root = entries.first(where: \.isRoot) else { return nil }
        smallStream = chain(root.start, bytesMax: root.bytes)
        let small = UInt32(truncatingIfNeeded: file.little(4, at: 0x3C) ?? 0)
        smallTable = Self.numbers(chain(small, bytesMax: .max))
    }

    func has(_ name: String) -> Bool { entries.contains { $0.name == name } }

    /// The bytes of a stream; nil when there is none of that name. A chain that breaks off gives what there is.
    func stream(_ name: String) -> [UInt8]? {
        guard let entry = entries.first(where: { $0.name == name }) else { return nil }
        return entry.bytes < smallBytesMax ? smallChain(entry) : chain(entry.start, bytesMax: entry.bytes)
    }

    // MARK: Sectors

    /// The bytes of the table of sectors: its own sectors are named by the header and, past 109, by a chain.
    private func readTable() -> [UInt8] {
        var bytes: [UInt8] = []
        for index in 0..<109 { append(file.little(4, at: 0x4C + index * 4), to: &bytes) }
        var next = file.little(4, at: 0x44) ?? 0
        var left = file.count / sectorBytes
        while left > 0, let list = sector(UInt32(truncatingIfNeeded: next)) {
            let last = list.count / 4 - 1
            for index in 0..<max(last, 0) { append(Array(list).little(4, at: index * 4), to: &bytes) }
            next = Array(list).little(4, at: last * 4) ?? 0
            left -= 1
        }
        return bytes
    }

    private func append(_ number: Int?, to bytes: inout [UInt8]) {
        // No file needs a longer table than it is itself.
        guard let number, bytes.count < file.count, let sector = sector(UInt32(truncatingIfNeeded: number)) else {
            return
        }
        bytes += sector
    }

    private func sector(_ number: UInt32) -> ArraySlice<UInt8>? {
        guard number < Self.sectorsEnd else { return nil }
        let start = (Int(number) + 1) * sectorBytes
        guard start < file.count else { return nil }
        return file[start..<min(start + sectorBytes, file.count)]
    }

    private func chain(_ start: UInt32, bytesMax: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        var next = start
        while bytes.count < min(bytesMax, file.count), let sector = sector(next) {
            bytes += sector
            guard Int(next) < table.count else { break }
            next = table[Int(next)]
        }
        if bytes.count > bytesMax { bytes.removeLast(bytes.count - bytesMax) }
        return bytes
    }

    private static let smallSectorBytes = 64

    private func smallChain(_ entry: Entry) -> [UInt8] {
        var bytes: [UInt8] = []
        var next = entry.start
        while bytes.count < entry.bytes, next < Self.sectorsEnd {
            let start = Int(next) * Self.smallSectorBytes
            guard start < smallStream.count else { break }
            bytes += smallStream[start..<min(start + Self.smallSectorBytes, smallStream.count)]
            guard Int(next) < smallTable.count else { break }
            next = smallTable[Int(next)]
        }
        return Array(bytes.prefix(entry.bytes))
    }

    // MARK: The directory

    private static func entries(_ directory: [UInt8]) -> [Entry] {
        stride(from: 0, to: min(directory.count - 127, entriesMax * 128), by: 128).compactMap { start in
            let kind = directory[start + 0x42]
            // A stream, or the root, whose stream holds the small ones.
            guard kind == 2 || kind == 5 else { return nil }
            let nameBytes = min(max((directory.little(2, at: start + 0x40) ?? 0) - 2, 0), 62)
            let units = stride(from: 0, to: nameBytes, by: 2).map { offset in
                UInt16(truncatingIfNeeded: directory.little(2, at: start + offset) ?? 0)
            }
            return Entry(
                name: String(decoding: units, as: UTF16.self),
                start: UInt32(truncatingIfNeeded: directory.little(4, at: start + 0x74) ?? 0),
                bytes: directory.little(4, at: start + 0x78) ?? 0, isRoot: kind == 5)
        }
    }

    private static func numbers(_ bytes: [UInt8]) -> [UInt32] {
        stride(from: 0, to: bytes.count - 3, by: 4).map { UInt32(truncatingIfNeeded: bytes.little(4, at: $0) ?? 0) }
    }
}

extension [UInt8] {
    /// A number of so many bytes, the lowest first; nil past the end.
    func little(_ count: Int, at index: Int) -> Int? {
        guard index >= 0, index <= self.count - count else { return nil }
        return self[index..<(index + count)].reversed().reduce(0) { $0 << 8 | Int($1) }
    }
}
