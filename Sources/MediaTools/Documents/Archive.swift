import Czip
import Foundation

/// A zip archive from outside, read part by part by libzip: nothing of it is ever written to a disk.
final class Archive {
    /// Word and LibreOffice write some dozens.
    static let membersMax = 10_000
    /// All parts unpacked, by the archive's own word: whoever opens the document later gets them all.
    static let unpackedBytesMax: UInt64 = 128 << 20
    /// One part that is read, counted as it comes. Markup of a book of a thousand pages.
    static let partBytesMax = 32 << 20
    private static let chunkBytes = 64 << 10

    private let archive: OpaquePointer

    /// - Throws: `broken` for what is no archive, `inflates`, `unsafeDocument` for names that lead out of a folder.
    init(_ file: borrowing OpenFile) throws(Rejection) {
        let descriptor = file.duplicate()
        guard descriptor >= 0 else { throw .broken }
        var code: Int32 = 0
        guard let archive = zip_fdopen(descriptor, 0, &code) else {
            close(descriptor)
            throw .broken
        }
        self.archive = archive
        try check()
    }

    deinit { zip_discard(archive) }

    private func check() throws(Rejection) {
        let count = zip_get_num_entries(archive, 0)
        guard count > 0 else { throw .broken }
        guard count <= Self.membersMax else { throw .inflates }
        var unpacked: UInt64 = 0
        for index in 0..<zip_uint64_t(count) {
            var status = zip_stat_t()
            guard zip_stat_index(archive, index, 0, &status) == 0, let name = status.name else { throw .broken }
            guard !Self.leadsOut(String(cString: name)) else { throw .unsafeDocument }
            if status.valid & UInt64(ZIP_STAT_ENCRYPTION_METHOD) != 0, status.encryption_method != 0 {
                throw .encrypted
            }
            guard status.valid & UInt64(ZIP_STAT_SIZE) != 0, status.size <= Self.unpackedBytesMax else {
                throw .inflates
            }
            unpacked += status.size
            guard unpacked <= Self.unpackedBytesMax else { throw .inflates }
        }
    }

    /// Whether a program that unpacks the archive could write somewhere else by this name.
    static func leadsOut(_ name: String) -> Bool {
        let parts = name.split(omittingEmptySubsequences: false) { $0 == "/" || $0 == "\\" }
        return parts.contains("..") || parts.first == "" || parts.first?.hasSuffix(":") == true
    }

    func has(_ name: String) -> Bool { zip_name_locate(archive, name, 0) >= 0 }

    /// Gives a part piece by piece, the last time with `isLast`. False when there is none of that name.
    /// - Throws: `broken` for damage (libzip compares the checksum), `inflates` past `partBytesMax`, and what `body`
    ///   throws.
    func read(
        _ name: String, _ body: (_ bytes: UnsafeRawBufferPointer, _ isLast: Bool) throws(Rejection) -> Void
    ) throws(Rejection) -> Bool {
        let index = zip_name_locate(archive, name, 0)
        guard index >= 0 else { return false }
        guard let part = zip_fopen_index(archive, zip_uint64_t(index), 0) else { throw .broken }
        defer { zip_fclose(part) }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.chunkBytes, alignment: 8)
        defer { buffer.deallocate() }
        var total = 0
        while true {
            let count = zip_fread(part, buffer.baseAddress, zip_uint64_t(buffer.count))
            guard count >= 0 else { throw .broken }
            total += Int(count)
            guard total <= Self.partBytesMax else { throw .inflates }
            try body(UnsafeRawBufferPointer(rebasing: buffer[..<Int(count)]), count == 0)
            if count == 0 { return true }
        }
    }
}
