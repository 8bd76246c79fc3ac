"""martlet backup and restore: database and store together, under load, broken off, broken, and brought back."""

import json
import os
import shutil
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest
import requests

from images import png
from lone_site import LoneSite
from object_store import Bucket, ObjectStore
from people import Person, new_word
from stack import ROOT, Stack
from waiting import until


class Target:
    """An empty database and an empty folder, to restore into."""

    numbers = iter(range(1, 1000))

    def __init__(self, site: LoneSite, folder: Path):
        self.site = site
        self.database = f"martlet_restored_{os.getpid()}_{next(self.numbers)}"
        self.store = folder / self.database
        self.store.mkdir()
        site.stack.sql(f"CREATE DATABASE {self.database}", "postgres")
        url = f"{site.stack.server_url.rpartition('/')[0]}/{self.database}"
        self.settings = {"MARTLET_DATABASE_URL": url, "MARTLET_STORE": str(self.store)}

    def restore(self, backup: Path, *more: str) -> subprocess.CompletedProcess:
        return self.site.martlet("restore", str(backup), *more, **self.settings)

    def sql(self, statement: str) -> str:
        return self.site.stack.sql(statement, self.database)

    def objects(self) -> set[str]:
        return {str(path.relative_to(self.store)) for top in ("up", "va") for path in self.store.glob(f"{top}/**/*")
                if path.is_file()}

    def drop(self) -> None:
        self.site.stack.sql(f"DROP DATABASE IF EXISTS {self.database} WITH (FORCE)", "postgres")


@pytest.fixture(scope="module")
def site(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoneSite]:
    folder = tmp_path_factory.mktemp("backups")
    (folder / "store").mkdir()
    own = LoneSite(stack, folder, "saved", {"MARTLET_STORE": str(folder / "store")})
    try:
        own.start()
        yield own
    finally:
        own.stop()


@pytest.fixture
def target(site: LoneSite, tmp_path: Path) -> Iterator[Callable[[], Target]]:
    made: list[Target] = []

    def make() -> Target:
        made.append(Target(site, tmp_path))
        return made[-1]

    yield make
    for each in made:
        each.drop()


@pytest.fixture(scope="module")
def ada(site: LoneSite) -> Person:
    somebody = Person.register(site.base, "ada")
    for number in range(4):
        site.upload(somebody, f"picture {number}.png", png(300 + number, 200), "image/png")
    return somebody


NAMED = "SELECT storage_key FROM media WHERE state <> 'rejected' UNION SELECT storage_key FROM media_variants"


def made(site: LoneSite, folder: Path, *more: str) -> dict[str, Any]:
    done = site.martlet("backup", str(folder), "--json", *more)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


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
    # It stands still in the middle: it waits for a lock that somebody has.
    blocker = subprocess.Popen(
        ["psql", "-X", "-q", "-c", "BEGIN", "-c", "LOCK TABLE users IN ACCESS EXCLUSIVE MODE", "-c",
         "SELECT pg_sleep(60)", site.environment["MARTLET_DATABASE_URL"]])
    try:
        held = "SELECT count(*) FROM pg_locks WHERE relation = 'users'::regclass AND mode = 'AccessExclusiveLock'"
        until(lambda: site.stack.sql(f"{held} AND granted", site.database) == "1", "somebody has the lock")
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
    finally:
        site.stack.sql(
            f"SELECT pg_terminate_backend(pid) FROM ({held.replace('count(*)', 'pid')}) holder", site.database)
        blocker.wait(10)
    refused = target().restore(backup)
    assert refused.returncode == 1 and "broken off" in refused.stderr
    assert site.martlet("backup", "--verify", str(backup)).returncode == 1
    # Two minutes later.
    site.stack.sql("UPDATE work_pauses SET until = now() WHERE holder = 'backup'", site.database)
    assert made(site, backup)["missing_count"] == 0
    assert not (backup / "UNFINISHED").exists()


def broken_dump(backup: Path) -> None:
    with (backup / "database.dump").open("r+b") as file:
        file.seek(100)
        byte = file.read(1)
        file.seek(100)
        file.write(bytes([byte[0] ^ 1]))


def changed_manifest(backup: Path) -> None:
    path = backup / "manifest.json"
    path.write_text(path.read_text().replace('"version":1', '"version":2'))


def any_object(backup: Path) -> Path:
    return next(path for path in sorted((backup / "objects").rglob("*")) if path.is_file())


