"""Uploads that break off, lie, or carry names that are meant to do harm; and disks that are full or read-only."""

import os
import random
import socket
import struct
import subprocess
from email.message import Message
from pathlib import Path
from typing import Iterator
from urllib.parse import unquote

import pytest
import requests

from disks import small_disk
from images import png
from lone_site import LoneSite
from pdf import curriculum_vitae
from people import Person
from stack import Stack
from waiting import until

CUTS = 1000
SEED = 20261130
DISK_BYTES = 2 << 20


@pytest.fixture(scope="module")
def site(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoneSite]:
    folder = tmp_path_factory.mktemp("faults")
    own = LoneSite(stack, folder, "faults", {"MARTLET_STORE": str(folder / "store")})
    try:
        own.start()
        yield own
    finally:
        own.stop()


@pytest.fixture
def ada(site: LoneSite) -> Person:
    return Person.register(site.base, "ada")


def stored(site: LoneSite) -> set[str]:
    """Files of the store, temporary ones too."""
    return {str(path) for path in Path(site.environment["MARTLET_STORE"]).rglob("*") if path.is_file()}


def rows(site: LoneSite) -> str:
    return site.stack.sql("SELECT count(*) FROM media", site.database)


def form(content: bytes, name: bytes = b'filename="a.pdf"') -> bytes:
    head = b'--B\r\nContent-Disposition: form-data; name="files"; ' + name + b"\r\nContent-Type: application/pdf\r\n"
    return head + b"\r\n" + content + b"\r\n--B--\r\n"


