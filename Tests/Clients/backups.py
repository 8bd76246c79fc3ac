"""What tests of backups share: a site to save, places to restore into, and fixtures of both."""

import json
import os
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from images import png
from lone_site import LoneSite
from people import Person
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


@contextmanager
def standing_still(site: LoneSite, table: str, database: str | None = None) -> Iterator[None]:
    """Whoever wants to do anything with the table waits for a lock that somebody has."""
    name = database or site.database
    url = f"{site.stack.server_url.rpartition('/')[0]}/{name}"
    blocker = subprocess.Popen(
        ["psql", "-X", "-q", "-c", "BEGIN", "-c", f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE", "-c",
         "SELECT pg_sleep(600)", url])
    held = f"FROM pg_locks WHERE relation = '{table}'::regclass AND mode = 'AccessExclusiveLock' AND granted"
    try:
        until(lambda: site.stack.sql(f"SELECT count(*) {held}", name) == "1", "somebody has the lock")
        yield
    finally:
        site.stack.sql(f"SELECT pg_terminate_backend(pid) {held}", name)
        blocker.wait(10)


NAMED = "SELECT storage_key FROM media WHERE state <> 'rejected' UNION SELECT storage_key FROM media_variants"


def made(site: LoneSite, folder: Path, *more: str) -> dict[str, Any]:
    done = site.martlet("backup", str(folder), "--json", *more)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
