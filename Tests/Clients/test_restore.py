"""martlet restore: what is broken is refused, what fails or is killed leaves what was there, buckets too."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Callable

import pytest

from backups import NAMED, Target, ada, made, site, standing_still, target  # noqa: F401
from lone_site import LoneSite
from object_store import Bucket, ObjectStore
from people import Person, new_word
from stack import ROOT, Stack
from waiting import until


def with_new_sums(backup: Path) -> None:
    names = ["manifest.json", "database.dump", "objects.sha256"]
    sums = subprocess.run(["sha256sum", *names], cwd=backup, capture_output=True, text=True, check=True)
    (backup / "SHA256SUMS").write_text(sums.stdout)


def cut_dump(backup: Path) -> None:
    """Its list of contents is whole, and its last tables are not there."""
    path = backup / "database.dump"
    path.write_bytes(path.read_bytes()[:-2000])


def no_dump(backup: Path) -> None:
    (backup / "database.dump").write_bytes(b"hello")


def more_rows(backup: Path) -> None:
    path = backup / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["tables"]["public.users"] += 1
    path.write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    "damage, words",
    [
        (cut_dump, "pg_restore failed"),
        (no_dump, "pg_restore failed"),
        (more_rows, "public.users has"),
    ],
)
def test_a_restore_that_fails_leaves_what_was_there(
    site: LoneSite, ada: Person, target: Callable[[], Target], tmp_path: Path, damage: Callable, words: str
) -> None:
    backup = tmp_path / "b"
    made(site, backup)
    damage(backup)
    with_new_sums(backup)
    place = target()
    place.sql("CREATE TABLE precious AS SELECT 1 AS n")
    place.sql("CREATE TABLE users (id int)")
    done = place.restore(backup, "--replace")
    assert done.returncode == 1 and words in done.stderr, done.stderr
    assert place.sql("SELECT n FROM precious") == "1"
    assert place.sql("SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace") == "2"


def test_a_restore_that_is_killed_leaves_what_was_there_and_is_done_anew(
    site: LoneSite, ada: Person, target: Callable[[], Target], tmp_path: Path
) -> None:
    backup = tmp_path / "b"
    made(site, backup)
    place = target()
    place.sql("CREATE TABLE precious AS SELECT 1 AS n")
    program = [str(site.stack.binaries / "martlet"), "restore", str(backup), "--replace"]
    environment = {**os.environ, **site.environment, **place.settings}
    waiting = (
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'martlet-operator/psql' AND "
        f"datname = '{place.database}'")
    with standing_still(site, "precious", place.database):
        child = subprocess.Popen(program, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        until(lambda: place.sql(f"{waiting} AND wait_event_type = 'Lock'") == "1", "it is about to drop the old")
        child.kill()
        child.wait(10)
    until(lambda: place.sql(waiting) == "0", "its children are gone too")
    assert place.sql("SELECT n FROM precious") == "1"
    assert place.restore(backup, "--replace").returncode == 0
    assert place.sql("SELECT to_regclass('precious') IS NULL") == "t"
    # Somebody who still uses the tables is not waited for without an end.
    with standing_still(site, "users", place.database):
        refused = place.restore(backup, "--replace")
    assert refused.returncode == 1 and "lock timeout" in refused.stderr
    assert place.sql("SELECT count(*) > 0 FROM users") == "t"


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
    with_new_sums(backup)


def leading_out(backup: Path) -> None:
    path = backup / "objects.sha256"
    path.write_text(path.read_text().replace("objects/up/", "objects/../", 1))
    with_new_sums(backup)


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
