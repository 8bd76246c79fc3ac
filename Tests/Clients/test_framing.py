"""RFC 6455 by the list of the Autobahn suite: on the WebSocket module's echo, on a real chat, and in wsproto's eyes."""

import json
from typing import Callable, Iterator

import pytest
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Ping, TextMessage

from autobahn import Case, Part, all_cases
from echo import running_echo
from stack import Stack
from wire import BINARY, CONTINUATION, PING, TEXT, Event, Wire, closing, fragments, frame

CASES = all_cases()
CHAT_FRAME_BYTES_MAX = 397_312  # docs/chat-protocol.md
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def echo() -> Iterator[str]:
    with running_echo() as url:
        yield url


@pytest.fixture(scope="module")
def neighbour(echo: str) -> Iterator[Wire]:
    with Wire(echo) as wire:
        yield wire


def greeted(url: str, token: str, extensions: str | None = None) -> Wire:
    wire = Wire(url, "martlet.v1", extensions)
    wire.send(frame(TEXT, json.dumps({"type": "hello", "token": token}).encode()))
    kind, text = wire.next()
    assert kind == "text" and json.loads(text)["type"] == "ready"
    return wire


@pytest.fixture(scope="module")
def in_chat(stack: Stack, token: str) -> Callable[[], Wire]:
    return lambda: greeted(stack.chat_urls[0], token)


@pytest.fixture(scope="module")
def chat_neighbour(in_chat: Callable[[], Wire]) -> Iterator[Wire]:
    with in_chat() as wire:
        yield wire


def play(wire: Wire, case: Case, heard: Callable[[Event], Event] = lambda event: event) -> None:
    """One connection from its first frame to its last."""
    for part in case.parts:
        if case.apart:
            for sent in part.frames:
                wire.send(sent)
        else:
            wire.send(part.frames, case.chop)
        for expected in part.expected:
            assert heard(wire.next()) == expected
    if case.closes:
        wire.send(closing())
    assert heard(wire.next()) == ("close", case.code)
    # Answered, as a client must; where it was the client who closed, this is too late to be read.
    if not case.closes:
        wire.send(closing(case.code))
    assert wire.next() == ("end", None), "the server closes the connection"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.number)
def test_the_echo_does_as_the_suite_says(echo: str, neighbour: Wire, case: Case) -> None:
    with Wire(echo) as wire:
        play(wire, case)
    neighbour.pong(case.number.encode())


def chatting(case: Case) -> Case:
    """What a chat makes of it: words that are none of its own are refused one by one, and binary ends it."""
    parts = []
    for part in case.parts:
        expected: list[Event] = []
        for kind, payload in part.expected:
            if kind == "binary":
                return Case(case.number, [*parts, Part(part.frames, expected)], 1003, False, case.chop, case.apart)
            expected.append(("refused", "invalid") if kind == "text" else (kind, payload))
        parts.append(Part(part.frames, expected))
    return Case(case.number, parts, case.code, case.closes, case.chop, case.apart)


def refusal(event: Event) -> Event:
    if event[0] != "text":
        return event
    words = json.loads(event[1])
    assert words["type"] == "error" and "room" not in words, words
    return "refused", words["code"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.number)
def test_a_chat_does_as_the_suite_says(in_chat: Callable[[], Wire], chat_neighbour: Wire, case: Case) -> None:
    with in_chat() as wire:
        play(wire, chatting(case), refusal)
    chat_neighbour.pong(case.number.encode())


def opinion(sent: bytes) -> tuple[list[Event], list[int | None]]:
    """What an echo on wsproto would answer to these bytes, and the codes of its close frames."""
    connection = Connection(ConnectionType.SERVER)
    connection.receive_data(sent)
    answers: list[Event] = []
    codes: list[int | None] = []
    parts: list[bytes] = []
    for event in connection.events():
        if isinstance(event, CloseConnection):
            codes.append(None if event.code == 1005 else int(event.code))
            break
        if isinstance(event, Ping):
            answers.append(("pong", bytes(event.payload)))
        elif isinstance(event, (TextMessage, BytesMessage)):
            parts.append(event.data.encode() if isinstance(event, TextMessage) else bytes(event.data))
            if event.message_finished:
                answers.append(("text" if isinstance(event, TextMessage) else "binary", b"".join(parts)))
                parts = []
    return answers, codes


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.number)
def test_wsproto_agrees_with_what_is_expected(case: Case) -> None:
    assert opinion(case.bytes) == (case.events, [] if case.closes else [case.code])


