"""Disks that are full, stores that take nothing and mail servers that are gone, for workers: the rest goes on, it is to
be seen, and all is made up for without a restart. (Gateways: test_upload_faults.py; clamd: test_scanning.py.)"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Callable, Iterator

import pytest
import requests

from disks import small_disk
from images import png
from inbox import Inbox
from lone_site import LoneSite
from pdf import curriculum_vitae
from people import Person, new_word
from stack import ROOT, Process, Stack, free_ports
from waiting import until

DISK_BYTES = 4 << 20


def readiness(process: Process) -> tuple[int, str]:
    answer = requests.get(process.ready, timeout=10)
    return answer.status_code, answer.text


def metric(process: Process, name: str) -> float:
    lines = requests.get(process.ready.replace("/readyz", "/metrics"), timeout=10).text.splitlines()
    return next(float(line.split()[-1]) for line in lines if line.startswith(f"{name} "))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of four megabytes."""
    with small_disk(tmp_path, DISK_BYTES) as folder:
        yield folder


class Full:
    """No room for another page."""

    def __init__(self, disk: Path):
        self.filler = disk / "filler"

    def begin(self) -> None:
        with pytest.raises(OSError), self.filler.open("wb", buffering=0) as out:
            while out.write(os.urandom(4096)):
                pass

    def end(self) -> None:
        self.filler.unlink()


class ReadOnly:
    def __init__(self, disk: Path):
        self.disk = disk

    def begin(self) -> None:
        subprocess.run(["mount", "-o", "remount,ro", str(self.disk)], check=True)

    def end(self) -> None:
        subprocess.run(["mount", "-o", f"remount,rw,size={DISK_BYTES}", str(self.disk)], check=True)


@pytest.mark.parametrize("kind, words", [(Full, "No space left"), (ReadOnly, "Read-only")])
def test_a_worker_whose_store_takes_nothing_waits_and_goes_on_by_itself(
    stack: Stack, disk: Path, tmp_path: Path, kind: Callable, words: str
) -> None:
    site = LoneSite(stack, tmp_path, kind.__name__.lower(), {"MARTLET_STORE": str(disk / "store")})
    trouble = kind(disk)

    def state(ids: list[int]) -> set[str]:
        listed = ",".join(map(str, ids))
        return set(site.stack.sql(f"SELECT state FROM media WHERE id IN ({listed})", site.database).split())

    def upload(name: str) -> int:
        files = [("files", (name, png(300, 200), "image/png"))]
        return ada.ask("POST", "/api/upload", 200, files=files)[0]["id"]

    def objects() -> set[Path]:
        return {path for path in (disk / "store").rglob("*") if path.is_file()}

    try:
        site.start()
        ada = Person.register(site.base, "ada")
        former = upload("former.png")
        until(lambda: state([former]) == {"ready"}, "a first one is made")
        site.martlet("queue", "pause", "--kind", "process_upload")
        ids = [upload(f"{number}.png") for number in range(3)]
        before = objects()
        trouble.begin()
        try:
            ada.ask("DELETE", f"/api/upload/files/{former}", 200)
            site.martlet("queue", "resume", "--kind", "process_upload")
            put_off = 'martlet_work_items_total{kind="process_upload",outcome="postponed"}'
            until(lambda: metric(site.worker, put_off) >= 3, "they were tried, and wait")
            status, text = readiness(site.worker)
            assert status == 200 and words in text and metric(site.worker, "martlet_store_up") == 0
            # A size that found room is whole, in no row, and written once more; nothing is there in part.
            assert state(ids) == {"pending"}
            assert all(path.parent.parent.name == "va" for path in objects() - before), objects() - before
            named = "SELECT count(*) FROM media_variants WHERE media_id = ANY (ARRAY[{}])".format(
                ",".join(map(str, ids)))
            assert site.stack.sql(named, site.database) == "0"
            # However long it takes: no attempt counts.
            assert site.stack.sql("SELECT max(attempts) FROM work_items", site.database) in ("0", "1")
            assert ada.get("/api/jobs") and ada.get("/api/users/me")["id"] == ada.id
        finally:
            trouble.end()
        until(lambda: readiness(site.worker) == (200, "ready\n"), "the worker has noticed")
        # Time goes faster here: at the worst they wait two minutes.
        site.stack.sql("UPDATE work_items SET run_at = now() WHERE waiting", site.database)
        until(lambda: state(ids) == {"ready"}, "they are made")
        left = "SELECT count(*) FROM work_items WHERE kind = 'delete_files'"
        until(lambda: site.stack.sql(left, site.database) == "0", "and the one that was deleted is gone")
        assert site.stack.sql("SELECT count(*) FROM work_dead", site.database) == "0"
    finally:
        site.stop()


def test_without_a_mail_server_all_else_goes_on_and_mails_go_when_it_is_back(stack: Stack, tmp_path: Path) -> None:
    smtp, page = free_ports(2)
    site = LoneSite(stack, tmp_path, "mailless", {"MARTLET_SMTP_URL": f"smtp://127.0.0.1:{smtp}"})
    catcher = [sys.executable, str(ROOT / "ops/scripts/mail-catcher"), "--smtp", f"127.0.0.1:{smtp}"]
    catcher += ["--http", f"127.0.0.1:{page}", "--dir", str(tmp_path / "mail")]
    server = Process("late-mail", catcher, {}, f"http://127.0.0.1:{page}/", tmp_path)
    try:
        site.start()
        # Told before anybody wants a mail.
        until(lambda: "mail: the mail server cannot be used" in readiness(site.worker)[1], "readiness tells")
        assert readiness(site.worker)[0] == 200 and metric(site.worker, "martlet_mail_server_up") == 0
        ada, rep = Person.register(site.base, "ada"), Person.register(site.base, "rep")
        rep.create_company(f"Company {new_word()}")
        word = new_word()
        ada.ask("POST", "/api/alerts", 201, json={"data": {"name": "Work", "q": word, "cadence": "instant"}})
        application = ada.apply(rep.publish(f"Engineer {word}")["id"], curriculum_vitae("Ada"))
        rep.decide(application["id"], "accepted")
        ada.ask("POST", "/api/auth/forgot-password", 200, json={"email": ada.email})
        waiting = "SELECT count(*) FROM work_items WHERE kind LIKE 'send%mail' AND waiting AND attempts = 0"
        until(lambda: site.stack.sql(waiting, site.database) == "2", "both mails wait, and no attempt counts")
        # As after days: more often than any other work is tried.
        site.stack.sql("UPDATE work_items SET postponed = 50, run_at = now() WHERE waiting", site.database)
        put_off = 'martlet_work_items_total{kind="send_mail",outcome="postponed"}'
        until(lambda: metric(site.worker, put_off) >= 2, "again")
        assert site.stack.sql("SELECT count(*) FROM work_dead", site.database) == "0"
        server.restart()
        until(lambda: readiness(site.worker) == (200, "ready\n"), "the worker has noticed")
        assert metric(site.worker, "martlet_mail_server_up") == 1
        site.stack.sql("UPDATE work_items SET run_at = now() WHERE waiting", site.database)
        inbox = Inbox(tmp_path / "mail", ada.email)
        until(lambda: len(inbox.mails()) == 2, "the mails come")
    finally:
        if server.child:
            server.stop()
        site.stop()
