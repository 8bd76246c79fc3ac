import EventLoop

/// The same frames to many sockets.
extension WebSocketLoop {
    /// Fewer sockets than this are not worth a send of their own before the turn's end: what comes behind it may go
    /// with it.
    private static let broadcastMin = 32

    /// The same frames, in order, to many sockets of this loop, by their handles' ids. Where nothing waits they may go
    /// out at once, before the end of the turn.
    public func send(_ frames: [SharedFrame], to ids: [Int]) {
        guard ids.count >= Self.broadcastMin else {
            for id in ids { for frame in frames { send(frame, to: id) } }
            return
        }
        var start = 0
        while start < frames.count {
            var end = start + 1
            var bytes = frames[start].bytes.count
            while end < frames.count, bytes + frames[end].bytes.count <= limits.dueBytesMax {
                bytes += frames[end].bytes.count
                end += 1
            }
            broadcast(frames[start..<end], bytes, to: ids)
            start = end
        }
    }

    private func broadcast(_ frames: ArraySlice<SharedFrame>, _ count: Int, to ids: [Int]) {
        var joined: [UInt8] = []
        joined.reserveCapacity(count)
        for frame in frames { joined += frame.bytes }
        let mayCompress = frames.contains { $0.payloadCount >= limits.compressBytesMin }
        joined.withUnsafeBytes { bytes in
            for id in ids {
                let entry = direct[id & Self.slotMask]
                guard entry.id == id, entry.descriptor >= 0, !(mayCompress && entry.isCompressing) else {
                    for frame in frames { send(frame, to: id) }
                    continue
                }
                let sent = TCPStream.offer(bytes, to: entry.descriptor)
                if sent < count { write(UnsafeRawBufferPointer(rebasing: bytes[sent...]), behind: id) }
            }
        }
    }

    /// What the kernel did not take of a broadcast waits in the stream, or closes it.
    private func write(_ rest: UnsafeRawBufferPointer, behind id: Int) {
        guard let socket = socket(id) else { return }
        socket.stream.write(rest)
        refresh(socket)
    }

    /// Whether the next broadcast may go to the socket directly.
    func refresh(_ socket: Socket) {
        guard socket.state != .gone else { return }
        let isFree = socket.state == .open && socket.dueBytes == 0
        direct[socket.id & Self.slotMask] = DirectTable.Entry(
            id: socket.id, descriptor: isFree ? socket.stream.directDescriptor : -1,
            isCompressing: socket.compressBytesMax >= 0)
    }
}
