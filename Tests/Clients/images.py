"""Pictures made by hand, so that the tests need no library and know every byte."""

import struct
import zlib


def png(width: int, height: int, seed: int = 0) -> bytes:
    """An RGB picture: a gradient, different for each seed."""
    rows = bytearray()
    for row in range(height):
        rows.append(0)
        shade = (row * 255 // height + seed) % 256
        rows += bytes((shade, 255 - shade, seed % 256)) * width
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(rows), 6)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def chunk(name: bytes, content: bytes) -> bytes:
    check = zlib.crc32(name + content)
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", check)


def size(image: bytes) -> tuple[int, int]:
    """Of a PNG, by its header."""
    assert image[:8] == b"\x89PNG\r\n\x1a\n", image[:16]
    return struct.unpack(">II", image[16:24])
