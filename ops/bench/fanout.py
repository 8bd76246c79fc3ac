"""Many Socket.IO sockets in one room, and how fast what one of them says reaches all.

Raw frames and one epoll: a client library would be slower than the servers that are measured.
"""

import base64
import json
import os
import select
import socket
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit

CONNECT_SECONDS_MAX = 60
ROUND_SECONDS_MAX = 60
SHOWN = 18  # The first bytes of a frame, which say what it is.


@dataclass
class Member:
    """One WebSocket: what is left of the last read, and what is still to be passed over of a frame."""

    stream: socket.socket
    rest: bytes = b""
    skip: int = 0
    texts: list[bytes] = field(default_factory=list)
    word: bytes = b""  # What it waits to hear; empty when it has.
    end: bytes = b""  # Of what came, where a part of the word may stand.

    def send(self, text: str) -> None:
        """A masked text frame; the mask is zero, which leaves the text as it is."""
        body = text.encode()
        size = bytes([0x80 | len(body)]) if len(body) < 126 else bytes([0x80 | 126]) + len(body).to_bytes(2, "big")
        self.stream.setblocking(True)
        self.stream.sendall(b"\x81" + size + bytes(4) + body)
        self.stream.setblocking(False)

    def read(self) -> None:
        """Listens for the word. Frames that are no events, which are short, are kept in `texts`."""
        received = self.stream.recv(1 << 18)
        if not received:
            raise SystemExit("The server closed a socket.")
        if self.word:
            heard = self.end + received
            if self.word in heard:
                self.word = b""
            self.end = heard[-len(self.word) :]
        data = self.rest + received
        at, end = 0, len(data)
        while True:
            passed = min(self.skip, end - at)
            at += passed
            self.skip -= passed
            if self.skip or end - at < 2:
                break
            size, head = data[at + 1] & 0x7F, 2
            if size >= 126:
                head = 4 if size == 126 else 10
                size = int.from_bytes(data[at + 2 : at + head], "big")
            seen = min(size, SHOWN)
            if end - at < head + seen:
                break
            body = data[at + head : at + head + seen]
            if body == b"2":
                self.send("3")
            elif not body.startswith(b"42"):
                self.texts.append(body)
            at += head
            self.skip = size
        self.rest = data[at:]


class FanOut:
    """Sockets that have all joined one room."""

    def __init__(self, url: str, sockets: int, room: str, token: str):
        self.poll = select.epoll()
        self.members: dict[int, Member] = {}
        self.room = room
        address = urlsplit(url)
        for _ in range(sockets):
            stream = socket.create_connection((address.hostname or "", address.port or 80))
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
            key = base64.b64encode(os.urandom(16)).decode()
            head = f"GET /socket.io/?EIO=4&transport=websocket HTTP/1.1\r\nHost: {address.netloc}\r\n"
            head += "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            stream.sendall(f"{head}Sec-WebSocket-Key: {key}\r\n\r\n".encode())
            answer = b""
            while b"\r\n\r\n" not in answer:
                answer += stream.recv(4096)
            if not answer.startswith(b"HTTP/1.1 101"):
                raise SystemExit(f"No WebSocket: {answer[:200]!r}")
            member = Member(stream, answer.partition(b"\r\n\r\n")[2])
            member.send(f"40{json.dumps({'token': token})}")
            self.members[stream.fileno()] = member
            self.poll.register(stream.fileno(), select.EPOLLIN)
        self.until(lambda: all(map(self.accepted, self.members.values())), CONNECT_SECONDS_MAX)
        for member in self.members.values():
            member.send(f"42{json.dumps(['join_room', {'room': room}])}")

    @staticmethod
    def accepted(member: Member) -> bool:
        return any(text.startswith(b'40{"sid"') for text in member.texts)

    def until(self, condition, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise SystemExit("The sockets waited too long for what should have come.")
            for descriptor, _ in self.poll.poll(1):
                self.members[descriptor].read()

    def say(self, texts: list[str]) -> None:
        """One says all this at once. Returns when every socket has heard the last of it."""
        word = f"w{time.monotonic_ns()}"
        for member in self.members.values():
            member.word, member.end = word.encode(), b""
        speaker = next(iter(self.members.values()))
        for text in [*texts[:-1], f"{texts[-1]} {word}"]:
            speaker.send(f"42{json.dumps(['send_message', {'room': self.room, 'text': text}])}")
        self.until(lambda: not any(member.word for member in self.members.values()), ROUND_SECONDS_MAX)

    def close(self) -> None:
        self.poll.close()
        for member in self.members.values():
            member.stream.close()
