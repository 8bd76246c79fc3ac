"""What an empty first server of docker-compose.yml does, by ops/postgres/server as it is: nobody's data is passed over.

`make smoke` runs both servers in containers, with everything that comes after."""

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Iterator

import pytest

from chatstack import Cluster, script
from stack import ROOT, free_ports
from waiting import until

BIN = "/usr/lib/postgresql/15/bin"
OWNER = "postgres"
PASSWORD = "only for this test"


class Place:
    """Folders of two servers, which are on loopback and told apart by nothing but what they hold."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.log = folder / "log"
        self.running: list[subprocess.Popen] = []
        shutil.copy(ROOT / "ops/postgres/server", folder / "server")
        # The official image's own entry, which makes the database.
        self.program("docker-entrypoint.sh", 'echo "begun: $*"')
        passwords = folder / "passwords"
        passwords.write_text(f"*:*:*:martlet:{PASSWORD}\n")
        passwords.chmod(0o600)
        if os.geteuid() == 0:
            shutil.chown(folder, OWNER)
            shutil.chown(passwords, OWNER)

    def program(self, name: str, text: str) -> None:
        path = self.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)

    def data(self, name: str, *files: str) -> None:
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        for file in files:
            (folder / file).write_text("15\n")
        for each in (folder, *folder.iterdir()):
            if os.geteuid() == 0:
                shutil.chown(each, OWNER)

    def begin(self, name: str, peer: str, port: int) -> subprocess.Popen:
        environment = {
            "MARTLET_SERVER": name, "MARTLET_PEER": peer, "MARTLET_FIRST": "postgres", "PGPORT": str(port),
            "PGDATA": f"{self.folder}/{name}", "PGPASSFILE": f"{self.folder}/passwords",
            "PATH": f"{self.folder}/bin:{BIN}:/usr/bin:/bin",
        }
        owner = {"user": OWNER, "group": OWNER, "extra_groups": []} if os.geteuid() == 0 else {}
        self.data(name)
        with self.log.open("a") as log:
            process = subprocess.Popen(
                [str(self.folder / "server"), "postgres"], env=environment, cwd="/", stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, **owner)
        self.running.append(process)
        return process

    def said(self, words: str) -> bool:
        return words in self.log.read_text()


@pytest.fixture
def place() -> Iterator[Place]:
    made = Place(Path(tempfile.mkdtemp(prefix="martlet-servers-")))
    made.folder.chmod(0o711)
    try:
        yield made
    finally:
        for process in made.running:
            process.terminate()
            process.wait(30)
        shutil.rmtree(made.folder)


def quick(place: Place) -> None:
    """For what is to be waited out."""
    place.program("sleep", "exec /bin/sleep 0.02")


def two_ports() -> int:
    """The second of two that nobody listens on."""
    while True:
        (port,) = free_ports(1)
        with socket.socket() as beside:
            try:
                beside.bind(("127.0.0.1", port - 1))
                return port
            except OSError:
                continue


def test_without_a_standby_a_database_is_made(place: Place) -> None:
    quick(place)
    assert place.begin("postgres", "nobody.invalid", two_ports()).wait(60) == 0
    assert place.said("begun: postgres -c cluster_name=postgres")


def test_before_a_standby_that_has_nothing_either_a_database_is_made(place: Place) -> None:
    port = two_ports()
    standby = place.begin("standby", "127.0.0.1", port)
    until(lambda: place.said("waiting for 127.0.0.1, which is to be copied"), "the standby waits")
    assert place.begin("postgres", "127.0.0.1", port).wait(60) == 0
    assert place.said("begun: postgres") and standby.poll() is None
    standby.terminate()
    assert standby.wait(30) == 143
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port - 1), timeout=10)


def test_before_a_retired_one_that_has_data_none_is_made(place: Place) -> None:
    quick(place)
    port = two_ports()
    place.data("standby", "PG_VERSION", "martlet.retired")
    place.begin("standby", "127.0.0.1", port)
    until(lambda: place.said("which is to be copied"), "the standby waits")
    assert place.begin("postgres", "127.0.0.1", port).wait(120) == 1
    assert place.said("did not say within 60 s whether it has the data") and not place.said("begun")


def test_a_standby_that_has_everything_is_waited_for_and_to_be_promoted(place: Place) -> None:
    cluster = Cluster()
    try:
        statement = f"CREATE ROLE martlet LOGIN PASSWORD '{PASSWORD}'"
        for each in (statement, "CREATE DATABASE martlet OWNER martlet"):
            subprocess.run(["psql", "-X", "-q", "-d", cluster.url, "-c", each], check=True)
        script("postgres", "stop", cluster.place)
        # Follows nobody, and takes no writes: all that the other one asks.
        (Path(cluster.place) / "data/standby.signal").touch()
        first = place.begin("postgres", "127.0.0.1", int(cluster.port))
        until(lambda: place.said("which may have the data"), "the first one waits")
        assert first.poll() is None
        cluster.start()
        assert first.wait(60) == 1
        assert place.said("promote that one") and not place.said("begun")
    finally:
        cluster.remove()
