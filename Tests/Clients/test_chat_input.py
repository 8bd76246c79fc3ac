"""What the chat makes of those who may not, and of texts of every size."""

import json
import re
import struct
import time
from contextlib import suppress
from typing import Any, Callable, Iterator
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import ConnectionClosed

from chat import Chat
from people import Person
from stack import Stack
from tap import Tap
from test_bad_input import LATER
from tokens import claims, signed
from waiting import AT_ONCE_SECONDS_MAX, until
from wire import TEXT, Wire, closing, frame

SAME_SECONDS_MAX = 30
BODY_BYTES_MAX = 65_536  # docs/chat-protocol.md
HINT_BYTES_MAX = 200  # Of a NOTIFY: what is more is data, and belongs into a row.
NewPerson = Callable[[str], Person]


def words(fields: dict[str, Any]) -> bytes:
    return frame(TEXT, json.dumps(fields).encode())


# Tokens.


@pytest.fixture(scope="module")
def ada(stack: Stack) -> Person:
    return Person.register(stack.base, "ada")


@pytest.fixture(scope="module")
def secret(stack: Stack) -> str:
    return (stack.folder / "secret").read_text()


def greeting_is_refused(stack: Stack, *frames: bytes) -> None:
    for url in stack.chat_urls:
        with Wire(url, "martlet.v1") as wire:
            began = time.monotonic()
            wire.send(frames)
            assert wire.next() == ("close", 4401), "and not a word before it"
            assert time.monotonic() - began < AT_ONCE_SECONDS_MAX
            wire.send(closing())
            assert wire.next() == ("end", None)


@pytest.mark.parametrize("kind", [
    "empty", "garbage", "long", "cut", "other secret", "no algorithm", "expired", "other person",
])
def test_a_wrong_token_is_refused_within_a_second(stack: Stack, secret: str, ada: Person, kind: str) -> None:
    good = claims(ada.jwt)
    head, _, code = ada.jwt.split(".")
    # As it is, signed by us, it is taken.
    peer = Chat.hello(stack.chat_urls[0], signed(good, secret))
    assert peer.ready["user"] == ada.id
    peer.close()
    token = {
        "empty": "", "garbage": "a.b.c", "long": "x" * 100_000, "cut": ada.jwt[:-1],
        "other secret": signed(good, secret[::-1]), "no algorithm": signed(good, secret, "none"),
        "expired": signed({**good, "exp": int(time.time()) - 1}, secret),
        "other person": ".".join([head, signed({**good, "id": good["id"] - 1}, secret).split(".")[1], code]),
    }[kind]
    greeting_is_refused(stack, words({"type": "hello", "token": token}))


@pytest.mark.parametrize("first", [
    {"type": "hello"}, {"type": "hello", "token": None}, {"type": "join", "room": 1}, {"type": "dance"}, {}, [],
    {"type": "send", "room": 1, "id": "a", "body": "b"},
])
def test_who_does_not_greet_first_is_refused(stack: Stack, first: Any) -> None:
    greeting_is_refused(stack, words(first))


@pytest.mark.parametrize("resume", [{"1": -1}, {"1": 2**64}, {"a": 1}, [], "1"])
def test_a_wrong_resume_is_told_from_a_wrong_token(stack: Stack, resume: Any) -> None:
    peer = Chat(stack.chat_urls[0])
    peer.send({"type": "hello", "token": "x", "resume": resume})
    assert peer.closed() == 1007


def test_a_token_that_was_given_back_is_refused_everywhere(stack: Stack, person: NewPerson) -> None:
    somebody = person("ada")
    somebody.ask("POST", "/api/auth/logout", 204)
    for url in stack.chat_urls:
        peer = Chat(url)
        peer.send({"type": "hello", "token": somebody.jwt})
        # Others learn of it within a second; a socket that is let in before that is closed then.
        assert peer.closed(AT_ONCE_SECONDS_MAX) == 4401


def test_a_connection_ends_with_its_token(stack: Stack, secret: str, ada: Person) -> None:
    for seconds in (2, 4, 8, 16, 32):  # As soon as the machine can greet within it.
        ends = int(time.time()) + seconds
        peer = Chat(stack.chat_urls[0])
        peer.send({"type": "hello", "token": signed({**claims(ada.jwt), "exp": ends}, secret)})
        with suppress(ConnectionClosed):
            peer.wait("ready")
            break
    assert peer.closed() == 4401
    assert 0 <= time.time() - ends < AT_ONCE_SECONDS_MAX


# Strangers.


@pytest.fixture
def tapped(stack: Stack) -> Iterator[tuple[Tap, str]]:
    """A chat whose questions to PostgreSQL are seen, and its URL."""
    url = urlsplit(stack.database_url)
    tap = Tap(url.hostname or "127.0.0.1", url.port or 5432)
    login = f"{url.username or 'postgres'}:{url.password or ''}"
    database = f"postgres://{login}@127.0.0.1:{tap.port}{url.path}?sslmode=disable"
    process, base = stack.extra_chat("tapped", {"MARTLET_DATABASE_URL": database})
    process.restart()
    yield tap, f"ws{base[4:]}/chat"
    process.stop()
    tap.close()


INTRUSIONS: list[dict[str, Any]] = [
    {"type": "send", "id": "mine", "body": "Let me in"}, {"type": "history"}, {"type": "history", "before": 77_777},
    {"type": "history", "after": 77_777}, {"type": "history", "limit": 7}, {"type": "read", "seq": 77_777},
    {"type": "typing"}, {"type": "join"}, {"type": "edit", "id": "mine", "target": 1, "body": "Let me in"},
    {"type": "delete", "id": "mine", "target": 1}, {"type": "send", "id": "mine", "body": "", "media": 1},
]


