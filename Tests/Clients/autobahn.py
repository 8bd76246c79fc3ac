"""The Autobahn suite's cases of sections 1 to 7 and 10, by their numbers: what is sent, and what must come of it.

The list is that of crossbario/autobahn-testsuite (case/*.py); of its outcomes only the strict ones count here. Where
the suite waits a second to see that nothing happens, ours goes on at once: what comes too early comes out of order.
"""

from dataclasses import dataclass, field
from typing import Iterator

from unicode_cases import GREEK, sequences
from wire import BINARY, CONTINUATION, PING, PONG, TEXT, Event, closing, fragments, frame


@dataclass
class Part:
    """Bytes, and what is answered to them before anything else is sent."""

    frames: list[bytes]
    expected: list[Event] = field(default_factory=list)


@dataclass
class Case:
    number: str
    parts: list[Part]
    # What the server's close frame says.
    code: int | None = 1000
    # Whether the client says the close, behind what was expected; else it is in the parts, or the server's to say.
    closes: bool = False
    # Written in pieces of this many bytes; each frame by itself when `apart`.
    chop: int = 0
    apart: bool = False

    @property
    def events(self) -> list[Event]:
        return [event for part in self.parts for event in part.expected]

    @property
    def bytes(self) -> bytes:
        return b"".join(sent for part in self.parts for sent in part.frames)


def good(number: str, frames: list[bytes], *expected: Event, **more: object) -> Case:
    return Case(number, [Part(frames, list(expected))], closes=True, **more)


def fault(number: str, frames: list[bytes], *expected: Event, code: int = 1002, **more: object) -> Case:
    return Case(number, [Part(frames, list(expected))], code=code, **more)


HELLO = b"Hello, world!"
NOISE = b"\x00\xff\xfe\xfd\xfc\xfb\x00\xff"


def lengths() -> Iterator[Case]:
    for section, opcode, byte in (("1.1", TEXT, b"*"), ("1.2", BINARY, b"\xfe")):
        name = "text" if opcode == TEXT else "binary"
        for number, count in enumerate((0, 125, 126, 127, 128, 65535, 65536, 65536), 1):
            payload = byte * count
            chop = 997 if number == 8 else 0
            yield good(f"{section}.{number}", [frame(opcode, payload)], (name, payload), chop=chop)


def pings() -> Iterator[Case]:
    for number, payload, chop in (
        (1, b"", 0), (2, HELLO, 0), (3, NOISE, 0), (4, b"\xfe" * 125, 0), (6, b"\xfe" * 125, 1),
    ):
        yield good(f"2.{number}", [frame(PING, payload)], ("pong", payload), chop=chop)
    yield fault("2.5", [frame(PING, b"\xfe" * 126)])
    yield Case("2.7", [Part([frame(PONG), closing()])])
    yield Case("2.8", [Part([frame(PONG, b"unasked"), closing()])])
    yield good("2.9", [frame(PONG, b"unasked"), frame(PING, b"asked")], ("pong", b"asked"))
    ten = [b"payload-%d" % number for number in range(10)]
    for number, chop in ((10, 0), (11, 1)):
        frames = [frame(PING, payload) for payload in ten]
        yield good(f"2.{number}", frames, *(("pong", payload) for payload in ten), chop=chop)


def reserved() -> Iterator[Case]:
    yield fault("3.1", [frame(TEXT, HELLO, rsv=1)])
    for number, rsv, more in ((2, 2, {}), (3, 3, {"apart": True}), (4, 4, {"chop": 1})):
        frames = [frame(TEXT, HELLO), frame(TEXT, HELLO, rsv=rsv), frame(PING)]
        yield fault(f"3.{number}", frames, ("text", HELLO), **more)
    yield fault("3.5", [frame(BINARY, NOISE, rsv=5)])
    yield fault("3.6", [frame(PING, HELLO, rsv=6)])
    yield fault("3.7", [frame(8, rsv=7)])
    for section, opcodes in (("4.1", range(3, 8)), ("4.2", range(11, 16))):
        for number, opcode in enumerate(opcodes, 1):
            payload = HELLO if number in (2, 4, 5) else b""
            if number <= 2:
                yield fault(f"{section}.{number}", [frame(opcode, payload)])
                continue
            frames = [frame(TEXT, HELLO), frame(opcode, payload), frame(PING)]
            yield fault(f"{section}.{number}", frames, ("text", HELLO), chop=1 if number == 5 else 0)


