"""permessage-deflate (RFC 7692) on the WebSocket module's echo and on a real chat: the Autobahn suite's sections 12 and
13 with their sizes and offers, every window, offers that must be refused, and messages that cannot be read."""

import json
import os
import random
import zlib
from contextlib import ExitStack
from typing import Callable, Iterator

import pytest
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, Request, TextMessage
from wsproto.extensions import PerMessageDeflate

from echo import running_echo
from stack import Stack
from wire import BINARY, CONTINUATION, PING, RSV1, TEXT, Refused, Wire, closing, fragments, frame

TAIL = b"\x00\x00\xff\xff"
AGREED = "permessage-deflate; server_no_context_takeover; client_no_context_takeover"
MESSAGES = 10  # Of a case, where nobody asks for the suite's thousand: what goes wrong does so early.
MESSAGES_WHOLE = 1_000
# The suite's: the length of a message, and of its fragments, 0 for none.
SIZES = [(16 * 4**step, 0) for step in range(5)] + [(size * 1024, 0) for size in (8, 16, 32, 64, 128)]
SIZES += [(size * 1024, 256) for size in (8, 16, 32, 64, 128)]
SIZES += [(128 * 1024, 1024), (128 * 1024, 4096), (128 * 1024, 32768)]
OFFERS = {
    "13.1": "",
    "13.2": "; server_no_context_takeover",
    "13.3": "; server_max_window_bits=9",
    "13.4": "; server_max_window_bits=15",
    "13.5": "; server_no_context_takeover; server_max_window_bits=9",
    "13.6": "; server_no_context_takeover; server_max_window_bits=15",
}
CLIENT = "; client_no_context_takeover; client_max_window_bits"


@pytest.fixture(scope="module")
def echo() -> Iterator[str]:
    with running_echo() as url:
        yield url