def foreign(backup: Path) -> None:
    (backup / "manifest.json").write_text('{"format":"something"}\n')
    names = ["manifest.json", "database.dump", "objects.sha256"]
    sums = subprocess.run(["sha256sum", *names], cwd=backup, capture_output=True, text=True, check=True)
    (backup / "SHA256SUMS").write_text(sums.stdout)


def leading_out(backup: Path) -> None:
    path = backup / "objects.sha256"
    path.write_text(path.read_text().replace("objects/up/", "objects/../", 1))
    names = ["manifest.json", "database.dump", "objects.sha256"]
    sums = subprocess.run(["sha256sum", *names], cwd=backup, capture_output=True, text=True, check=True)
    (backup / "SHA256SUMS").write_text(sums.stdout)


@pytest.mark.parametrize(
    "damage, words",
    [
        (broken_dump, "database.dump is not what was written"),
        (changed_manifest, "manifest.json is not what was written"),
        (lambda backup: (backup / "objects.sha256").unlink(), "objects.sha256 is gone"),
        (lambda backup: (backup / "SHA256SUMS").unlink(), "no backup of Martlet's"),
        (lambda backup: any_object(backup).unlink(), "No such file"),
        (lambda backup: any_object(backup).write_bytes(b"x"), "is not what was written"),
        (foreign, "not one of a backup of Martlet's"),
        (leading_out, "has a line that is none"),
    ],
)
def test_a_broken_or_foreign_backup_is_refused_before_anything_is_touched(
    site: LoneSite, ada: Person, target: Callable[[], Target], tmp_path: Path, damage: Callable, words: str
) -> None:
    backup = tmp_path / "b"
    made(site, backup)
    damage(backup)
    place = target()
    for done in (place.restore(backup), site.martlet("backup", "--verify", str(backup))):
        assert done.returncode == 1 and words in done.stderr, done.stderr
    assert place.objects() == set()
    assert place.sql("SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace") == "0"


def test_what_is_there_already_is_left_alone_unless_told(
    site: LoneSite, ada: Person, target: Callable[[], Target], tmp_path: Path
) -> None:
    backup = tmp_path / "b"
    made(site, backup)
    assert "is not empty" in site.martlet("backup", str(backup)).stderr
    full = target()
    full.sql("CREATE TABLE precious AS SELECT 1 AS n")
    assert "the database is not empty" in full.restore(backup).stderr
    assert full.sql("SELECT n FROM precious") == "1" and full.objects() == set()
    store = target()
    word = new_word()
    (store.store / "up/00").mkdir(parents=True)
    (store.store / "up/00" / word).write_text("here first")
    assert "the store is not empty" in store.restore(backup).stderr
    assert store.restore(backup, "--replace").returncode == 0
    full.sql("CREATE TABLE users (id int)")
    assert full.restore(backup, "--replace").returncode == 0
    assert full.sql("SELECT to_regclass('precious') IS NULL") == "t"


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


def test_a_bucket_is_saved_and_brought_back_too(
    stack: Stack, ada: Person, site: LoneSite, target: Callable[[], Target], tmp_path: Path
) -> None:
    """From the folder into the bucket, and from there into another folder."""
    made(site, tmp_path / "folder")
    server = ObjectStore()
    try:
        settings = of(server.bucket)
        middle = target()
        middle.settings.update(settings)
        done = middle.restore(tmp_path / "folder")
        assert done.returncode == 0, done.stderr
        keys = {key.removeprefix("m/") for key in server.bucket.keys()}
        assert keys == set(middle.sql(NAMED).split()) != set()
        done = site.martlet("backup", str(tmp_path / "bucket"), "--json", **middle.settings)
        assert done.returncode == 0 and json.loads(done.stdout)["objects"] == len(keys), done.stderr
    finally:
        server.stop()
    last = target()
    assert last.restore(tmp_path / "bucket").returncode == 0
    assert last.objects() == keys
    shutil.rmtree(tmp_path / "bucket")


def of(bucket: Bucket) -> dict[str, str]:
    return {
        "MARTLET_STORE": f"s3://{bucket.bucket}/m?endpoint={bucket.endpoint}&region={bucket.region}",
        "MARTLET_S3_ACCESS_KEY": bucket.access_key, "MARTLET_S3_SECRET_KEY": bucket.secret_key,
    }
