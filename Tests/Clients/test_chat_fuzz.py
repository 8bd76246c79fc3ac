"""Noise by seed against a live chat: whatever a client says, it is answered in the protocol's words or closed by one of
its codes, nobody else notices, and what was acknowledged is in the table, once."""

import json
import random
from typing import Any, Callable, Iterator

import pytest

from conftest import Accepted
from stack import Stack
from wire import BINARY, CLOSE, CONTINUATION, PING, TEXT, Wire, closing, fragments, frame

SEEDS = 24
CONNECTIONS = 4  # Of a seed.
FRAMES = 60  # Of a connection, at most.
TYPES = ["hello", "send", "edit", "delete", "history", "read", "unread", "typing", "join", "leave", "message", "", "é"]
MEMBERS = ["room", "id", "body", "seq", "target", "before", "after", "limit", "media", "rooms", "token", "resume", "x"]
ANSWERS = {
    "ready", "message", "ack", "error", "history", "read", "room", "left", "reset", "joined", "typing", "presence",
    "unread",
}
ERRORS = {"invalid", "forbidden", "too_many", "unavailable", "not_found"}
CODES = {1000, 1001, 1002, 1003, 1007, 1009, 4401, 4429}
NUMBERS = [0, 1, -1, 2**31, 2**53, 2**63 - 1, -(2**63), 2**63, 10**30, 0.5, 1e400, -0.0]
TEXTS = ["", "a", "b" * 64, "c" * 65, "\0", "é", "𝄞" * 40, "\ud800", "\u202e", "'; DROP TABLE x --", "x" * 66_000]


class Noise:
    """What a client might say by mistake or by intent. The same for the same seed."""

    def __init__(self, seed: int, room: int, token: str):
        self.random = random.Random(seed)
        self.room = room
        self.token = token
        self.count = 0
        self.seed = seed

    def value(self, depth: int = 0) -> Any:
        kind = self.random.randrange(9 if depth < 4 else 6)
        if kind < 2:
            return self.random.choice(NUMBERS)
        if kind < 4:
            return self.random.choice(TEXTS)
        if kind == 4:
            return self.random.choice([None, True, False])
        if kind == 5:
            return self.room
        if kind == 6:
            return [self.value(depth + 1) for _ in range(self.random.randrange(4))]
        keys = [*MEMBERS, str(self.room), "1", "-1", "x"]
        return {self.random.choice(keys): self.value(depth + 1) for _ in range(self.random.randrange(4))}

    def right(self) -> dict[str, Any]:
        """A frame that a good client could send."""
        self.count += 1
        room = {"room": self.room}
        return self.random.choice([
            {"type": "send", **room, "id": f"{self.seed}-{self.count}", "body": self.random.choice("aé𝄞") * 9},
            {"type": "history", **room, "limit": 3}, {"type": "read", **room, "seq": 1}, {"type": "typing", **room},
            {"type": "join", **room}, {"type": "leave", **room}, {"type": "unread", "rooms": [self.room]},
            {"type": "edit", **room, "id": f"{self.seed}-{self.count}", "target": 1, "body": "b"},
            {"type": "delete", **room, "id": f"{self.seed}-{self.count}", "target": 1},
        ])

    def words(self) -> bytes:
        fields = self.right()
        kind = self.random.randrange(8)
        if kind == 1:
            fields["type"] = self.random.choice(TYPES)
        elif kind == 2:
            fields[self.random.choice([*MEMBERS, "type"])] = self.value()
        elif kind == 3:
            fields.pop(self.random.choice(list(fields)))
        elif kind == 4:
            fields = self.value()
        text = json.dumps(fields, ensure_ascii=self.random.random() < 0.5).encode("utf-8", "surrogatepass")
        if kind == 5:
            # The same member twice.
            text = text[:-1] + b"," + text[1:]
        if kind == 6:
            text = text.replace(b":", b": \t\n", 1) + b" " * self.random.randrange(3)
        if kind == 7 and text:
            at = self.random.randrange(len(text))
            noise = self.random.choice([b"", b"{", b'"', b"\\", b"\\u12", b"\x00", b"9" * 30])
            text = text[:at] + noise + text[at + 1:]
        return text

    def frames(self) -> Iterator[bytes]:
        for _ in range(self.random.randrange(1, FRAMES)):
            text = self.words()
            kind = self.random.randrange(40)
            if kind < 6:
                yield from fragments(TEXT, text, self.random.randrange(1, 40))
            elif kind < 9:
                yield frame(PING, text[:125])
            elif kind == 9:
                yield self.random.choice([
                    frame(BINARY, text), frame(CONTINUATION, text), frame(TEXT, text, False), frame(CLOSE, text[:9]),
                    frame(TEXT, text, rsv=4), frame(self.random.randrange(16), text, rsv=self.random.randrange(8)),
                ])
            else:
                yield frame(TEXT, text)


