"""Files for the measures of media: those of comparable systems where this machine has them, made ones elsewhere; and
bombs, which are always made."""

import os
import struct
import subprocess
import zipfile
import zlib
from pathlib import Path

from stand import ROOT

SHARED = Path(os.environ.get("MARTLET_SHARED", ROOT.parent / "shared")) / "files"
CV_PAGES = 60  # Of the long document.
LINES = 45


def pictures(folder: Path) -> list[Path]:
    found = sorted((SHARED / "images").glob("*")) if SHARED.is_dir() else []
    if found:
        return found
    for number in range(4):
        for kind in ("jpg", "png", "webp"):
            path = folder / f"made{number}.{kind}"
            if not path.exists():
                command = ["vips", "perlin", str(path), "1800", "1200", "--cell-size", "64", "--seed", str(number)]
                subprocess.run(command, check=True)
    return sorted(folder.glob("made*"))


def curricula(folder: Path) -> list[Path]:
    """PDFs of a few pages."""
    found = sorted((SHARED / "resumes").glob("*.pdf")) if SHARED.is_dir() else []
    if not found:
        found = [folder / f"made{number}.pdf" for number in range(4)]
        for path in found:
            path.write_bytes(pdf([page(number) for number in range(3)]))
    return found


def long_document(folder: Path) -> Path:
    """A PDF with so many pages that the start of a program does not count."""
    path = folder / "long.pdf"
    cvs = curricula(folder)
    subprocess.run(["pdfunite", *map(str, (cvs * CV_PAGES)[: CV_PAGES // 2]), str(path)], check=True)
    return path


def page(number: int) -> bytes:
    words = "Engineer responsible for servers and databases since 2018 in Berlin with Swift and PostgreSQL"
    lines = b" T* ".join(b"(%d %s) Tj" % (number + line, words.encode()) for line in range(LINES))
    return b"BT /F1 10 Tf 14 TL 40 800 Td " + lines + b" ET"


def pdf(contents: list[bytes], packed: bool = False) -> bytes:
    """Pages with given content streams; `packed`: they are deflated already."""
    kids = b" ".join(b"%d 0 R" % (4 + number * 2) for number in range(len(contents)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, len(contents)),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    how = b" /Filter /FlateDecode" if packed else b""
    for number, content in enumerate(contents):
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> "
            b"/Contents %d 0 R >>" % (5 + number * 2)
        )
        objects.append(b"<< /Length %d%s >>\nstream\n%s\nendstream" % (len(content), how, content))
    out, offsets = bytearray(b"%PDF-1.4\n"), []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return bytes(out) + b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, table)


def png(width: int, height: int, depth: int, colour: int, interlaced: bool, rows: bytes) -> bytes:
    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, int(interlaced))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def zeros(count: int) -> bytes:
    """So many zeros, deflated, without ever having them all."""
    packer, piece = zlib.compressobj(9), bytes(1 << 20)
    packed = b"".join(packer.compress(piece) for _ in range(count >> 20))
    return packed + packer.compress(bytes(count & ((1 << 20) - 1))) + packer.flush()


def bombs(folder: Path) -> list[Path]:
    """Small files that want to be big."""
    spaces = zlib.compress(b" " * (100 << 20), 9)
    made = {
        "claims.png": png(100_000, 100_000, 8, 6, False, b"x"),
        "bits.png": png(30_000, 30_000, 1, 0, False, zeros(30_000 * 3751)),
        "wide.png": png(19_999, 2_499, 16, 6, False, zeros(2_499 * (19_999 * 8 + 1))),
        "interlaced.png": png(6_500, 6_500, 8, 6, True, zeros(6_500 * 6_500 * 4 + 40_000)),
        "stream.pdf": pdf([spaces], packed=True),
        "streams.pdf": pdf([spaces] * 40, packed=True),
        "words.pdf": pdf([zlib.compress(page(1) * 4_000, 9)] * 8, packed=True),
        "tower.rtf": b"{\\rtf1 " + b"{" * (4 << 20),
        "letters.txt": b"jane@example.org 2018 C++ " * 390_000,
        "depth.rtf": b"{\\rtf1 " + b"\\u8364?" * 1_400_000 + b"}",
    }
    for name, content in made.items():
        (folder / name).write_bytes(content)
    word = b"<w:document xmlns:w='http://schemas.openxmlformats.org/wordprocessingml/2006/main'><w:body>"
    for name, run in {"deep.docx": b"<w:p>", "wide.docx": b"<w:p><w:r><w:t>word</w:t></w:r></w:p>"}.items():
        with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("[Content_Types].xml", "<Types/>")
            archive.writestr("word/document.xml", word + run * ((60 << 20) // len(run)))
    with zipfile.ZipFile(folder / "many.docx", "w") as archive:
        for number in range(60_000):
            archive.writestr(f"word/{number}.xml", b"")
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", word + b"</w:body></w:document>")
    return sorted(folder.iterdir())


def everything(folder: Path) -> list[Path]:
    """All that may come in, bombs first."""
    bombs_folder = folder / "bombs"
    bombs_folder.mkdir(exist_ok=True)
    shared = sorted(path for path in SHARED.rglob("*") if path.is_file()) if SHARED.is_dir() else []
    return bombs(bombs_folder) + shared + ([] if shared else pictures(folder) + curricula(folder))
