import Foundation

/// The blocking calls behind the store.
enum Files {
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

    static func write(_ bytes: [UInt8], to descriptor: Int32) throws {
        try bytes.withUnsafeBytes { buffer in
            var sent = 0
            while sent < buffer.count {
                let part = UnsafeRawBufferPointer(rebasing: buffer[sent...])
                let count = Foundation.write(descriptor, part.baseAddress, part.count)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { throw StoreError.system("write") }
                sent += count
            }
        }
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
