"""Uploads and a real clamd: what it finds, and what becomes of uploads while it is away."""

import io
import json
import os
import socket
import threading
import zipfile
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest
import requests

from clamd import EICAR, SIGNATURE, Clamd
from images import png
from lone_site import LoneSite
from pdf import curriculum_vitae, pdf
from people import Person
from stack import Stack, free_ports
from waiting import until

SCAN_SECONDS = 6  # Of one scan in the site's worker: longer than any of these takes.


class Relay:
    """Stands before clamd and passes on; it can do something when so many bytes of a connection have passed."""

    def __init__(self, path: Path, clamd: Path):
        self.clamd = str(clamd)
        self.limit: tuple[int, Callable[[], None]] | None = None  # Once.
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(16)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.carry, args=(near,), daemon=True).start()

    def carry(self, near: socket.socket) -> None:
        with near, socket.socket(socket.AF_UNIX) as far:
            try:
                far.connect(self.clamd)
                threading.Thread(target=self.back, args=(far, near), daemon=True).start()
                count = 0
                while piece := near.recv(4096):
                    count += len(piece)
                    if self.limit and count > self.limit[0]:
                        reached, self.limit = self.limit[1], None
                        reached()
                    far.sendall(piece)
                far.shutdown(socket.SHUT_WR)
            except OSError:
                return

    @staticmethod
    def back(far: socket.socket, near: socket.socket) -> None:
        try:
            while piece := far.recv(4096):
                near.sendall(piece)
            near.shutdown(socket.SHUT_RDWR)
        except OSError:
            return


class Site(LoneSite):
    def __init__(self, stack: Stack, folder: Path):
        self.clamd = Clamd(folder, free_ports(1)[0])
        self.address = folder / "relay.ctl"
        self.relay = Relay(self.address, self.clamd.socket)
        settings = {
            "MARTLET_STORE": str(folder / "store"), "MARTLET_CLAMD": str(self.address),
            "MARTLET_CLAMD_SECONDS": str(SCAN_SECONDS),
        }
        super().__init__(stack, folder, "scanning", settings)

    def start(self) -> None:
        self.clamd.restart()
        super().start()

    def stop(self) -> None:
        super().stop()
        self.relay.listener.close()
        self.clamd.end()

    def worker_readiness(self) -> tuple[int, str]:
        answer = requests.get(self.worker.ready, timeout=10)
        return answer.status_code, answer.text

    def worker_metric(self, name: str) -> float:
        lines = requests.get(self.worker.ready.replace("readyz", "metrics"), timeout=10).text.splitlines()
        return next((float(line.split()[-1]) for line in lines if line.startswith(f"{name} ")), 0)

    def row(self, media: int) -> list[str]:
        """State, reason and sentence."""
        query = f"SELECT state, coalesce(rejection, ''), coalesce(rejection_message, '') FROM media WHERE id = {media}"
        return self.stack.sql(query, self.database).split("\t")

    def stored(self) -> int:
        return sum(path.is_file() for path in Path(self.environment["MARTLET_STORE"]).rglob("*"))

    def send(self, somebody: Person, name: str, content: bytes, kind: str = "application/octet-stream") -> Any:
        """An upload's answer, with its status."""
        files = [("files", (name, content, kind))]
        return somebody.http.post(f"{self.base}/api/upload?kind=cv", files=files, timeout=90)

    def pending(self, somebody: Person, count: int) -> list[int]:
        """CVs that nobody can scan."""
        ids = []
        for number in range(count):
            answer = self.send(somebody, f"cv{number}.pdf", curriculum_vitae(f"Ada {number}"))
            assert answer.status_code == 200 and answer.json()[0]["state"] == "pending", answer.text
            ids.append(answer.json()[0]["id"])
        return ids

    def all_ready(self, ids: list[int]) -> bool:
        return all(self.row(each)[0] == "ready" for each in ids)


@pytest.fixture(scope="module")
def site(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    own = Site(stack, tmp_path_factory.mktemp("scan"))
    try:
        own.start()
        yield own
    finally:
        own.stop()


@pytest.fixture
def ada(site: Site) -> Person:
    return Person.register(site.base, "ada")


def docx(text: str, **parts: bytes) -> bytes:
    """A Word document, with more parts if wanted."""
    out = io.BytesIO()
    types = "http://schemas.openxmlformats.org/package/2006/content-types"
    word = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    main = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    relations = "http://schemas.openxmlformats.org/package/2006/relationships"
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{types}"><Default Extension="rels" '
            'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/word/document.xml" ContentType="{main}"/></Types>',
        )
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{relations}"><Relationship Id="r" Type="{kind}" '
            'Target="word/document.xml"/></Relationships>',
        )
        archive.writestr(
            "word/document.xml",
            f'<w:document xmlns:w="{word}"><w:body><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:body></w:document>',
        )
        for name, content in parts.items():
            archive.writestr(f"word/media/{name}", content)
    return out.getvalue()


