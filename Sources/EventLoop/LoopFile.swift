import Cuv
import Foundation

/// A regular file that is read through libuv's pool, so that a slow disk never stops a loop. Closed when released.
public final class LoopFile: Sendable {
    public let size: Int
    /// Nanoseconds since 1970.
    public let modifiedNanoseconds: Int
    /// Tells two files of one file system apart.
    public let inode: UInt64

    private let descriptor: Int32

    private init(descriptor: Int32, size: Int, modifiedNanoseconds: Int, inode: UInt64) {
        self.descriptor = descriptor
        self.size = size
        self.modifiedNanoseconds = modifiedNanoseconds
        self.inode = inode
    }

    deinit {
        close(descriptor)
    }

    /// Opens a file for reading. Call on the loop's thread; it resumes there.
    /// - Throws: `LoopError` of the system call; `EISDIR` for anything but a regular file.
    public static func open(_ path: String, on loop: EventLoop) async throws -> LoopFile {
        // Not blocking, so that opening a pipe nobody writes to cannot hold a thread of the pool.
        let flags = Int32(O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        let descriptor = Int32(
            try await run(on: loop, "open \(path)") {
                uv_fs_open(loop.uv, $0, path, flags, 0, $1)
            } take: {
                $0.pointee.result
            })
        var stat = uv_stat_t()
        do {
            stat = try await run(on: loop, "stat \(path)") {
                uv_fs_fstat(loop.uv, $0, descriptor, $1)
            } take: {
                $0.pointee.statbuf
            }
            guard stat.st_mode & 0o170000 == 0o100000 else {
                throw LoopError(code: UV_EISDIR.rawValue, doing: "open \(path)")
            }
        } catch {
            close(descriptor)
            throw error
        }
        return LoopFile(
            descriptor: descriptor, size: Int(stat.st_size),
            modifiedNanoseconds: stat.st_mtim.tv_sec * 1_000_000_000 + stat.st_mtim.tv_nsec, inode: stat.st_ino)
    }

    /// At most `count` bytes from `offset` on, fewer at the end of the file. On the loop's thread only.
    /// - Throws: `LoopError` of the system call.
    public func read(at offset: Int, count: Int, on loop: EventLoop) async throws -> [UInt8] {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 16)
        defer { memory.deallocate() }
        var buffer = uv_buf_init(memory.baseAddress?.assumingMemoryBound(to: CChar.self), UInt32(count))
        let length = try await Self.run(on: loop, "read a file") {
            uv_fs_read(loop.uv, $0, self.descriptor, &buffer, 1, Int64(offset), $1)
        } take: {
            $0.pointee.result
        }
        return Array(UnsafeRawBufferPointer(rebasing: memory[..<Int(length)]))
    }

    private typealias Waiting = UnsafeContinuation<Void, Never>

    /// Runs one request of the pool and resumes the caller when libuv calls back.
    private static func run<T>(
        on loop: EventLoop, _ doing: @autoclosure () -> String,
        start: (UnsafeMutablePointer<uv_fs_t>, uv_fs_cb) -> Int32, take: (UnsafeMutablePointer<uv_fs_t>) -> T
    ) async throws -> T {
        precondition(loop.isCurrent, "files are read on the loop's own thread")
        let request = UnsafeMutablePointer<uv_fs_t>.allocate(capacity: 1)
        request.initialize(to: uv_fs_t())
        let waiting = UnsafeMutablePointer<Waiting>.allocate(capacity: 1)
        defer {
            uv_fs_req_cleanup(request)
            request.deallocate()
            waiting.deallocate()
        }
        var code: Int32 = 0
        await withUnsafeContinuation { (continuation: Waiting) in
            waiting.initialize(to: continuation)
            request.pointee.data = UnsafeMutableRawPointer(waiting)
            code = start(request) { request in
                request?.pointee.data?.assumingMemoryBound(to: Waiting.self).pointee.resume()
            }
            if code < 0 { continuation.resume() }
        }
        try LoopError.check(code, doing())
        let result = request.pointee.result
        if result < 0 { throw LoopError(code: Int32(result), doing: doing()) }
        return take(request)
    }
}
