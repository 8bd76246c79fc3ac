"""A WebSocket client (RFC 6455) whose every byte is the test's own, and which forgives the server nothing."""

import base64
import hashlib
import os
import random
import socket
import struct
import time
from typing import Iterable
from urllib.parse import urlsplit

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
NAMES = {TEXT: "text", BINARY: "binary", PING: "ping", PONG: "pong"}
MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
ANSWER_SECONDS_MAX = 90
PIECE_BYTES_MAX = 256 * 1024
RSV1 = 4
masks = random.Random(6455)

# What came: ("text" | "binary" | "pong", payload), ("close", code or None), or ("end", None).
Event = tuple[str, object]


def masked(payload: bytes, mask: bytes) -> bytes:
    # As one number each: a loop over the bytes takes seconds where a message has megabytes.
    count = len(payload)
    wide = (mask * (count // 4 + 1))[:count]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(wide, "big")).to_bytes(count, "big")


def frame(opcode: int, payload: bytes = b"", fin: bool = True, rsv: int = 0, length: int | None = None) -> bytes:
    """A client's frame; `length` is what its head says, when that is not the truth."""
    count = len(payload) if length is None else length
    head = bytes([fin << 7 | rsv << 4 | opcode])
    if count < 126:
        head += bytes([0x80 | count])
    elif count <= 0xFFFF:
        head += struct.pack("!BH", 0x80 | 126, count)
    else:
        head += struct.pack("!BQ", 0x80 | 127, count)
    mask = masks.randbytes(4)
    return head + mask + masked(payload, mask)


def fragments(opcode: int, payload: bytes, size: int, rsv: int = 0) -> list[bytes]:
    """A message in frames of `size` bytes."""
    pieces = [payload[at:at + size] for at in range(0, len(payload), size)] or [b""]
    last = len(pieces) - 1
    return [
        frame(CONTINUATION if number else opcode, piece, number == last, 0 if number else rsv)
        for number, piece in enumerate(pieces)
    ]


def closing(code: int | None = 1000, reason: bytes = b"") -> bytes:
    return frame(CLOSE, b"" if code is None else struct.pack("!H", code) + reason)


class Refused(AssertionError):
    """The handshake was not answered with 101."""

    def __init__(self, status: int, head: str):
        super().__init__(head)
        self.status = status


class Wire:
    """One connection."""

    def __init__(
        self, url: str, protocol: str | None = None, extensions: str | None = None, receive_bytes: int | None = None
    ):
        to = urlsplit(url)
        self._connect(url, receive_bytes)
        try:
            self._shake(to.path or "/", to.netloc, protocol, extensions)
        except BaseException:
            self.socket.close()
            raise

    @classmethod
    def bare(cls, url: str) -> "Wire":
        """Without the handshake."""
        wire = cls.__new__(cls)
        wire._connect(url)
        return wire

    def _connect(self, url: str, receive_bytes: int | None = None) -> None:
        to = urlsplit(url)
        self.buffer = bytearray()
        self.is_compressed = False  # The message that was returned last.
        self.extensions = ""
        self.socket = socket.socket()
        if receive_bytes:  # Before the connection, or the window has been told already.
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(ANSWER_SECONDS_MAX)
        self.socket.connect((to.hostname, to.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *exception: object) -> None:
        self.socket.close()

    def _shake(self, path: str, host: str, protocol: str | None, extensions: str | None) -> None:
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [
            f"GET {path} HTTP/1.1", f"Host: {host}", "Upgrade: websocket", "Connection: Upgrade",
            f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13",
        ]
        if protocol:
            lines.append(f"Sec-WebSocket-Protocol: {protocol}")
        if extensions is not None:
            lines.append(f"Sec-WebSocket-Extensions: {extensions}")
        self.socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        while b"\r\n\r\n" not in self.buffer:
            assert self._more(ANSWER_SECONDS_MAX), "the connection ended within the handshake"
        head, _, rest = bytes(self.buffer).partition(b"\r\n\r\n")
        self.buffer = bytearray(rest)
        status, *fields = head.decode().split("\r\n")
        if status.split()[1] != "101":
            raise Refused(int(status.split()[1]), head.decode())
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in fields)}
        accept = base64.b64encode(hashlib.sha1((key + MAGIC).encode()).digest()).decode()
        assert headers["sec-websocket-accept"] == accept
        assert headers["upgrade"].lower() == "websocket" and headers["connection"].lower() == "upgrade"
        assert headers.get("sec-websocket-protocol") == protocol
        self.extensions = headers.get("sec-websocket-extensions", "")

    def send(self, data: bytes | Iterable[bytes], chop: int = 0) -> None:
        """All in one, or in writes of `chop` bytes. A server that has hung up already is no fault here."""
        whole = data if isinstance(data, bytes) else b"".join(data)
        try:
            for at in range(0, len(whole), chop or len(whole) or 1):
                self.socket.sendall(whole[at:at + chop] if chop else whole)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def next(self, seconds: float = ANSWER_SECONDS_MAX) -> Event:
        """The next message, pong or close; ("end", None) when the server has closed the connection.

        The server's own pings are answered on the way.
        """
        until = time.monotonic() + seconds
        while (event := self._next(until))[0] == "ping":
            self.send(frame(PONG, event[1]))
        return event

    def _next(self, until: float) -> Event:
        if not self._need(2, until):
            assert not self.buffer, "the connection ended within a frame"
            return "end", None
        first, count = self.buffer[0], self.buffer[1]
        opcode, head = first & 0x0F, 2
        assert count < 128, "a server's frame has no mask"
        assert first & 0x80, "ours are not fragmented"
        compressed = bool(first & 0x40)
        assert not first & 0x30 and (not compressed or (self.extensions and opcode in (TEXT, BINARY))), "RSV"
        if count >= 126:
            size = 2 if count == 126 else 8
            assert opcode in (TEXT, BINARY) and self._need(2 + size, until)
            count, head = int.from_bytes(self.buffer[2:2 + size], "big"), 2 + size
            assert count > (125 if size == 2 else 0xFFFF), "the shortest form of a length"
        assert self._need(head + count, until), "the connection ended within a frame"
        payload = bytes(self.buffer[head:head + count])
        del self.buffer[:head + count]
        if opcode == CLOSE:
            assert count != 1
            payload[2:].decode()
            return "close", struct.unpack("!H", payload[:2])[0] if payload else None
        if opcode in (TEXT, BINARY):
            self.is_compressed = compressed
        if opcode == TEXT and not compressed:
            payload.decode()
        return NAMES[opcode], payload

    def take(self) -> bytes:
        """What came, as it came; nothing when the server has closed."""
        self._more(ANSWER_SECONDS_MAX)
        taken = bytes(self.buffer)
        self.buffer.clear()
        return taken

    def _need(self, count: int, until: float) -> bool:
        while len(self.buffer) < count:
            if not self._more(until - time.monotonic()):
                return False
        return True

    def _more(self, seconds: float) -> bool:
        self.socket.settimeout(max(seconds, 0.001))
        try:
            piece = self.socket.recv(PIECE_BYTES_MAX)
        except ConnectionResetError:
            return False
        except TimeoutError:
            raise AssertionError(f"nothing came; there was {bytes(self.buffer[:200])!r}") from None
        self.buffer += piece
        return bool(piece)

    def pong(self, payload: bytes) -> None:
        """The server is there and has read all that was sent."""
        self.send(frame(PING, payload))
        assert self.next() == ("pong", payload)