RTF = rb"{\rtf1\ansi Ada Lovelace, engineer.\par "

CLEAN = [
    ("cv.txt", b"Ada Lovelace\nSwift engineer for ten years\n"),
    ("cv.rtf", RTF + b"}"),
    ("cv.pdf", curriculum_vitae("Ada")),
    ("cv.docx", docx("Ada Lovelace, engineer", image=b"harmless")),
]
INFECTED = [
    ("cv.txt", b"Ada Lovelace\n" + EICAR + b"\n"),
    ("cv.rtf", RTF + EICAR.replace(b"}", rb"\}") + b"}" + EICAR),
    ("cv.pdf", pdf([["Ada"]]) + b"%" + EICAR + b"\n"),
    # Compressed: only who unpacks it finds it.
    ("cv.docx", docx("Ada Lovelace, engineer", image=EICAR)),
    ("cv.docx", docx("Ada Lovelace, engineer", image=docx("inner", image=EICAR))),
]


@pytest.mark.parametrize(("name", "content"), CLEAN, ids=[name for name, _ in CLEAN])
def test_a_clean_cv_is_taken(site: Site, ada: Person, name: str, content: bytes) -> None:
    scans = site.worker_metric('martlet_scans_total{outcome="clean"}')
    answer = site.send(ada, name, content)
    assert answer.status_code == 200, answer.text
    until(lambda: site.row(answer.json()[0]["id"])[0] == "ready", "it has been looked at")
    assert site.worker_metric('martlet_scans_total{outcome="clean"}') == scans + 1


@pytest.mark.parametrize(("name", "content"), INFECTED, ids=[f"{n}-{name}" for n, (name, _) in enumerate(INFECTED)])
def test_an_infected_cv_is_refused_and_nothing_of_it_is_kept(
    site: Site, ada: Person, name: str, content: bytes
) -> None:
    before = site.stored()
    error = ada.refused_upload("/api/upload?kind=cv", [("files", (name, content, "application/octet-stream"))])
    assert "A virus scan found something harmful in this file" in error["message"]
    until(lambda: site.stored() == before, "its bytes are gone")
    assert ada.get("/api/upload/files") == []
    audit = f"SELECT detail FROM audit_log WHERE actor_id = {ada.id} AND action = 'media.infected' LIMIT 1"
    detail = json.loads(site.stack.sql(audit, site.database))
    assert detail["signature"] == SIGNATURE and detail["kind"] == "cv" and detail["bytes"] == len(content)


def test_an_infected_cv_of_an_application_is_told_to_its_applicant_and_served_to_nobody(
    site: Site, ada: Person
) -> None:
    rep = Person.register(site.base, "rep")
    rep.create_company("Wax Ltd")
    posting = rep.publish("Engineer")["id"]
    application = ada.apply(posting, INFECTED[3][1])["id"]
    query = f"SELECT cv_media_id FROM applications WHERE id = {application}"
    media = int(site.stack.sql(query, site.database))
    state = until(lambda: site.row(media)[0] != "pending" and site.row(media), "it has been looked at")
    assert state[:2] == ["rejected", "infected"] and "Scan your computer" in state[2]
    events = f"SELECT note FROM application_events WHERE application_id = {application} AND kind = 'cv_rejected'"
    assert site.stack.sql(events, site.database) == state[2]
    digest = site.stack.sql(f"SELECT hash FROM media WHERE id = {media}", site.database)
    for person in (ada, rep):
        served = person.http.get(f"{site.base}/uploads/{digest}", timeout=10)
        assert served.status_code == 410 and EICAR not in served.content