def texts() -> dict[str, tuple[bool, str | bytes]]:
    """Data like that of the suite, by its sections: whether it is text, and what it is."""
    source = random.Random(7692)
    words = "Habe nun, ach! Philosophie, Juristerei und Medizin, und leider auch Theologie durchaus studiert".split()
    prose = " ".join(source.choice(words) for _ in range(30_000))
    people = [
        {"id": number, "name": source.choice(words), "höhe": source.random(), "tags": source.sample(words, 3)}
        for number in range(1_500)
    ]
    page = "".join(f"<li class='row'><a href='/{source.randrange(9**9)}'>{each['name']}</a>\n" for each in people)
    picture = bytes((x * y // 512 + source.randrange(8)) % 256 for y in range(512) for x in range(512))
    document = b"".join(
        source.choice([source.randbytes(400), b"endobj\nendstream\n%d 0 obj" % number, prose[:400].encode()])
        for number in range(1_500)
    )
    return {
        "12.1": (True, json.dumps(people, ensure_ascii=False, indent=1)), "12.2": (False, picture),
        "12.3": (False, prose.encode()), "12.4": (True, page * 3), "12.5": (False, document),
    }


TEXTS = texts()


def slices(data: str | bytes, size: int, count: int) -> Iterator[bytes]:
    """One after the other, and from the start again at the end."""
    at = 0
    for _ in range(count):
        piece = (data[at:] + data * (size // len(data) + 1))[:size]
        at = (at + size) % len(data)
        yield piece.encode() if isinstance(piece, str) else piece


def deflated(payload: bytes, bits: int = 15) -> bytes:
    press = zlib.compressobj(wbits=-bits)
    whole = press.compress(payload) + press.flush(zlib.Z_SYNC_FLUSH)
    assert whole.endswith(TAIL)
    return whole[:-len(TAIL)]


def inflated(wire: Wire, payload: bytes, bits: int = 15) -> bytes:
    """What a client with no more than this window makes of an answer."""
    return zlib.decompressobj(wbits=-bits).decompress(payload + TAIL) if wire.is_compressed else payload


def count(size: int) -> int:
    """The suite's thousand where they take a second or so. MARTLET_WHOLE_SUITE=1: everywhere, which takes minutes."""
    is_whole = size <= 1024 or os.environ.get("MARTLET_WHOLE_SUITE") == "1"
    return MESSAGES_WHOLE if is_whole else MESSAGES


def there_and_back(
    wire: Wire, is_text: bool, data: str | bytes, size: int, cut: int, bits: int = 15, messages: int = MESSAGES
) -> None:
    opcode, name = (TEXT, "text") if is_text else (BINARY, "binary")
    for payload in slices(data, size, messages):
        small = deflated(payload)
        wire.send(fragments(opcode, small, cut, RSV1) if cut else frame(opcode, small, rsv=RSV1))
        kind, answer = wire.next()
        assert kind == name and inflated(wire, answer, bits) == payload
        # Shorter messages do not gain enough, longer ones than the window go as they are.
        assert not wire.is_compressed or 1024 <= len(payload) <= (2**bits if bits < 15 else 2**40)


def goodbye(wire: Wire) -> None:
    wire.send(closing())
    assert wire.next() == ("close", 1000)
    assert wire.next() == ("end", None)


@pytest.mark.parametrize("section", TEXTS)
@pytest.mark.parametrize(("size", "cut"), SIZES)
def test_compressed_messages_come_back(echo: str, section: str, size: int, cut: int) -> None:
    with Wire(echo, extensions="permessage-deflate" + CLIENT) as wire:
        assert wire.extensions == AGREED
        there_and_back(wire, *TEXTS[section], size, cut, messages=count(size))
        goodbye(wire)


@pytest.mark.parametrize("section", [*OFFERS, "13.7"])
@pytest.mark.parametrize(("size", "cut"), SIZES)
def test_every_offer_is_met(echo: str, section: str, size: int, cut: int) -> None:
    # The last makes three offers, the one it likes best first.
    chosen = [OFFERS[each] for each in (["13.5", "13.2", "13.1"] if section == "13.7" else [section])]
    with Wire(echo, extensions=", ".join("permessage-deflate" + more + CLIENT for more in chosen)) as wire:
        bits = 9 if "=9" in chosen[0] else 15
        window = f"; server_max_window_bits={bits}" if "bits" in chosen[0] else ""
        assert wire.extensions == AGREED + window
        there_and_back(wire, *TEXTS["12.1"], size, cut, bits, count(size))
        goodbye(wire)


@pytest.mark.parametrize("bits", range(8, 16))
def test_no_answer_reaches_back_beyond_the_window(echo: str, bits: int) -> None:
    offer = f'permessage-deflate; server_max_window_bits="{bits}"; client_max_window_bits={bits}'
    with Wire(echo, extensions=offer) as wire:
        assert wire.extensions == f"{AGREED}; server_max_window_bits={bits}"
        compressed = set()
        for size in (1, 1023, 1024, *(2**step + more for step in range(10, 17) for more in (0, 1))):
            payload = bytes(random.Random(size).choices(b"abcd", k=size))
            wire.send(frame(BINARY, deflated(payload, max(bits, 9)), rsv=RSV1))
            kind, answer = wire.next()
            assert kind == "binary" and inflated(wire, answer, bits) == payload
            if wire.is_compressed:
                compressed.add(size)
        assert max(compressed, default=0) == (65537 if bits == 15 else 2**bits if bits > 9 else 0)


@pytest.mark.parametrize(("offer", "status"), [
    ("permessage-deflate; unknown", 101), ("permessage-deflate; server_max_window_bits", 101),
    ("permessage-deflate; server_max_window_bits=7", 101), ("permessage-deflate; server_max_window_bits=016", 101),
    ("permessage-deflate; client_max_window_bits=16", 101), ("permessage-bzip2", 101), ("", 101),
    ("permessage-deflate; client_no_context_takeover=1", 101),
    ("permessage-deflate; client_max_window_bits; client_max_window_bits", 101),
    ("permessage-deflate;", 400), ('permessage-deflate; server_max_window_bits="1', 400), ("=", 400),
])
def test_an_offer_that_cannot_be_met_is_declined_or_refused(echo: str, offer: str, status: int) -> None:
    if status != 101:
        with pytest.raises(Refused) as refused:
            Wire(echo, extensions=offer)
        assert refused.value.status == status
        return
    with Wire(echo, extensions=offer) as wire:
        assert wire.extensions == ""
        wire.send(frame(TEXT, b"a"))
        assert wire.next() == ("text", b"a")
        # Without agreement the bit is a fault (3.4).
        wire.send(frame(TEXT, deflated(b"a"), rsv=RSV1))
        assert wire.next() == ("close", 1002)


@pytest.mark.parametrize(("server_bits", "context"), [(15, True), (15, False), (12, True), (9, False)])
def test_wsproto_understands_and_is_understood(echo: str, server_bits: int, context: bool) -> None:
    connection = WSConnection(ConnectionType.CLIENT)
    offer = PerMessageDeflate(not context, 15, not context, server_bits)
    sent = connection.send(Request(host="echo", target="/", extensions=[offer]))
    with Wire.bare(echo) as wire:
        wire.send(sent)
        for size in (0, 5, 2_000, 5_000, 200_000):
            for section in ("12.1", "12.2"):
                is_text, data = TEXTS[section]
                message = (data * 2)[:size]
                event = (TextMessage if is_text else BytesMessage)(data=message)
                if connection.state.name == "CONNECTING":
                    assert isinstance(next_event(wire, connection), AcceptConnection) and offer.enabled()
                wire.send(connection.send(event))
                assert whole(wire, connection) == message
        wire.send(connection.send(CloseConnection(code=1000)))
        assert next_event(wire, connection).code == 1000


def next_event(wire: Wire, connection: WSConnection) -> object:
    while (event := next(connection.events(), None)) is None:
        connection.receive_data(wire.take())
    return event


def whole(wire: Wire, connection: WSConnection) -> str | bytes:
    parts = []
    while not parts or not parts[-1].message_finished:
        parts.append(next_event(wire, connection))
    return (b"" if isinstance(parts[0], BytesMessage) else "").join(part.data for part in parts)


# What was agreed to and is not kept.

HELLO = bytes.fromhex("f248cdc9c90700")  # RFC 7692 §7.2.3.1


@pytest.mark.parametrize(("frames", "expected"), [
    ([frame(TEXT, HELLO, rsv=RSV1)], ("text", b"Hello")),
    ([frame(TEXT, HELLO[:3], False, RSV1), frame(CONTINUATION, HELLO[3:])], ("text", b"Hello")),
    ([frame(TEXT, b"\x00\x05\x00\xfa\xffHello\x00", rsv=RSV1)], ("text", b"Hello")),
    ([frame(TEXT, bytes.fromhex("f348cdc9c9070000"), rsv=RSV1)], ("text", b"Hello")),
    ([frame(TEXT, bytes.fromhex("f248050000 00ffffcac9c90700"), rsv=RSV1)], ("text", b"Hello")),
    ([frame(TEXT, b"\x00", rsv=RSV1)], ("text", b"")), ([frame(TEXT, b"plain")], ("text", b"plain")),
    ([frame(PING, b"", rsv=RSV1)], ("close", 1002)),
    ([frame(TEXT, HELLO[:3], False, RSV1), frame(CONTINUATION, HELLO[3:], rsv=RSV1)], ("close", 1002)),
    ([frame(TEXT, HELLO[:4], rsv=RSV1)], ("close", 1007)), ([frame(TEXT, b"\xff" * 9, rsv=RSV1)], ("close", 1007)),
    ([frame(TEXT, deflated(b"\xed\xa0\x80"), rsv=RSV1)], ("close", 1007)),
    ([frame(BINARY, deflated(bytes(65 * 1024 * 1024)), rsv=RSV1)], ("close", 1009)),
], ids=["one", "fragments", "stored", "final", "two blocks", "empty", "plain", "ping", "again", "cut", "noise", "utf-8",
        "bomb"])
def test_what_the_rfc_shows_is_read_and_what_it_forbids_is_not(
    echo: str, frames: list[bytes], expected: tuple[str, object]
) -> None:
    with Wire(echo, extensions="permessage-deflate") as wire, Wire(echo, extensions="permessage-deflate") as other:
        wire.send(frames)
        assert wire.next() == expected
        if expected[0] == "close":
            assert wire.next() == ("end", None)
        else:
            # The context is not taken over, so that "as before" is before the start (RFC 7692 §7.2.3.2).
            wire.send(frame(TEXT, bytes.fromhex("f200110000"), rsv=RSV1))
            assert wire.next() == ("close", 1007)
        other.pong(b"still here")


@pytest.fixture
def in_chat(stack: Stack, token: str) -> Callable[..., Wire]:
    def greet(offer: str | None, token: str = token) -> Wire:
        wire = Wire(stack.chat_urls[0], "martlet.v1", offer)
        hello = json.dumps({"type": "hello", "token": token}).encode()
        wire.send(frame(TEXT, deflated(hello), rsv=RSV1) if offer else frame(TEXT, hello))
        assert json.loads(inflated(wire, wire.next()[1]))["type"] == "ready"
        return wire

    return greet


def test_a_message_reaches_each_as_they_asked(accepted: Callable, in_chat: Callable[..., Wire]) -> None:
    them = accepted()
    offers = [None, "permessage-deflate", "permessage-deflate; server_max_window_bits=11"]
    windows = [0, 2**40, 2**11]
    with ExitStack() as open_wires:
        wires = [open_wires.enter_context(in_chat(offer, them.applicant.jwt)) for offer in offers]
        for number, size in enumerate((100, 1_200, 5_000, 1_200)):
            body = "So many words " * (size // 14)
            said = {"type": "send", "room": them.room, "id": f"{number}", "body": body}
            wires[0].send(frame(TEXT, json.dumps(said).encode()))
            for wire, window in zip(wires, windows):
                message: dict = {}
                while message.get("type") != "message":
                    payload = wire.next()[1]
                    message = json.loads(inflated(wire, payload, min(window.bit_length() - 1, 15) if window else 15))
                assert message["body"] == body
                assert wire.is_compressed == (1_024 <= len(body) < window)


def test_a_bomb_ends_its_own_chat_only(in_chat: Callable[..., Wire]) -> None:
    with in_chat("permessage-deflate") as neighbour, in_chat("permessage-deflate; server_max_window_bits=10") as wire:
        assert wire.extensions == f"{AGREED}; server_max_window_bits=10"
        wire.send(frame(TEXT, deflated(b'{"type":"dance"}'), rsv=RSV1))
        assert json.loads(wire.next()[1])["code"] == "invalid"
        wire.send(frame(TEXT, deflated(b" " * 100_000_000), rsv=RSV1))
        assert wire.next() == ("close", 1009)
        neighbour.pong(b"still here")