# The chat's own limit.


def test_a_chat_takes_a_frame_at_its_limit_and_none_beyond(in_chat: Callable[[], Wire], chat_neighbour: Wire) -> None:
    limit = CHAT_FRAME_BYTES_MAX
    fits = [frame(TEXT, b"*" * limit)], fragments(TEXT, b"*" * limit, 1300)
    for number, frames in enumerate(fits):
        with in_chat() as wire:
            refused = Part(frames, [("refused", "invalid")])
            play(wire, Case(f"fits {number}", [refused], closes=True), refusal)
    begun = frame(TEXT, b"*" * limit, False)
    beyond = [
        [frame(TEXT, b"*" * (limit + 1))],
        # Seen in its head, so that nobody has to hold the rest.
        [frame(TEXT, length=limit + 1)], [frame(BINARY, length=2**62)],
        [begun, frame(PING, b"so far"), frame(CONTINUATION, b"*")],
    ]
    for number, frames in enumerate(beyond):
        with in_chat() as wire:
            ponged: list[Event] = [("pong", b"so far")] if number == 3 else []
            play(wire, Case(f"beyond {number}", [Part(frames, ponged)], 1009), refusal)
        chat_neighbour.pong(b"still here")


# Section 9: sizes.


def repeated(word: bytes, count: int) -> bytes:
    return (word * (count // len(word) + 1))[:count]


@pytest.mark.parametrize(("section", "name", "opcode", "word"), [
    ("9.1", "text", TEXT, b"BAsd7&jh23"), ("9.2", "binary", BINARY, b"\x00\xfe\x23\xfa\xf0"),
], ids=["9.1", "9.2"])
@pytest.mark.parametrize("size", [64 * 1024, 256 * 1024, MIB, 4 * MIB, 8 * MIB, 16 * MIB])
def test_long_messages_come_back(echo: str, section: str, name: str, opcode: int, word: bytes, size: int) -> None:
    with Wire(echo) as wire:
        payload = repeated(word, size)
        wire.send(frame(opcode, payload))
        assert wire.next() == (name, payload)


@pytest.mark.parametrize(("name", "opcode", "byte"), [
    ("text", TEXT, b"*"), ("binary", BINARY, b"\xfe"),
], ids=["9.3", "9.4"])
@pytest.mark.parametrize("size", [64, 256, 1024, 4096, 16 * 1024, 64 * 1024, 256 * 1024, MIB, 4 * MIB])
def test_messages_of_many_fragments_come_back(echo: str, name: str, opcode: int, byte: bytes, size: int) -> None:
    with Wire(echo) as wire:
        payload = byte * (4 * MIB)
        wire.send(fragments(opcode, payload, size))
        assert wire.next() == (name, payload)


@pytest.mark.parametrize(("name", "opcode", "word"), [
    ("text", TEXT, b"BAsd7&jh23"), ("binary", BINARY, b"\x00\xfe\x23\xfa\xf0"),
], ids=["9.5", "9.6"])
@pytest.mark.parametrize("chop", [64, 128, 256, 512, 1024, 2048])
def test_messages_in_small_writes_come_back(echo: str, name: str, opcode: int, word: bytes, chop: int) -> None:
    with Wire(echo) as wire:
        payload = repeated(word, MIB)
        wire.send(frame(opcode, payload), chop)
        assert wire.next() == (name, payload)


@pytest.mark.parametrize(("name", "opcode", "byte"), [
    ("text", TEXT, b"*"), ("binary", BINARY, b"\xfe"),
], ids=["9.7", "9.8"])
@pytest.mark.parametrize("size", [0, 16, 64, 256, 1024, 4096])
def test_a_thousand_messages_go_there_and_back(echo: str, name: str, opcode: int, byte: bytes, size: int) -> None:
    with Wire(echo) as wire:
        sent = frame(opcode, byte * size)
        for _ in range(1000):
            wire.send(sent)
            assert wire.next() == (name, byte * size)
