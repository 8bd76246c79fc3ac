import Foundation

/// The blocking calls behind the store.
enum Files {
    /// Makes a folder that somebody has named, but none above it: when those are missing, the name is wrong, or what
    /// belongs there is not mounted.
    /// - Throws: `StoreError` with `noFolder` for the one that is missing above it.
    static func makeNamedFolder(_ path: String) throws {
        let above = parent(of: path)
        var facts = stat()
        guard stat(above, &facts) == 0 || errno != ENOENT else { throw StoreError(.noFolder(above)) }
        try makeFolder(path)
    }

    /// Makes a folder and those above it, each of them durable in its parent.
    static func makeFolder(_ path: String) throws {
        if mkdir(path, 0o700) == 0 {
            try sync(folder: parent(of: path))
            return
        }
        switch errno {
        case EEXIST:
            var facts = stat()
            guard stat(path, &facts) == 0 else { throw StoreError.system("stat") }
            guard facts.st_mode & S_IFMT == S_IFDIR else {
                throw StoreError(.system(call: "mkdir", errno: ENOTDIR))
            }
        case ENOENT:
            let above = parent(of: path)
            guard above != path else { throw StoreError.system("mkdir") }
            try makeFolder(above)
            // Somebody else may have been quicker: then it is there, which is all we want.
            guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw StoreError.system("mkdir") }
            try sync(folder: above)
        default: throw StoreError.system("mkdir")
        }
    }

    static func parent(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Without this a new name may be gone after a power cut, though the file's bytes are there.
    static func sync(folder: String) throws {
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw StoreError.system("open") }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw StoreError.system("fsync") }
    }

    /// - Parameter offset: where in the file; nil for its end so far.
    static func write(_ bytes: [UInt8], to descriptor: Int32, at offset: Int? = nil) throws {
        try bytes.withUnsafeBytes { buffer in
            var sent = 0
            while sent < buffer.count {
                let part = UnsafeRawBufferPointer(rebasing: buffer[sent...])
                let count =
                    if let offset { pwrite(descriptor, part.baseAddress, part.count, off_t(offset + sent)) } else {
                        Foundation.write(descriptor, part.baseAddress, part.count)
                    }
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { throw StoreError.system("write") }
                sent += count
            }
        }
    }

    static func temporaryName(in folder: String) -> String {
        folder + "/" + String(UInt64.random(in: .min ... .max), radix: 16)
    }

    /// A new file to write to and read from. 0600: only this user's services read uploads; the proxy never does.
    static func create(_ path: String) throws -> Int32 {
        let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw StoreError.system("open") }
        return descriptor
    }

    /// On a disk that is nearly full a small file still finds room, and no picture does.
    static let probeBytes = 1 << 20

    /// Tries whether a file can be written, made durable, read and removed.
    static func probe(_ path: String) throws {
        let descriptor = try create(path)
        defer {
            close(descriptor)
            unlink(path)
        }
        let content = [UInt8](repeating: 0x4D, count: probeBytes)
        try write(content, to: descriptor)
        guard fsync(descriptor) == 0 else { throw StoreError.system("fsync") }
        var found = [UInt8](repeating: 0, count: content.count)
        guard pread(descriptor, &found, found.count, 0) == found.count, found == content else {
            throw StoreError.system("read")
        }
    }

    /// Removes files and folders that were last written before `date`. Returns how many went.
    static func sweep(_ folder: String, before date: Date) throws -> Int {
        var removed = 0
        for name in try FileManager.default.contentsOfDirectory(atPath: folder) {
            var facts = stat()
            let path = folder + "/" + name
            guard lstat(path, &facts) == 0, TimeInterval(facts.st_mtim.tv_sec) < date.timeIntervalSince1970 else {
                continue
            }
            switch facts.st_mode & S_IFMT {
            case S_IFREG: if unlink(path) == 0 { removed += 1 }
            // A child's folder, whose worker was killed.
            case S_IFDIR: if (try? FileManager.default.removeItem(atPath: path)) != nil { removed += 1 }
            default: break
            }
        }
        return removed
    }

    /// Nil when there is no such regular file.
    static func size(_ path: String) throws -> Int64? {
        var facts = stat()
        guard lstat(path, &facts) == 0 else {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            throw StoreError.system("stat")
        }
        return facts.st_mode & S_IFMT == S_IFREG ? Int64(facts.st_size) : nil
    }
}
