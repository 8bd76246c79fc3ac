import EventLoop
import HTTPServer

/// A WebSocket whose other end is another instance's: bytes, both ways.
final class Tunnel {
    /// One of the two connections.
    final class Side {
        let stream: TCPStream
        var hasEnded = false
        init(_ stream: TCPStream) { self.stream = stream }
    }

    let id: Int
    let owner: Side
    var client: Side?
    /// What the owner sent behind its 101.
    var rest: [UInt8]
    /// When something moved, in the loop's milliseconds.
    var movedAt: UInt64
    /// When it is cut, whatever is still to come: set until the client is there, and from the end of one side on.
    var endsAt: UInt64?

    init(id: Int, owner: TCPStream, rest: [UInt8], now: UInt64, endsAt: UInt64) {
        self.id = id
        self.owner = Side(owner)
        self.rest = rest
        movedAt = now
        self.endsAt = endsAt
    }
}

extension HopLoop {
    /// Holds the owner's side until the client's connection has left HTTP.
    func park(_ id: Int, _ stream: TCPStream, _ rest: [UInt8]) {
        stream.stopReading()
        let end = UInt64(limits.tunnelEndSecondsMax) * 1000
        let tunnel = Tunnel(id: id, owner: stream, rest: rest, now: now, endsAt: now + end)
        stream.onRead = nil
        stream.onEnd = nil
        stream.onDrain = nil
        stream.onClose = { _ in self.closed(tunnel) }
        tunnels[id] = tunnel
        tunnelsOpen.add(1)
    }

    /// Joins the client's connection to the owner's, if that is still there.
    func open(_ id: Int, to upgraded: UpgradedStream) {
        guard let tunnel = tunnels[id], tunnel.client == nil, upgraded.stream.isOpen else {
            upgraded.stream.close()
            endTunnel(id)
            return
        }
        let (owner, client) = (tunnel.owner, Tunnel.Side(upgraded.stream))
        tunnel.client = client
        tunnel.endsAt = nil
        tunnel.movedAt = now
        carry(tunnel, from: owner, to: client)
        carry(tunnel, from: client, to: owner)
        let rest = tunnel.rest
        tunnel.rest = []
        client.stream.write(rest)
        owner.stream.write(upgraded.leftover)
        owner.stream.startReading()
        client.stream.startReading()
    }

    private func carry(_ tunnel: Tunnel, from source: Tunnel.Side, to sink: Tunnel.Side) {
        source.stream.onRead = { bytes in
            tunnel.movedAt = self.now
            sink.stream.write(bytes)
            if sink.stream.pendingBytes > self.limits.tunnelBytesMax { source.stream.stopReading() }
        }
        sink.stream.onDrain = {
            tunnel.movedAt = self.now
            if !source.hasEnded { source.stream.startReading() }
        }
        source.stream.onEnd = {
            // Half an end is passed on as that: a close frame may still be on its way in the other direction.
            source.hasEnded = true
            sink.stream.shutdown()
            self.beginEnd(tunnel)
            if sink.hasEnded {
                source.stream.closeAfterFlush()
                sink.stream.closeAfterFlush()
            }
        }
        source.stream.onClose = { _ in self.closed(tunnel) }
    }

    private func beginEnd(_ tunnel: Tunnel) {
        tunnel.endsAt = tunnel.endsAt ?? now + UInt64(limits.tunnelEndSecondsMax) * 1000
    }

    /// One side is gone: the other gets what is still due to it, and goes too.
    private func closed(_ tunnel: Tunnel) {
        beginEnd(tunnel)
        for side in [tunnel.owner, tunnel.client].compactMap({ $0 }) where side.stream.isOpen {
            side.stream.stopReading()
            side.hasEnded = true
            side.stream.closeAfterFlush()
        }
        let isOver = !tunnel.owner.stream.isOpen && tunnel.client?.stream.isOpen != true
        if isOver, tunnels.removeValue(forKey: tunnel.id) != nil { tunnelsOpen.add(-1) }
    }

    func endTunnel(_ id: Int) {
        guard let tunnel = tunnels[id] else { return }
        // Closing one closes the other after what it has been sent.
        tunnel.owner.stream.close()
    }

    func endOverdueTunnels(_ now: UInt64) {
        let idleMax = UInt64(limits.tunnelIdleSecondsMax) * 1000
        for tunnel in Array(tunnels.values) {
            let isOverdue = tunnel.endsAt.map { $0 <= now } ?? (tunnel.movedAt + idleMax <= now)
            guard isOverdue else { continue }
            tunnel.client?.stream.reset()
            tunnel.owner.stream.reset()
        }
    }
}
