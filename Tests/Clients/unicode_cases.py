"""Texts for a decoder of UTF-8, after Markus Kuhn's UTF-8-test.txt, numbered as the Autobahn suite numbers them."""

from typing import Iterator

GREEK = "κ\u1f79σμε".encode()  # With the accent that takes three bytes.
# A lead byte each with all but the last of its continuation bytes.
CUT = [
    b"\xc0", b"\xe0\x80", b"\xf0\x80\x80", b"\xf8\x80\x80\x80", b"\xfc\x80\x80\x80\x80",
    b"\xdf", b"\xef\xbf", b"\xf7\xbf\xbf", b"\xfb\xbf\xbf\xbf", b"\xfd\xbf\xbf\xbf\xbf",
]
SURROGATES = [b"\xed\xa0\x80", b"\xed\xad\xbf", b"\xed\xae\x80", b"\xed\xaf\xbf"]
LOW = [b"\xed\xb0\x80", b"\xed\xbf\xbf"]


def is_utf8(text: bytes) -> bool:
    try:
        text.decode()
        return True
    except UnicodeDecodeError:
        return False


def wide(code: int, count: int) -> bytes:
    """A number in this many bytes, whether it needs them or not."""
    tail = [0x80 | code >> 6 * place & 0x3F for place in reversed(range(count - 1))]
    return bytes([0xFF00 >> count & 0xFF | code >> 6 * (count - 1), *tail])


def groups() -> Iterator[tuple[bool | None, list[bytes]]]:
    """Section 6.5 and on: whether all texts of a group are UTF-8, None where some are; and the texts."""
    yield True, [b"hello$world", *(f"hello{character}world".encode() for character in "¢€𤭢"), GREEK]
    yield None, [GREEK[:count] for count in range(1, len(GREEK) + 1)]
    # The first and last sequences of each length; those of five and six bytes, and what is beyond U+10FFFF.
    yield True, [b"\x00", b"\xc2\x80", b"\xe0\xa0\x80", b"\xf0\x90\x80\x80"]
    yield False, [b"\xf8\x88\x80\x80\x80", b"\xfc\x84\x80\x80\x80\x80"]
    yield True, [b"\x7f", b"\xdf\xbf", b"\xef\xbf\xbf", b"\xf4\x8f\xbf\xbf"]
    yield False, [b"\xf7\xbf\xbf\xbf", b"\xfb\xbf\xbf\xbf\xbf", b"\xfd\xbf\xbf\xbf\xbf\xbf"]
    yield None, [b"\xed\x9f\xbf", b"\xee\x80\x80", b"\xef\xbf\xbd", b"\xf4\x8f\xbf\xbf", b"\xf4\x90\x80\x80"]
    # Continuation bytes without a lead, leads without continuation.
    yield False, [b"\x80", b"\xbf", *((b"\x80\xbf" * 3)[:count] for count in range(2, 7)), bytes(range(0x80, 0xBF))]
    leads = ((0xC0, 0xDF), (0xE0, 0xEF), (0xF0, 0xF7), (0xF8, 0xFB), (0xFC, 0xFD))
    yield False, [b"".join(bytes([lead, 0x20]) for lead in range(*ends)) for ends in leads]
    yield False, CUT
    yield False, [b"".join(CUT)]
    yield False, [b"\xfe", b"\xff", b"\xfe\xfe\xff\xff"]
    # Overlong: a slash, the longest, NUL.
    for codes in ([0x2F] * 5, [0x7F, 0x7FF, 0xFFFF, 0x1F_FFFF, 0x3FF_FFFF], [0] * 5):
        yield False, [wide(code, count) for count, code in enumerate(codes, 2)]
    yield False, [*SURROGATES, b"\xed\xb0\x80", b"\xed\xbe\x80", b"\xed\xbf\xbf"]
    yield False, [high + low for high in SURROGATES for low in LOW]
    # What no character is assigned to, and what stands for special things, is UTF-8 all the same.
    yield True, [chr(plane << 16 | end).encode() for plane in range(17) for end in (0xFFFE, 0xFFFF)]
    yield True, [chr(code).encode() for code in range(0xFFF9, 0x10000)]


def sequences() -> Iterator[tuple[str, bool, bytes]]:
    """The number of each case, whether its text is UTF-8, and the text."""
    for section, (valid, texts) in enumerate(groups(), 5):
        for number, text in enumerate(texts, 1):
            # The list says it, and Python's own decoder agrees.
            assert valid is None or valid == is_utf8(text), text
            yield f"6.{section}.{number}", is_utf8(text), text