def test_without_clamd_uploads_wait_and_are_taken_when_it_is_back(site: Site, ada: Person) -> None:
    site.clamd.stop()
    try:
        ids = site.pending(ada, 3)
        status, text = site.worker_readiness()
        assert status == 200 and "scanner: clamd" in text, text
        assert site.worker_metric("martlet_scanner_up") == 0
        served = ada.http.get(f"{site.base}{ada.get(f'/api/upload/files/{ids[0]}')['url']}", timeout=10)
        assert served.status_code == 503, "what is not known to be clean is not served"
        # As after hours: more often than any other work is tried.
        site.stack.sql("UPDATE work_items SET postponed = 50 WHERE kind = 'process_upload'", site.database)
        site.stack.sql("UPDATE work_items SET run_at = now() WHERE kind = 'process_upload'", site.database)
        put_off = 'martlet_work_items_total{kind="process_upload",outcome="postponed"}'
        seen = site.worker_metric(put_off)
        until(lambda: site.worker_metric(put_off) > seen, "they were tried again")
        assert site.stack.sql("SELECT count(*) FROM work_dead", site.database) == "0"
        assert site.stack.sql("SELECT max(attempts) FROM work_items", site.database) in ("0", "1")
    finally:
        site.clamd.restart()
    until(lambda: site.worker_readiness() == (200, "ready\n"), "the worker has noticed")
    # Time goes faster here: at the worst they wait two minutes.
    site.stack.sql("UPDATE work_items SET run_at = now() WHERE waiting", site.database)
    until(lambda: site.all_ready(ids), "they are taken")
    assert site.worker_metric("martlet_scanner_up") == 1


def test_a_clamd_that_hangs_is_given_its_time_and_then_waited_for(site: Site, ada: Person) -> None:
    site.clamd.halt()
    try:
        ids = site.pending(ada, 2)
        until(lambda: "did not answer in time" in site.worker_readiness()[1], "readiness tells")
        assert site.row(ids[0])[0] == "pending"
    finally:
        site.clamd.go_on()
    until(lambda: site.worker_readiness() == (200, "ready\n"), "the worker has noticed")
    site.stack.sql("UPDATE work_items SET run_at = now() WHERE waiting", site.database)
    until(lambda: site.all_ready(ids), "they are taken")


def test_a_clamd_that_is_killed_in_the_middle_of_a_file_is_no_fault_of_the_file(site: Site, ada: Person) -> None:
    content = curriculum_vitae("Ada") + b"%" + os.urandom(4 << 20).replace(b"\n", b" ") + b"\n"
    failed = 'martlet_scans_total{outcome="failed"}'
    before = site.worker_metric(failed)
    site.relay.limit = (2 << 20, site.clamd.kill)
    answer = site.send(ada, "cv.pdf", content)
    assert answer.status_code == 200 and answer.json()[0]["state"] == "pending", answer.text
    until(lambda: site.worker_metric(failed) > before and site.worker_metric("martlet_scanner_up") == 0, "it is told")
    assert not site.relay.limit and site.row(answer.json()[0]["id"])[0] == "pending"
    site.clamd.restart()
    until(lambda: site.worker_readiness() == (200, "ready\n"), "the worker has noticed")
    site.stack.sql("UPDATE work_items SET run_at = now() WHERE waiting", site.database)
    media = answer.json()[0]["id"]
    until(lambda: site.row(media)[0] == "ready", "it is taken")


def test_a_file_longer_than_clamd_takes_waits_and_the_rest_goes_on(stack: Stack, tmp_path: Path) -> None:
    clamd = Clamd(tmp_path, free_ports(1)[0], StreamMaxLength="1M")
    settings = {"MARTLET_STORE": str(tmp_path / "store"), "MARTLET_CLAMD": f"tcp://127.0.0.1:{clamd.port}"}
    site = LoneSite(stack, tmp_path, "streams", settings)
    try:
        clamd.restart()
        site.start()
        ada = Person.register(site.base, "ada")
        content = curriculum_vitae("Ada") + b"%" + os.urandom(2 << 20).replace(b"\n", b" ") + b"\n"
        answer = ada.ask("POST", "/api/upload", 200, files=[("files", ("cv.pdf", content, "application/pdf"))])[0]
        assert answer["state"] == "pending"
        said = requests.get(site.worker.ready, timeout=10)
        assert said.status_code == 200 and "StreamMaxLength" in said.text, said.text
        site.upload(ada, "cat.png", png(300, 200), "image/png")
        good = site.martlet("check")
        assert "ok      scanner: tcp://127.0.0.1" in good.stdout and "ClamAV" in good.stdout, good.stdout
    finally:
        site.stop()
        clamd.end()
    bad = site.martlet("check", MARTLET_CLAMD=str(tmp_path / "nobody"))
    assert bad.returncode == 69 and "failed  scanner" in bad.stdout and "cannot be reached" in bad.stdout, bad.stdout
    wrong = site.martlet("check", MARTLET_CLAMD="clamd:3310")
    assert wrong.returncode == 78 and "MARTLET_CLAMD: it must be a socket's path" in wrong.stdout, wrong.stdout
    none = site.martlet("check", MARTLET_CLAMD="")
    assert "off     scanner: MARTLET_CLAMD is not set" in none.stdout, none.stdout