def hear(wire: Wire) -> Iterator[dict[str, Any]]:
    """All that comes until a pong for the end or a close."""
    while (event := wire.next())[0] != "end":
        kind, content = event
        if kind == "close":
            assert content is None or content in CODES or 3000 <= content < 5000, content
            wire.send(closing(content))
        elif kind == "text":
            answer = json.loads(content)
            assert answer["type"] in ANSWERS, answer
            assert answer["type"] != "error" or answer["code"] in ERRORS, answer
            yield answer
        elif content == b"the end of it":
            return


@pytest.fixture(scope="module")
def watch(stack: Stack) -> Iterator[Callable[[], None]]:
    """Fails when a chat has logged an error, or is not there any more."""
    started = {chat.name: chat.log.stat().st_size for chat in stack.chats}

    def check() -> None:
        for chat in stack.chats:
            assert chat.child and chat.child.poll() is None
            log = chat.log.read_bytes()[started[chat.name]:].decode()
            assert '"level":"error"' not in log, log[-3000:]

    yield check
    check()


def greeted(url: str, token: str) -> Wire:
    wire = Wire(url, "martlet.v1")
    wire.send(frame(TEXT, json.dumps({"type": "hello", "token": token}).encode()))
    assert json.loads(wire.next()[1])["type"] == "ready"
    return wire


@pytest.fixture(scope="module")
def neighbours(stack: Stack, token: str) -> Iterator[list[Wire]]:
    """On each instance somebody whom nothing of it concerns."""
    wires = [greeted(url, token) for url in stack.chat_urls]
    yield wires
    for wire in wires:
        wire.socket.close()


@pytest.fixture(scope="module")
def them(accepted: Callable[[], Accepted]) -> Accepted:
    return accepted()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_noise_is_answered_and_hurts_nobody(
    stack: Stack, watch: Callable[[], None], them: Accepted, neighbours: list[Wire], seed: int
) -> None:
    room, somebody, neighbour = them.room, them.applicant, neighbours[seed % 2]
    noise = Noise(seed, room, somebody.jwt)
    acknowledged: dict[str, int] = {}
    for _ in range(CONNECTIONS):
        with Wire(stack.chat_urls[seed % 2], "martlet.v1") as wire:
            if noise.random.random() < 0.9:
                wire.send(frame(TEXT, json.dumps({"type": "hello", "token": somebody.jwt}).encode()))
            wire.send(noise.frames(), noise.random.choice([0, 0, 7, 1000]))
            wire.send(frame(PING, b"the end of it"))
            for answer in hear(wire):
                if answer["type"] == "ack" and answer["room"] == room:
                    assert acknowledged.setdefault(answer["id"], answer["seq"]) == answer["seq"]
        neighbour.pong(b"still here")
    watch()
    rows = stack.sql(
        f"SELECT client_id, count(*), min(seq) FROM messages WHERE room_id = {room} AND client_id LIKE '{seed}-%' "
        "GROUP BY client_id"
    )
    stored = {name: (int(count), int(seq)) for name, count, seq in (row.split("\t") for row in rows.splitlines())}
    for name, seq in acknowledged.items():
        if name.startswith(f"{seed}-"):
            assert stored[name] == (1, seq)


def test_the_room_is_whole_afterwards(stack: Stack, watch: Callable[[], None], them: Accepted) -> None:
    with greeted(stack.chat_urls[0], them.representative.jwt) as wire:
        wire.send(frame(TEXT, json.dumps({"type": "send", "room": them.room, "id": "last", "body": "Here"}).encode()))
        answers = (json.loads(wire.next()[1]) for _ in range(100))
        assert next(each for each in answers if each["type"] == "ack")["id"] == "last"
    of = f"FROM messages WHERE room_id = {them.room}"
    numbers = stack.sql(f"SELECT min(seq), max(seq), count(*), count(DISTINCT seq) {of}")
    assert numbers == stack.sql(f"SELECT 1, last_seq, last_seq, last_seq FROM rooms WHERE id = {them.room}")