def head(somebody: Person, length: int, more: str = "") -> bytes:
    return (
        f"POST /api/upload HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {somebody.jwt}\r\n{more}"
        f"Content-Type: multipart/form-data; boundary=B\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


def answer(site: LoneSite, sent: bytes) -> tuple[int, bytes]:
    """Sends all of it, ends, and reads what there is to read."""
    with socket.create_connection(("127.0.0.1", site.port), timeout=30) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        got = b""
        while piece := connection.recv(65536):
            got += piece
    return (int(got.split()[1]) if got else 0), got


def test_connections_that_are_reset_anywhere_in_an_upload_leave_nothing(site: LoneSite, ada: Person) -> None:
    before, count = stored(site), rows(site)
    body = form(curriculum_vitae("Ada") + os.urandom(60_000))
    sent = head(ada, len(body)) + body
    chance = random.Random(SEED)
    for _ in range(CUTS):
        cut = chance.randrange(1, len(sent))
        with socket.create_connection(("127.0.0.1", site.port), timeout=30) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.sendall(sent[:cut])
    until(lambda: stored(site) == before, f"the store has nothing new (seed {SEED})")
    assert rows(site) == count
    assert answer(site, sent)[0] == 200, "the gateway serves on"
    assert len(stored(site) - before) == 1


def test_a_length_that_lies_stores_nothing(site: LoneSite, ada: Person) -> None:
    before, count = stored(site), rows(site)
    body = form(curriculum_vitae("Ada"))
    # Too long: the body ends early. Too short: what is beyond it is no request.
    for length in (len(body) + 1, len(body) + 100_000, len(body) - 5, len(body) - 100, 1, 0):
        status, got = answer(site, head(ada, length) + body)
        assert status == 400, (length, got[:200])
    for length in ("-1", "1e3", "0x10", f"{len(body)}, {len(body)}", "9" * 30):
        status, got = answer(site, head(ada, 0).replace(b"Length: 0", b"Length: " + length.encode()) + body)
        assert status in (400, 413), (length, got[:200])
    status, got = answer(site, head(ada, len(body), f"Content-Length: {len(body) + 1}\r\n") + body)
    assert status == 400
    until(lambda: stored(site) == before, "the store has nothing new")
    assert rows(site) == count


def test_ten_thousand_parts_are_refused_and_nothing_of_them_is_kept(site: LoneSite, ada: Person) -> None:
    before, count = stored(site), rows(site)
    text = b'--B\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n'
    file = b'--B\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n\r\nx\r\n'
    for parts in (text * 10_000, file * 10_000, file + text * 10_000):
        body = parts + b"--B--\r\n"
        status, got = answer(site, head(ada, len(body)) + body)
        assert status in (400, 413) and b'"message"' in got, got[:300]
    until(lambda: stored(site) == before, "the store has nothing new")
    assert rows(site) == count


NAMES = [
    ('filename="../../../etc/passwd"', "passwd"),
    (r'filename="..\\..\\boot.ini"', "boot.ini"),
    ('filename="/etc/cron.d/x"', "x"),
    ('filename="evil\u202efdp.exe"', "evilfdp.exe"),
    ('filename="CON"', "CON"),
    ('filename="COM1.txt"', "COM1.txt"),
    ('filename="😀 Lebenslauf ü.pdf"', "😀 Lebenslauf ü.pdf"),
    (f'filename="{"n" * 296}.pdf"', "n" * 251 + ".pdf"),
    (f'filename="{"ü" * 150}.pdf"', "ü" * 150 + ".pdf"),
    ('filename="a%2F..%2Fb.pdf"', "a%2F..%2Fb.pdf"),
    ('filename="..."', "file"),
    ('filename=" "', "file"),
    ('filename="<script>.pdf"', "<script>.pdf"),
]


@pytest.mark.parametrize(("sent", "name"), NAMES, ids=[str(number) for number in range(len(NAMES))])
def test_names_are_given_back_and_lead_nowhere(site: LoneSite, ada: Person, sent: str, name: str) -> None:
    before = stored(site)
    body = form(curriculum_vitae("Ada"), sent.encode())
    status, got = answer(site, head(ada, len(body), "Connection: close\r\n") + body)
    assert status == 200, got[:500]
    new = stored(site) - before
    root = site.environment["MARTLET_STORE"]
    assert len(new) == 1 and all(path.startswith(f"{root}/up/") and "tmp" not in path[len(root):] for path in new)
    file = ada.get("/api/upload/files?sort=id:desc")[0]
    assert file["name"] == name
    until(lambda: "state" not in ada.get(f"/api/upload/files/{file['id']}"), "the file has been looked at")
    url = ada.get(f"/api/upload/files/{file['id']}")["url"]
    assert url.split("?")[0].isascii() and url.count("/") == 2
    served = requests.get(site.base + url, timeout=15)
    assert served.status_code == 200 and served.headers["X-Content-Type-Options"] == "nosniff"
    disposition = served.headers["Content-Disposition"]
    assert disposition.isascii() and "\r" not in disposition
    # RFC 8187, as a stranger reads it.
    assert unquote(disposition.split("filename*=UTF-8''")[1]) == name
    message = Message()
    message["Content-Disposition"] = disposition
    assert message.get_filename()


@pytest.mark.parametrize("sent", [b'filename="a\0b"', b'filename="a\x07b"', b'filename="\xff\xfe"', b'filename="a\nb"'])
def test_names_that_are_no_text_are_refused_or_cleaned(site: LoneSite, ada: Person, sent: bytes) -> None:
    before, count = stored(site), rows(site)
    body = form(curriculum_vitae("Ada"), sent)
    status, got = answer(site, head(ada, len(body), "Connection: close\r\n") + body)
    assert status in (200, 400), got[:300]
    if status == 200:
        assert ada.get("/api/upload/files?sort=id:desc")[0]["name"].isprintable()
    else:
        assert stored(site) == before and rows(site) == count


def test_a_boundary_within_the_content_is_content(site: LoneSite, ada: Person) -> None:
    # What only looks like the boundary: without a line before it, with more behind it, without its dashes.
    extra = b"\n--B\n--Bx\r\n-B\r\n --B\r\n--b\r\n--B--x\rB--B--\r\r\n--\r\n"
    content = curriculum_vitae("Ada") + b"\n%" + extra * 50
    body = form(content.replace(b"\r\n--Bx", b"\n--Bx").replace(b"\r\n--B--x", b"\n--B--x"))
    content = body[body.index(b"\r\n\r\n") + 4 : -len(b"\r\n--B--\r\n")]
    before = stored(site)
    status, got = answer(site, head(ada, len(body), "Connection: close\r\n") + body)
    assert status == 200, got[:300]
    (path,) = stored(site) - before
    assert Path(path).read_bytes() == content


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of two megabytes."""
    with small_disk(tmp_path, DISK_BYTES) as folder:
        yield folder


def test_a_disk_that_is_full_or_read_only_is_told_and_recovered_from(
    stack: Stack, disk: Path, tmp_path: Path
) -> None:
    site = LoneSite(stack, tmp_path, "disk", {"MARTLET_STORE": str(disk / "store")})
    cv = ("cv.pdf", curriculum_vitae("Ada"), "application/pdf")
    try:
        site.start()
        ada = Person.register(site.base, "ada")
        file = site.upload(ada, *cv)
        before = stored(site)
        # More than there is room for, which was seen only in the middle.
        big = [("files", ("big.png", png(10, 10) + os.urandom(DISK_BYTES + 1000), "image/png"))]
        assert ada.http.post(f"{site.base}/api/upload", files=big, timeout=60).status_code == 503
        assert stored(site) == before

        filler = disk / "filler"
        with pytest.raises(OSError), filler.open("wb", buffering=0) as out:
            while out.write(os.urandom(4096)):
                pass
        site.refused(ada)
        assert site.readiness()[0] == 200 and "No space left" in site.readiness()[1]
        assert site.metric("martlet_store_up") == 0 and stored(site) == before
        assert ada.get("/api/jobs") and requests.get(site.base + file["url"], timeout=15).status_code == 200
        filler.unlink()
        until(lambda: site.readiness() == (200, "ready\n"), "the gateway has noticed the room")
        site.upload(ada, *cv)

        before = stored(site)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        site.refused(ada)
        assert "Read-only" in site.readiness()[1] and stored(site) == before
        assert requests.get(site.base + file["url"], timeout=15).status_code == 200
        subprocess.run(["mount", "-o", f"remount,rw,size={DISK_BYTES}", str(disk)], check=True)
        until(lambda: site.readiness() == (200, "ready\n"), "the gateway has noticed that it may write")
        site.upload(ada, *cv)
    finally:
        site.stop()
