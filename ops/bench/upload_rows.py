"""Uploads: what the gateway takes in, beside nginx with the same bytes, and what memory it needs for it."""

import json
import os
import re
import shutil
import socket
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

from gateway_rows import GatewayRows
from measure import Load, Server
from stand import Row, Stand

CLIENTS = 50
FILE_BYTES = 25_000_000  # An attachment may have 25 MiB; two of them are one upload of 50 MB.
GROWTH_MEGABYTES_MAX = 20
CV_BYTES = 10_000_000
CONNECTIONS = 8
UPLOADS = 96  # Of one round: a gigabyte on the disk, removed after it.
ROOM_BYTES = 6 << 30
BOUNDARY = "----bench0123456789"


def form(fields: dict[str, str], name: str, files: list[bytes]) -> list[bytes]:
    """The pieces of a multipart body."""
    pieces = []
    for field, value in fields.items():
        head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{value}\r\n'
        pieces.append(head.encode())
    for content in files:
        head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"; filename="a.pdf"\r\n'
        pieces += [f"{head}Content-Type: application/pdf\r\n\r\n".encode(), content, b"\r\n"]
    return [*pieces, f"--{BOUNDARY}--\r\n".encode()]


class Client:
    """One connection, kept."""

    def __init__(self, base: str):
        url = urlsplit(base)
        self.host = url.netloc
        self.socket = socket.create_connection((url.hostname, url.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, method: str, path: str, headers: dict[str, str], body: list[bytes]) -> int:
        """The status of the answer, which is read whole."""
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self.host}", f"Content-Length: {sum(map(len, body))}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self.socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        for piece in body:
            self.socket.sendall(piece)
        got = b""
        while b"\r\n\r\n" not in got:
            got += self.more()
        head, _, rest = got.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        left = int(length.group(1)) - len(rest) if length else 0
        while left > 0:
            left -= len(self.more())
        return int(head.split()[1])

    def more(self) -> bytes:
        piece = self.socket.recv(1 << 16)
        if not piece:
            raise SystemExit("The server closed the connection in the middle of an answer.")
        return piece


