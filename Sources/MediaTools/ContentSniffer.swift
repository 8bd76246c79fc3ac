import Cmagic
import Foundation

/// Finds out what a file is from its bytes, by libmagic against the allow-list.
final class ContentSniffer {
    private let magic: magic_t

    /// - Throws: `MediaToolsError` when libmagic has no database.
    init() throws(MediaToolsError) {
        guard let magic = magic_open(MAGIC_MIME_TYPE | MAGIC_NO_CHECK_COMPRESS) else { throw .magic("out of memory") }
        guard magic_load(magic, nil) == 0 else {
            let reason = magic_error(magic).map { String(cString: $0) } ?? "no database"
            magic_close(magic)
            throw .magic(reason)
        }
        self.magic = magic
    }

    deinit { magic_close(magic) }

    /// - Throws: `empty`, `unsupportedType`, or a reason that says more of a type we do not take.
    func sniff(_ file: borrowing OpenFile) throws(Rejection) -> ContentType {
        guard file.bytes > 0 else { throw .empty }
        guard let name = magic_descriptor(magic, file.descriptor) else { throw .unsupportedType }
        let mime = String(cString: name)
        if let type = ContentType(magic: mime) {
            // libmagic's word for what it knows but has no type for, too: some programs, some images of disks.
            guard type != .txt || Self.mayBeText(file) else { throw .unsupportedType }
            return type
        }
        // libmagic looks at the first members of an archive only, and some programs put others first.
        if mime == "application/zip", Self.isWordArchive(file) { return .docx }
        if Self.compoundTypes.contains(mime) { return try Self.compound(file) }
        // libmagic wants the header that belongs behind a PNG's signature. Who sent this meant a picture.
        if mime == "application/octet-stream", Self.begins(file, with: Self.pngSignature) { throw .notAnImage }
        throw .unsupportedType
    }

    /// What libmagic calls a compound file of which it sees no more.
    private static let compoundTypes: Set<String> = [
        "application/encrypted", "application/CDFV2", "application/x-ole-storage", "application/vnd.ms-office",
    ]

    /// A DOCX with a password is an encrypted stream in a compound file; a DOC says itself whether it has one.
    private static func compound(_ file: borrowing OpenFile) throws(Rejection) -> ContentType {
        guard let compound = CompoundFile(file.contents()) else { throw .unsupportedType }
        guard !compound.has("EncryptedPackage") else { throw .encrypted }
        guard compound.has("WordDocument") else { throw .unsupportedType }
        return .doc
    }

    private static let pngSignature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

    private static func begins(_ file: borrowing OpenFile, with signature: [UInt8]) -> Bool {
        var head = [UInt8](repeating: 0, count: signature.count)
        return pread(file.descriptor, &head, head.count, 0) == head.count && head == signature
    }

    private static let textHeadBytes = 64 << 10

    /// Text has no NUL, unless it says at once that it is UTF-16.
    private static func mayBeText(_ file: borrowing OpenFile) -> Bool {
        var head = [UInt8](repeating: 0, count: min(file.bytes, textHeadBytes))
        let count = pread(file.descriptor, &head, head.count, 0)
        guard count > 0 else { return false }
        return head.starts(with: [0xFF, 0xFE]) || head.starts(with: [0xFE, 0xFF]) || !head[..<count].contains(0)
    }

    private static let archiveTailBytes = 64 << 10

    /// Whether the archive's directory, which is at its end, names Word's main part.
    private static func isWordArchive(_ file: borrowing OpenFile) -> Bool {
        let start = max(0, file.bytes - archiveTailBytes)
        var tail = [UInt8](repeating: 0, count: file.bytes - start)
        let count = pread(file.descriptor, &tail, tail.count, off_t(start))
        guard count > 0 else { return false }
        let found = Data(tail[..<count])
        return ["[Content_Types].xml", "word/document.xml"].allSatisfy { found.range(of: Data($0.utf8)) != nil }
    }
}

/// A file open for reading; closed at the end of its life.
struct OpenFile: ~Copyable {
    let descriptor: Int32
    let bytes: Int

    /// Nil when it is not there, not readable or not a plain file.
    init?(path: String) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            return nil
        }
        self.descriptor = descriptor
        bytes = Int(status.st_size)
    }

    deinit { close(descriptor) }

    /// All of it, as far as it can be read.
    borrowing func contents() -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: bytes) { buffer, filled in
            while filled < buffer.count, let base = buffer.baseAddress {
                let count = pread(descriptor, base + filled, buffer.count - filled, off_t(filled))
                guard count > 0 else { break }
                filled += count
            }
        }
    }

    /// A second descriptor, for a library that closes what it is given.
    func duplicate() -> Int32 { fcntl(descriptor, F_DUPFD_CLOEXEC, 0) }
}

/// The tools themselves do not work: a fault of the installation.
enum MediaToolsError: Error, Equatable {
    case magic(String)
    case vips(String)
    case sandbox(String, Int32)
}