def fragmented() -> Iterator[Case]:
    # In one write, frame by frame, byte by byte.
    ways: list[dict] = [{}, {"apart": True}, {"chop": 1}]
    for number, opcode in ((1, PING), (2, PONG)):
        yield fault(f"5.{number}", [frame(opcode, b"1", False), frame(CONTINUATION, b"2")])
    one, two = frame(TEXT, b"fragment1", False), frame(CONTINUATION, b"fragment2")
    whole, pong = ("text", b"fragment1fragment2"), ("pong", b"ping payload")
    for number, way in enumerate(ways):
        yield good(f"5.{3 + number}", [one, two], whole, **way)
        yield good(f"5.{6 + number}", [one, frame(PING, b"ping payload"), two], pong, whole, **way)
        for first, fin in ((9, True), (12, False)):
            stray = frame(CONTINUATION, b"nothing to continue", fin)
            yield fault(f"5.{first + number}", [stray, frame(TEXT, HELLO)], **way)
    yield fault("5.15", [one, two, frame(CONTINUATION, b"3", False), frame(TEXT, b"4")], whole)
    for number, fin in ((16, False), (17, True)):
        frames = [frame(CONTINUATION, b"1", fin), frame(TEXT, b"2", False), frame(CONTINUATION, b"3")]
        yield fault(f"5.{number}", frames * 2)
    yield fault("5.18", [one, frame(TEXT, b"fragment2")])
    pieces = [b"fragment%d" % number for number in range(1, 6)]
    for number, apart in ((19, False), (20, True)):
        five = fragments(TEXT, b"".join(pieces), 9)
        parts = [
            Part([*five[:2], frame(PING, b"pongme 1!")], [("pong", b"pongme 1!")]),
            Part([*five[2:4], frame(PING, b"pongme 2!"), five[4]],
                 [("pong", b"pongme 2!"), ("text", b"".join(pieces))]),
        ]
        yield Case(f"5.{number}", parts, closes=True, apart=apart)


def unicode() -> Iterator[Case]:
    middle = [frame(TEXT, b"", False), frame(CONTINUATION, HELLO, False), frame(CONTINUATION)]
    empty = [frame(TEXT, b"", False), frame(CONTINUATION, b"", False), frame(CONTINUATION)]
    yield good("6.1.1", [frame(TEXT)], ("text", b""))
    yield good("6.1.2", empty, ("text", b""))
    yield good("6.1.3", middle, ("text", HELLO))
    text = "Hello-µ@ßöäüàá-UTF-8!!".encode()
    yield good("6.2.1", [frame(TEXT, text)], ("text", text))
    at = len("Hello-µ@ßöä".encode())
    yield good("6.2.2", [frame(TEXT, text[:at], False), frame(CONTINUATION, text[at:])], ("text", text))
    yield good("6.2.3", fragments(TEXT, text, 1), ("text", text))
    yield good("6.2.4", fragments(TEXT, GREEK, 1), ("text", GREEK))
    surrogate = GREEK + b"\xed\xa0\x80edited"
    yield fault("6.3.1", [frame(TEXT, surrogate)], code=1007)
    yield fault("6.3.2", fragments(TEXT, surrogate, 1), code=1007)
    # Refused at the byte that cannot be right: the rest is never sent.
    large = GREEK + b"\xf4\x90\x80\x80edited"
    ping = frame(PING, b"so far")
    for number, first, second in ((1, 11, 15), (2, 12, 13)):
        begun = Part([frame(TEXT, large[:first], False), ping], [("pong", b"so far")])
        yield Case(f"6.4.{number}", [begun, Part([frame(CONTINUATION, large[first:second], False)])], code=1007)
        cut = frame(TEXT, large)[:second - len(large)]
        split = len(cut) - second + first
        yield Case(f"6.4.{number + 2}", [Part([cut[:split]]), Part([cut[split:]])], code=1007)
    for number, valid, payload in sequences():
        if valid:
            yield good(number, [frame(TEXT, payload)], ("text", payload))
        else:
            yield fault(number, [frame(TEXT, payload)], code=1007)


def closes() -> Iterator[Case]:
    hello = b"Hello World!"
    yield good("7.1.1", [frame(TEXT, hello)], ("text", hello))
    behind = {2: [frame(8)], 3: [frame(PING)], 4: [frame(TEXT, hello)]}
    for number, frames in behind.items():
        yield Case(f"7.1.{number}", [Part([closing(), *frames])])
    one, two = frame(TEXT, b"fragment1", False), frame(CONTINUATION, b"fragment2")
    yield Case("7.1.5", [Part([one, closing(), two])])
    long = (b"BAsd7&jh23" * 26_215)[:256 * 1024]
    frames = [frame(TEXT, long), frame(TEXT, hello), closing(), frame(PING)]
    yield Case("7.1.6", [Part(frames, [("text", long), ("text", hello)])])
    yield Case("7.3.1", [Part([closing(None)])], code=None)
    yield fault("7.3.2", [frame(8, b"a")])
    yield Case("7.3.3", [Part([closing()])])
    yield Case("7.3.4", [Part([closing(reason=hello)])])
    yield Case("7.3.5", [Part([closing(reason=b"*" * 123)])])
    yield fault("7.3.6", [closing(reason=b"*" * 124)])
    yield fault("7.5.1", [closing(reason=GREEK + b"\xed\xa0\x80edited")], code=1007)
    for number, code in enumerate((1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999), 1):
        yield Case(f"7.7.{number}", [Part([closing(code)])], code=code)
    for number, code in enumerate((0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999), 1):
        yield fault(f"7.9.{number}", [closing(code)])
    # Undefined in the suite's words; RFC 6455 §7.4.2 knows no such codes.
    for number, code in enumerate((5000, 65535), 1):
        yield fault(f"7.13.{number}", [closing(code)])


def auto_fragmented() -> Iterator[Case]:
    payload = b"*" * 65536
    frames = fragments(TEXT, payload, 1300)
    assert len(frames) == 51
    yield good("10.1.1", frames, ("text", payload))


def all_cases() -> list[Case]:
    groups = (lengths, pings, reserved, fragmented, unicode, closes, auto_fragmented)
    cases = [case for group in groups for case in group()]
    return sorted(cases, key=lambda case: [int(number) for number in case.number.split(".")])
