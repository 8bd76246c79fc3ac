"""martlet backup: database and store together, under load, broken off, two at once."""

import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Callable

import requests

from backups import NAMED, Target, ada, made, site, standing_still, target  # noqa: F401
from images import png
from lone_site import LoneSite
from people import Person
from stack import ROOT
from waiting import until


def test_a_backup_is_brought_back_whole_and_the_services_run_on_it(
    site: LoneSite, ada: Person, target: Callable[[], Target], tmp_path: Path
) -> None:
    backup = tmp_path / "b"
    said = site.martlet("backup", str(backup))
    assert said.returncode == 0 and "Saved to" in said.stdout and said.stderr == ""
    assert backup.stat().st_mode & 0o077 == 0, "it has everybody's data in it"
    sums = subprocess.run(
        ["sha256sum", "-c", "--quiet", "SHA256SUMS", "objects.sha256"], cwd=backup, capture_output=True, text=True)
    assert sums.returncode == 0, sums.stdout
    assert site.martlet("backup", "--verify", str(backup), MARTLET_DATABASE_URL="").returncode == 0
    assert site.stack.sql("SELECT count(*) FROM work_pauses WHERE paused", site.database) == "0"

    place = target()
    done = place.restore(backup)
    assert done.returncode == 0, done.stderr
    assert place.objects() == set(place.sql(NAMED).split()) != set()
    assert place.sql("SELECT count(*) FROM users") == site.stack.sql("SELECT count(*) FROM users", site.database)
    assert "ok      schema" in site.martlet("check", **place.settings).stdout

    gateway = site.gateway
    former = gateway.environment
    gateway.stop()
    gateway.environment = {**former, **place.settings}
    try:
        gateway.restart()
        ada.sign_in()
        files = ada.get("/api/upload/files")
        assert len(files) == 4
        assert all(requests.get(site.base + each["url"], timeout=15).status_code == 200 for each in files)
    finally:
        gateway.stop()
        gateway.environment = former
        gateway.restart()


def test_files_that_are_deleted_meanwhile_are_in_the_backup_when_a_row_names_them(
    site: LoneSite, target: Callable[[], Target], tmp_path: Path
) -> None:
    bob = Person.register(site.base, "bob")
    ending = threading.Event()

    def come_and_go() -> None:
        number = 0
        while not ending.is_set():
            number += 1
            content = png(100 + number, 90)
            file = bob.ask("POST", "/api/upload", 200, files=[("files", ("a.png", content, "image/png"))])[0]
            bob.ask("DELETE", f"/api/upload/files/{file['id']}", 200)
            # No picture, which a worker finds out.
            bob.ask("POST", "/api/upload", 400, files=[("files", ("b.png", b"\x89PNG" + content[-9:], "image/png"))])

    thread = threading.Thread(target=come_and_go, daemon=True)
    thread.start()
    try:
        manifests = [made(site, tmp_path / str(number)) for number in range(3)]
    finally:
        ending.set()
        thread.join(30)
    assert [manifest["missing_count"] for manifest in manifests] == [0, 0, 0]
    place = target()
    assert place.restore(tmp_path / "2").returncode == 0
    assert place.objects() == set(place.sql(NAMED).split())
    left = "SELECT count(*) FROM work_items WHERE kind = 'delete_files'"
    until(lambda: site.stack.sql(left, site.database) == "0", "deletions go on after it")


def test_a_backup_that_was_killed_is_none_and_is_made_anew(
    site: LoneSite, ada: Person, target: Callable[[], Target], tmp_path: Path
) -> None:
    backup = tmp_path / "b"
    with standing_still(site, "users"):
        child = subprocess.Popen(
            [str(site.stack.binaries / "martlet"), "backup", str(backup)], env={**os.environ, **site.environment},
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        until(lambda: (backup / "UNFINISHED").exists(), "it has begun")
        paused = "SELECT string_agg(kind, ' ' ORDER BY kind) FROM work_pauses WHERE paused AND until > now()"
        until(lambda: site.stack.sql(paused, site.database) == "delete_files sweep_objects", "nothing is deleted")
        second = site.martlet("backup", str(tmp_path / "second"))
        assert second.returncode == 1 and "another backup is being made" in second.stderr
        child.send_signal(signal.SIGKILL)
        child.wait(10)
    refused = target().restore(backup)
    assert refused.returncode == 1 and "broken off" in refused.stderr
    assert site.martlet("backup", "--verify", str(backup)).returncode == 1
    # Two minutes later.
    site.stack.sql("UPDATE work_pauses SET until = now() WHERE holder = 'backup'", site.database)
    assert made(site, backup)["missing_count"] == 0
    assert not (backup / "UNFINISHED").exists()


def test_of_two_backups_at_once_one_is_made(site: LoneSite, ada: Person, tmp_path: Path) -> None:
    running = [
        subprocess.Popen(
            [str(site.stack.binaries / "martlet"), "backup", str(tmp_path / str(number))], cwd=ROOT,
            env={**os.environ, **site.environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for number in range(4)
    ]
    said = [each.communicate(timeout=180)[0] for each in running]
    # One that began after another's end is no less a backup.
    assert all((each.returncode == 0) == ("Saved to" in words) for each, words in zip(running, said)), said
    assert all("Saved to" in words or "another backup is being made" in words for words in said), said
    for number, each in enumerate(running):
        if each.returncode == 0:
            assert site.martlet("backup", "--verify", str(tmp_path / str(number))).returncode == 0
    assert any(each.returncode == 0 for each in running)
    assert site.stack.sql("SELECT count(*) FROM work_pauses WHERE paused", site.database) == "0"


def test_a_backup_whose_hold_is_lost_ends_and_says_so(site: LoneSite, ada: Person, tmp_path: Path) -> None:
    # Nobody counts its rows, so it is pg_dump that waits for it, without an end.
    site.stack.sql("CREATE TABLE parted (id int) PARTITION BY LIST (id)", site.database)
    with standing_still(site, "parted"):
        child = subprocess.Popen(
            [str(site.stack.binaries / "martlet"), "backup", str(tmp_path / "b")], cwd=ROOT,
            env={**os.environ, **site.environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        until(lambda: (tmp_path / "b/database.dump").exists(), "it has begun")
        # As if this machine had been asleep for longer than the hold lasts.
        site.stack.sql("UPDATE work_pauses SET until = now() - interval '1 s' WHERE paused", site.database)
        said = child.communicate(timeout=180)[0]
    assert child.returncode == 1 and "the hold on deletions was lost" in said, said
    assert (tmp_path / "b/UNFINISHED").exists()
    site.stack.sql("DROP TABLE parted", site.database)
    assert made(site, tmp_path / "b")["missing_count"] == 0


def test_a_full_disk_and_a_missing_program_are_said(site: LoneSite, ada: Person, tmp_path: Path) -> None:
    done = site.martlet("backup", "/dev/null/b")
    assert done.returncode == 1 and "cannot be made" in done.stderr
    # Beyond what a process may write to a file.
    command = f"ulimit -f 8; trap '' XFSZ; exec {site.stack.binaries / 'martlet'} backup {tmp_path / 'b'}"
    full = subprocess.run(
        ["bash", "-c", command], env={**os.environ, **site.environment}, cwd=ROOT, capture_output=True, text=True)
    assert full.returncode == 1 and "File too large" in full.stderr, full.stderr
    assert site.stack.sql("SELECT count(*) FROM work_pauses WHERE paused", site.database) == "0"
    assert "broken off" in site.martlet("backup", "--verify", str(tmp_path / "b")).stderr
    assert made(site, tmp_path / "b")["objects"] > 0