def answer(wire: Wire, fields: dict[str, Any], room: int) -> bytes:
    wire.send(words({**fields, "room": room}))
    kind, text = wire.next()
    assert kind == "text"
    return text


def asked_about(tap: Tap, room: int) -> list[tuple[str, bytes]]:
    """The questions that had the room's number in them, with something else in its place."""
    # A number goes as eight bytes behind their count, an array as text behind its length.
    forms = re.compile(re.escape(struct.pack("!iq", 8, room)) + rb"|.{4}\{%d\}" % room, re.DOTALL)
    return [(text, forms.sub(b"<room>", given)) for text, given in tap.take_asked() if forms.search(given)]


def test_a_stranger_cannot_tell_a_room_from_none(
    stack: Stack, tapped: tuple[Tap, str], accepted: Callable, person: NewPerson
) -> None:
    (tap, url), eve = tapped, person("eve")
    room = accepted().room
    while room in (eve.id, 1, 7, 100):  # Numbers that stand in the questions for something else.
        room = accepted().room

    def state() -> str:
        # xmax is where a lock of a row is written, so a room that somebody waits for is seen too.
        return stack.sql(
            f"SELECT r.xmin, r.xmax, r.last_seq, r.ctid FROM rooms r WHERE id = {room} UNION ALL "
            f"SELECT m.xmin, m.xmax, m.last_read_seq, m.ctid FROM room_members m WHERE room_id = {room}"
        )

    before = state()
    with Wire(url, "martlet.v1") as wire:
        wire.send(words({"type": "hello", "token": eve.jwt}))
        assert json.loads(wire.next()[1])["rooms"] == []
        for fields in INTRUSIONS:

            def asks_the_same(fields: Any = fields) -> bool:
                tap.take_asked()
                there = answer(wire, fields, room)
                asked_there = asked_about(tap, room)
                nowhere = answer(wire, fields, LATER)
                asked_nowhere = asked_about(tap, LATER)
                assert json.loads(there)["code"] == "forbidden", fields
                assert there.replace(b"%d" % room, b"") == nowhere.replace(b"%d" % LATER, b""), fields
                return asked_there == asked_nowhere

            # Not at once where the chat reads a room that was made a moment ago, for its own members.
            until(asks_the_same, f"the same is asked for {fields}", SAME_SECONDS_MAX)
            assert state() == before, fields
        # Counting is of many rooms at once, and those of others are left out.
        wire.send(words({"type": "unread", "rooms": [room, LATER]}))
        assert json.loads(wire.next()[1]) == {"type": "unread", "rooms": {}}
        # Leaving what one is not in is no news to anybody.
        wire.send([words({"type": "leave", "room": each}) for each in (room, LATER)])
        wire.pong(b"nothing more")


# Sizes.


def text_of(size: int) -> str:
    """So many bytes, of characters of one to four."""
    pattern = "aß€𝄞"
    whole = pattern * (size // len(pattern.encode()))
    return whole + "." * (size - len(whole.encode()))


def test_texts_of_every_size_arrive_whole_on_every_instance(
    stack: Stack, tapped: tuple[Tap, str], accepted: Callable, chat: Callable[..., Chat]
) -> None:
    them = accepted()
    tap, url = tapped
    sender = chat(them.applicant, 0)
    start = sender.ready["rooms"][0]["last_seq"]
    readers = [sender, chat(them.representative, 0), chat(them.representative, 1), Chat.hello(url, them.applicant.jwt)]
    bodies = [text_of(size) for size in (1, 7_999, 8_000, 8_001, 65_535)]
    bodies += ["𝄞" * (BODY_BYTES_MAX // 4), "x" * BODY_BYTES_MAX, "\x01" * BODY_BYTES_MAX]
    for number, body in enumerate(bodies):
        escaped = number % 2 == 0  # As \\u escapes, or as they are.
        said = {"type": "send", "room": them.room, "id": f"size-{number}", "body": body}
        sender.socket.send(json.dumps(said, ensure_ascii=escaped))
        seq = sender.wait("ack", id=f"size-{number}")["seq"]
        for reader in readers:
            assert reader.wait("message", room=them.room, seq=seq)["body"] == body

    # Whole from the table too: for one who was away, and as history.
    late = Chat.hello(stack.chat_urls[1], them.representative.jwt, {them.room: start})
    assert [each["body"] for each in late.messages(them.room, len(bodies))] == bodies
    late.send({"type": "history", "room": them.room, "before": start + 4, "limit": 3})
    assert [each["body"] for each in late.wait("history")["messages"]] == bodies[:3]
    hints = [payload for channel, payload in tap.notified if channel == "martlet_chat"]
    assert hints and all(len(hint.encode()) <= HINT_BYTES_MAX for hint in hints), "a hint is no message"
    for reader in readers[3:] + [late]:
        reader.close()


@pytest.mark.parametrize("body", [
    text_of(BODY_BYTES_MAX) + "a", "𝄞" * (BODY_BYTES_MAX // 4) + "𝄞", "", "a\0b",
], ids=["a byte", "a character", "empty", "nul"])
def test_a_text_beyond_the_limit_is_refused_whole(
    accepted: Callable, chat: Callable[..., Chat], body: str
) -> None:
    them = accepted()
    sender, other = chat(them.applicant, 0), chat(them.representative, 1)
    seq = sender.ready["rooms"][0]["last_seq"]
    sender.say(them.room, "beyond", body)
    assert sender.wait("error", id="beyond")["code"] == "invalid"
    sender.say(them.room, "fine", "fine")
    assert sender.wait("ack", id="fine")["seq"] == seq + 1, "nothing of it was stored"
    assert other.wait("message", room=them.room)["body"] == "fine"