class UploadRows:
    def __init__(self, stand: Stand):
        self.stand = stand
        self.store = stand.folder / "store"

    def empty(self, folder: Path) -> None:
        """Without its files; folders stay, as in a store that is in use."""
        for path in folder.rglob("*"):
            if path.is_file():
                path.unlink()

    def need_room(self) -> None:
        if shutil.disk_usage(self.stand.folder).free < ROOM_BYTES:
            raise SystemExit(f"The measures of uploads need {ROOM_BYTES >> 30} GiB of free disk beneath .local/bench.")

    def upload_memory(self) -> None:
        """50 people send 50 MB each at the same time, as two files; all of it is on the disk before it is removed."""
        self.need_room()
        content = os.urandom(FILE_BYTES)
        people = self.stand.people(CLIENTS)
        server, base = self.stand.gateway()
        with server:
            def upload(person: int, size: int = FILE_BYTES) -> int:
                headers = {"Authorization": f"Bearer {self.stand.token(person)}"}
                headers["Content-Type"] = f"multipart/form-data; boundary={BOUNDARY}"
                return Client(base).send("POST", "/api/upload", headers, form({}, "files", [content[:size]] * 2))

            if upload(people[0], 1000) != 200:
                raise SystemExit("A small upload was refused.")
            before = server.resident_megabytes()
            # From here on the peak counts anew (proc(5), clear_refs).
            Path(f"/proc/{server.child.pid}/clear_refs").write_text("5")
            begun = time.monotonic()
            with ThreadPoolExecutor(CLIENTS) as pool:
                statuses = list(pool.map(upload, people))
            seconds = time.monotonic() - begun
            peak = int(Path(f"/proc/{server.child.pid}/status").read_text().split("VmHWM:")[1].split()[0]) / 1024
        if set(statuses) != {200}:
            raise SystemExit(f"Uploads were refused: {sorted(set(statuses))}")
        self.forget()
        self.stand.rows.append(
            Row("50 uploads of 50 MB, memory in MB", f"{peak - before:.1f} MB more", f"from {before:.0f} MB",
                peak - before, GROWTH_MEGABYTES_MAX, True)
        )
        self.stand.notes.append(
            f"50 uploads of 50 MB: {2 * CLIENTS * FILE_BYTES / 1e6:,.0f} MB in {seconds:.1f} s (the answer waits 5 s "
            "for a worker, of which there is none here)"
        )

    def forget(self) -> None:
        """The bench's uploads, their rows and their objects."""
        for table in ("work_items", "application_events", "applications", "media"):
            self.stand.sql(f"DELETE FROM {table}")
        self.empty(self.store)

    def many(self, server: Server, send: "Sender", after: "After | None" = None) -> Load:
        """UPLOADS on CONNECTIONS connections."""
        before, begun = server.cpu_seconds(), time.monotonic()

        def serve(first: int) -> None:
            client = Client(send.base)
            for number in range(first, UPLOADS, CONNECTIONS):
                status = send(client, number)
                if status not in (200, 201, 204):
                    raise SystemExit(f"An upload was answered with {status}.")
                if after:
                    after(number)

        with ThreadPoolExecutor(CONNECTIONS) as pool:
            list(pool.map(serve, range(CONNECTIONS)))
        seconds = time.monotonic() - begun
        return Load(UPLOADS, UPLOADS / seconds, 0, 0, (server.cpu_seconds() - before) * 1e6 / UPLOADS)

    def uploads(self) -> None:
        """CVs of 10 MB with applications, beside nginx with PUTs of the same bytes."""
        self.need_room()
        content = os.urandom(CV_BYTES)
        dav = self.stand.folder / "dav"
        shutil.rmtree(dav, ignore_errors=True)
        dav.mkdir()
        server, base = self.stand.gateway()
        with server:
            posting = self.posting(base)
            rows = GatewayRows(self.stand)
            front, url = rows.nginx(b"{}", None)
            other_base = url.rsplit("/", 1)[0]
            with front, rows.doors(base, other_base) as (our_door, their_door):

                def ours(at: str) -> Load:
                    load = self.many(server, Apply(self.stand, at, posting, content))
                    self.forget()
                    return load

                def theirs(at: str, after: After | None = None) -> Load:
                    load = self.many(front, Put(at, content), after)
                    self.empty(dav)
                    return load

                mine, other, kept, mine_inside, kept_inside = self.stand.in_turns(
                    lambda: ours(base), lambda: theirs(other_base), lambda: theirs(other_base, After(dav)),
                    lambda: ours(our_door), lambda: theirs(their_door, After(dav)),
                )
        rate = CV_BYTES / 1e6
        for what, own, load, name in (
            ("uploads, beside nginx PUT", mine, other, "nginx, no fsync"),
            ("uploads, beside PUT and fsync", mine, kept, "nginx, client's fsync"),
            ("uploads, through the front door", mine_inside, kept_inside, "nginx, client's fsync"),
        ):
            self.stand.rows.append(
                Row(what, f"{own.per_second * rate:,.0f} MB/s", f"{name} {load.per_second * rate:,.0f} MB/s",
                    own.per_second / load.per_second, 0.7, False)
            )
        self.stand.notes.append(
            f"uploads of {CV_BYTES / 1e6:.0f} MB on {CONNECTIONS} connections: {mine.cpu_microseconds / 1000:.1f} ms "
            f"of CPU each, nginx {other.cpu_microseconds / 1000:.1f} ms. The gateway hashes, checks and counts what "
            "comes, and does an fsync of each file, its folder and the database's log before it answers; nginx does "
            "none at all, so once more with an fsync of each file by the client after nginx's answer"
        )

    def posting(self, base: str) -> int:
        """One that may be applied to."""
        rep = self.stand.people(1)[0]
        fields = {"name": f"Bench {rep}", "email": "a@example.org", "phone": "1", "address": "Berlin", "bio": "x"}
        headers = {"Authorization": f"Bearer {self.stand.token(rep)}"}
        multipart = {**headers, "Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
        body = form({**fields, "category": "Technology"}, "logo", [])
        if Client(base).send("POST", "/api/companies", multipart, body) != 200:
            raise SystemExit("The bench's company was refused.")
        company = int(self.stand.sql(f"SELECT company_id FROM company_members WHERE user_id = {rep}"))
        said = {"name": "Bench", "description": "x", "type": "Long Term", "environment": "Remote", "company": company}
        request = urllib.request.Request(
            f"{base}/api/jobs", json.dumps({"data": said}).encode(), {**headers, "Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request) as answer:
            answer.read()
        return int(self.stand.sql(f"SELECT max(id) FROM job_postings WHERE company_id = {company}"))


class Sender:
    base: str

    def __call__(self, client: Client, number: int) -> int:
        raise NotImplementedError


class Apply(Sender):
    """Each by another person, who has applied to nothing yet."""

    def __init__(self, stand: Stand, base: str, posting: int, content: bytes):
        self.base = base
        self.tokens = [stand.token(person) for person in stand.people(UPLOADS)]
        self.body = form({"job": str(posting)}, "cv", [content])

    def __call__(self, client: Client, number: int) -> int:
        headers = {"Authorization": f"Bearer {self.tokens[number]}"}
        headers["Content-Type"] = f"multipart/form-data; boundary={BOUNDARY}"
        return client.send("POST", "/api/applications", headers, self.body)


class Put(Sender):
    def __init__(self, base: str, content: bytes):
        self.base = base
        self.body = [content]

    def __call__(self, client: Client, number: int) -> int:
        return client.send("PUT", f"/dav/{number}/cv.pdf", {}, self.body)


class After:
    """What the gateway does before it answers, done for nginx."""

    def __init__(self, folder: Path):
        self.folder = folder

    def __call__(self, number: int) -> None:
        descriptor = os.open(self.folder / f"{number}/cv.pdf", os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
