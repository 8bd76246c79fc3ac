"""A read replica before the primary in MARTLET_DATABASE_URL: it takes neither writes nor LISTEN, and is a moment
behind. Everything goes to the primary, wherever in the list that is; without one a service says what it misses."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Iterator
from urllib.parse import urlsplit

import pytest

from chat import Chat
from chatstack import ChatStack, Cluster, chat_stack
from stack import free_ports
from waiting import until

BINARIES = Path("/usr/lib/postgresql/15/bin")


def as_owner(*command: str) -> None:
    """PostgreSQL refuses to run as root."""
    whole = [*(["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []), *command]
    done = subprocess.run(whole, cwd="/", capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


class Standby:
    """A streaming copy of a cluster."""

    def __init__(self, cluster: Cluster):
        self.folder = Path(tempfile.mkdtemp(prefix="martlet-standby-"))
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres", "postgres")
        self.data, self.port = str(self.folder / "data"), free_ports(1)[0]
        as_owner(str(BINARIES / "pg_basebackup"), "-d", cluster.url, "-D", self.data, "-R", "-c", "fast", "-w")
        options = f"-c port={self.port} -c unix_socket_directories={self.folder} -c listen_addresses=127.0.0.1"
        log = str(self.folder / "log")
        as_owner(str(BINARIES / "pg_ctl"), "start", "-w", "-D", self.data, "-l", log, "-o", options)

    def sql(self, statement: str) -> None:
        as_owner("psql", "-X", "-q", "-h", str(self.folder), "-p", str(self.port), "-d", "postgres", "-c", statement)

    def remove(self) -> None:
        as_owner(str(BINARIES / "pg_ctl"), "stop", "-w", "-m", "immediate", "-D", self.data)
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatStack]:
    with chat_stack(tmp_path_factory.mktemp("replica")) as running:
        yield running


@pytest.fixture(scope="module")
def standby(stack: ChatStack) -> Iterator[Standby]:
    made = Standby(stack.cluster)
    try:
        yield made
    finally:
        made.remove()


def listed(stack: ChatStack, *ports: int | str) -> str:
    """The database's URL with these servers in their order."""
    url = urlsplit(stack.database_url)
    hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
    return url._replace(netloc=f"{url.username}:{url.password}@{hosts}").geturl()


def test_a_replica_that_comes_first_is_passed_by(stack: ChatStack, standby: Standby) -> None:
    url = listed(stack, standby.port, stack.cluster.port)
    process, base = stack.extra_chat("behind", {"MARTLET_DATABASE_URL": url})
    process.start()
    try:
        process.wait_ready()
        account = stack.accounts(1)[0]
        room = stack.rooms([[account.id]])[0]
        here, there = Chat.hello(f"ws{base[4:]}/chat", account.token), Chat.hello(stack.chat_urls[0], account.token)
        # It writes, and it is woken: its LISTEN stands at the primary.
        here.say(room, "a", "from behind")
        assert here.wait("ack", id="a")["seq"] == 1 and there.wait("message", seq=1)["body"] == "from behind"
        there.say(room, "b", "to behind")
        assert here.wait("message", seq=2)["body"] == "to behind"
        listeners = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'martlet/listen'"
        assert int(stack.sql(listeners)) == len(stack.chats) + 1
        # What a resume brings is read there too: the replica, which stands still, would not have it.
        standby.sql("SELECT pg_wal_replay_pause()")
        try:
            there.say(room, "c", "after the replica stood still")
            there.wait("ack", id="c")
            back = Chat.hello(f"ws{base[4:]}/chat", account.token, {room: 2})
            assert back.wait("message", seq=3)["body"] == "after the replica stood still"
        finally:
            standby.sql("SELECT pg_wal_replay_resume()")
    finally:
        process.kill()


def test_without_a_primary_a_service_says_so_and_is_not_ready(stack: ChatStack, standby: Standby) -> None:
    process, _ = stack.extra_chat("alone", {"MARTLET_DATABASE_URL": listed(stack, standby.port)})
    process.start()
    try:
        until(lambda: "server is in hot standby mode" in process.tail(), "the log says what is there")
        assert not process.is_ready()
    finally:
        process.kill()
