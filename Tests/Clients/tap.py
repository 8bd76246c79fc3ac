"""A relay before PostgreSQL that writes down what a process asks of it, and of what it is notified."""

import select
import socket
import struct
import threading
from contextlib import suppress
from typing import Callable

from relay import LOOK_SECONDS, PIECE_BYTES_MAX, Relay


class Reader:
    """Cuts one direction of a connection into messages of PostgreSQL's protocol 3: a type, a length, a body."""

    def __init__(self, starts: bool, heard: Callable[[bytes, bytes], None]):
        self.head = 0 if starts else 1  # The first message of a client has no type.
        self.heard = heard
        self.buffer = b""

    def feed(self, piece: bytes) -> None:
        self.buffer += piece
        while len(self.buffer) >= self.head + 4:
            end = self.head + struct.unpack_from("!I", self.buffer, self.head)[0]
            if len(self.buffer) < end:
                return
            self.heard(self.buffer[:self.head], self.buffer[self.head + 4:end])
            self.buffer = self.buffer[end:]
            self.head = 1


class Tap(Relay):
    def __init__(self, host: str, port: int):
        self.lock = threading.Lock()
        self.asked: list[tuple[str, bytes]] = []  # A statement, and its parameters as they went over the wire.
        self.notified: list[tuple[str, str]] = []  # A channel, and the payload.
        super().__init__(host, port)

    def take_asked(self) -> list[tuple[str, bytes]]:
        """What was asked since the last look."""
        with self.lock:
            asked, self.asked = self.asked, []
            return asked

    def _carry(self, client: socket.socket) -> None:
        with client, suppress(OSError), socket.create_connection(self.upstream) as server:
            statements: dict[bytes, str] = {}

            def said(kind: bytes, body: bytes) -> None:
                if kind == b"P":
                    name, text, _ = body.split(b"\0", 2)
                    statements[name] = text.decode()
                elif kind == b"B":
                    _, name, parameters = body.split(b"\0", 2)
                    with self.lock:
                        self.asked.append((statements[name], parameters))

            def answered(kind: bytes, body: bytes) -> None:
                if kind == b"A":
                    channel, payload, _ = body[4:].split(b"\0")
                    with self.lock:
                        self.notified.append((channel.decode(), payload.decode()))

            ways = {client: (server, Reader(True, said)), server: (client, Reader(False, answered))}
            while not self.gone.is_set():
                for end in select.select([client, server], [], [], LOOK_SECONDS)[0]:
                    piece = end.recv(PIECE_BYTES_MAX)
                    if not piece:
                        return
                    other, reader = ways[end]
                    reader.feed(piece)
                    other.sendall(piece)
