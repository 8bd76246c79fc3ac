"""Uploads that are one thing and something else as well, and forms whose parts have names that are meant to do harm."""

import codecs
import gzip
import io
import zipfile
from typing import Any, Callable

import pytest
import requests

from images import png
from pdf import curriculum_vitae
from people import Person
from stack import Stack
from waiting import until

NewPerson = Callable[[str], Person]

SCRIPT = b"<html><body><script>alert(document.domain)</script></body></html>"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
# One pixel (GIF89a specification, appendix), with the size that a comment of JavaScript begins with.
GIF = bytes.fromhex("474946383961 0100 0100 80 00 00 ffffff 000000 2c 00000000 0100 0100 00 02 02 4401 00 3b")


def archive() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        made.writestr("index.html", SCRIPT)
    return out.getvalue()


def objects(stack: Stack) -> set[str]:
    root = stack.folder / "store"
    return {str(path) for path in root.rglob("*") if path.is_file()}


# What it is called and said to be, its bytes, and what it is served as; None: it is refused.
POLYGLOTS: list[tuple[str, str, bytes, str | None]] = [
    ("page.png", "image/png", SCRIPT, None),
    ("page.pdf", "application/pdf", SCRIPT, None),
    ("behind.png", "image/png", png(60, 40) + SCRIPT, "image/png"),
    ("zip.png", "image/png", png(60, 40) + archive(), "image/png"),
    ("script.gif", "image/gif", b"GIF89a/*" + GIF[8:] + b"*/=1;alert(1)", "image/jpeg"),
    ("behind.gif", "image/gif", GIF + b"/*" + SCRIPT, "image/jpeg"),
    ("page.html", "text/html", curriculum_vitae("Ada") + SCRIPT, "application/pdf"),
    ("zip.pdf", "application/pdf", curriculum_vitae("Ada") + archive(), "application/pdf"),
    ("program.pdf", "application/pdf", b"\x7fELF\x02\x01\x01" + bytes(60) + curriculum_vitae("Ada"), None),
    ("jar.docx", "application/octet-stream", archive(), None),
    ("drawing.svg", "image/svg+xml", SVG, None),
    ("drawing.svgz", "image/svg+xml", gzip.compress(SVG), None),
    ("drawing.png", "image/png", codecs.BOM_UTF8 + SVG, None),
    ("drawing.jpg", "image/jpeg", codecs.BOM_UTF16_LE + SVG.decode().encode("utf-16-le"), None),
    ("drawing.gif", "image/gif", b'<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY a "b">]>' + SVG, None),
]


@pytest.mark.parametrize(("name", "said", "content", "served"), POLYGLOTS, ids=[each[0] for each in POLYGLOTS])
def test_what_is_two_things_is_served_as_one_or_refused(
    stack: Stack, person: NewPerson, name: str, said: str, content: bytes, served: str | None
) -> None:
    ada = person("ada")
    files = [("files", (name, content, said))]
    if served is None:
        error = ada.refused_upload("/api/upload", files)
        assert error["message"].endswith((".", "image")) and ada.get("/api/upload/files") == []
        return
    file = ada.ask("POST", "/api/upload", 200, files=files)[0]

    def look() -> dict[str, Any] | None:
        now = ada.get(f"/api/upload/files/{file['id']}")
        return None if "state" in now else now

    file = until(look, "the file has been looked at")
    answer = requests.get(ada.base + file["url"], timeout=15)
    assert answer.status_code == 200 and answer.headers["Content-Type"] == served
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in answer.headers["Content-Security-Policy"]
    # Of a picture nothing is left but the picture. A PDF is what was sent: what keeps it harmless is how it is served.
    if served.startswith("image/"):
        for rest in (b"script", b"alert", b"index.html", b"PK\3\4"):
            assert rest not in answer.content
    else:
        assert answer.content == content


PART_NAMES = [
    "../../etc/passwd", "..\\..\\boot.ini", "/files", "files/../files", "files\u202e", "CON", "COM1", "😀", "n" * 300,
    "ü" * 150, " files", "files ", "FILES", "files[]", "files.", "__proto__", "constructor", "", "%2e%2e%2f",
]


def raw(name: bytes, filename: bytes | None, content: bytes = b"x") -> bytes:
    more = b"" if filename is None else b'; filename="' + filename + b'"'
    head = b'--B\r\nContent-Disposition: form-data; name="' + name + b'"' + more
    return head + b"\r\n\r\n" + content + b"\r\n--B--\r\n"


def post(somebody: Person, body: bytes) -> requests.Response:
    headers = {"Content-Type": "multipart/form-data; boundary=B"}
    return somebody.http.post(f"{somebody.base}/api/upload", data=body, headers=headers, timeout=30)


@pytest.mark.parametrize("name", PART_NAMES, ids=[str(number) for number in range(len(PART_NAMES))])
def test_parts_with_strange_names_are_refused_with_a_sentence_and_leave_nothing(
    stack: Stack, person: NewPerson, name: str
) -> None:
    ada = person("ada")
    sent = name.replace("\\", "\\\\").encode()
    for body in (raw(sent, b"a.pdf", curriculum_vitae("Ada")), raw(sent, None)):
        answer = post(ada, body)
        assert answer.status_code == 400, answer.text
        error = answer.json()["error"]
        # It names the part, and no more of it than a person reads.
        assert error["message"] and len(answer.content) < 4096
    assert ada.get("/api/upload/files") == []
    assert not any("etc" in path or "boot" in path for path in objects(stack))


@pytest.mark.parametrize("name", [b"fi\0les", b"files\0", b"\xff\xfe", b"files\x7f", b"fi\rles", b"fi\nles"])
def test_parts_with_names_that_are_no_text_are_refused(person: NewPerson, name: bytes) -> None:
    ada = person("ada")
    for body in (raw(name, b"a.pdf", curriculum_vitae("Ada")), raw(name, None)):
        assert post(ada, body).status_code == 400
    assert ada.get("/api/upload/files") == []
