"""A picture made by hand, so that the tests need no library and know every byte."""

import struct
import zlib


def png(width: int, height: int) -> bytes:
    """A PNG of 8-bit RGB: a gradient, so that its variants are not all one colour."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    row = b"".join(bytes((x * 255 // width, x & 255, 128)) for x in range(width))
    rows = b"".join(b"\0" + bytes([(y * 255 // height)] * 3) + row[3:] for y in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
