import Czlib

/// permessage-deflate (RFC 7692) without context takeover: each message stands alone, so a loop needs one of
/// each of these whatever the number of its sockets.
final class Deflater {
    private var stream = z_stream()
    private let ready: Bool

    init() {
        // A raw stream (negative window bits), as §7.2.1 wants.
        ready =
            deflateInit2_(
                &stream, 1, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
                Int32(MemoryLayout<z_stream>.size)) == Z_OK
    }

    deinit {
        if ready { deflateEnd(&stream) }
    }

    /// Nil when zlib refuses, which leaves the message as it was.
    func deflate(_ payload: ArraySlice<UInt8>) -> [UInt8]? {
        guard ready, deflateReset(&stream) == Z_OK else { return nil }
        // Room for the worst case and the sync marker, so that one call does it.
        let bound = Int(deflateBound(&stream, UInt(payload.count))) + 16
        var complete = false
        let made = [UInt8](unsafeUninitializedCapacity: bound) { output, count in
            payload.withUnsafeBufferPointer { input in
                stream.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
                stream.avail_in = UInt32(input.count)
                stream.next_out = output.baseAddress
                stream.avail_out = UInt32(bound)
                complete = Czlib.deflate(&stream, Z_SYNC_FLUSH) == Z_OK && stream.avail_in == 0 && stream.avail_out > 0
                count = bound - Int(stream.avail_out)
            }
            stream.next_in = nil
            stream.next_out = nil
        }
        // §7.2.1: the empty block at the end is left out.
        guard complete, made.suffix(4) == [0, 0, 0xFF, 0xFF] else { return nil }
        return Array(made.dropLast(4))
    }
}

/// Undoes what a client's compressed message went through, within a bound.
final class Inflater {
    /// What is made room for at a time: a bomb is met in steps of this, not at its full size.
    private static let stepBytes = 16 * 1024

    private var stream = z_stream()
    private let ready: Bool

    init() {
        ready = inflateInit2_(&stream, -15, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK
    }

    deinit {
        if ready { inflateEnd(&stream) }
    }

    /// - Throws: 1009 when more than `bytesMax` come out, 1007 when it is no deflate stream or not the whole of one.
    func inflate(_ payload: [UInt8], bytesMax: Int) throws(WebSocketFault) -> [UInt8] {
        let fault = WebSocketFault(.invalidData, "A compressed message that cannot be read.")
        guard ready, inflateReset(&stream) == Z_OK else { throw fault }
        var result: [UInt8] = []
        var status = Z_OK
        payload.withUnsafeBufferPointer { input in
            stream.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
            stream.avail_in = UInt32(input.count)
            repeat {
                // §7.2.3.4: a sender may end a stream within a message; what follows begins the next one.
                if status == Z_STREAM_END { inflateReset(&stream) }
                status = append(to: &result)
            } while status >= Z_OK && (stream.avail_in > 0 || stream.avail_out == 0) && result.count <= bytesMax
            stream.next_in = nil
            stream.next_out = nil
        }
        guard result.count <= bytesMax else {
            throw WebSocketFault(.tooBig, "A message is limited to \(bytesMax) bytes.")
        }
        // Z_BUF_ERROR says that there was nothing left to do.
        guard status >= Z_OK || status == Z_BUF_ERROR else { throw fault }
        // §7.2.1: a whole message stops within the empty block whose end the sender left out. Anywhere else it is a
        // part of one, which must not pass for a shorter text.
        guard payload.isEmpty || status == Z_STREAM_END || inflateSyncPoint(&stream) == 1 else { throw fault }
        return result
    }

    private func append(to result: inout [UInt8]) -> Int32 {
        var status = Z_OK
        let piece = [UInt8](unsafeUninitializedCapacity: Self.stepBytes) { output, count in
            stream.next_out = output.baseAddress
            stream.avail_out = UInt32(Self.stepBytes)
            status = Czlib.inflate(&stream, Z_SYNC_FLUSH)
            count = Self.stepBytes - Int(stream.avail_out)
        }
        result += piece
        return status
    }
}
