"""The primary dies under load, and the runbook's commands bring a synchronous standby in its place."""

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Callable, Iterator
from urllib.parse import urlsplit

import pytest
import requests

from chat import Chat
from chatstack import Cluster
from people import Person, new_word
from runbook import Runbook
from stack import Stack, free_ports
from test_kills import Load, missing
from waiting import until

BIN = "/usr/lib/postgresql/15/bin"
BACK_SECONDS_MAX = 60  # To be ten; a machine that is busy with other tests may take its time.
OWNER = "postgres"


class Pair:
    """A primary, and a standby made by the runbook."""

    def __init__(self) -> None:
        self.runbook = Runbook("failover.md")
        self.primary = Cluster()
        self.folder = Path(tempfile.mkdtemp(prefix="martlet-standby-"))
        if os.geteuid() == 0:
            shutil.chown(self.folder, OWNER)
        self.port = free_ports(1)[0]
        self.data = self.folder / "data"
        first = urlsplit(self.primary.url)
        self.password = first.password or ""
        self.url = f"postgres://postgres:{self.password}@127.0.0.1:{self.port}/postgres"

    def step(self, name: str, **more: str) -> str:
        variables = {
            "BIN": BIN, "PRIMARY_HOST": "127.0.0.1", "PRIMARY_PORT": self.primary.port,
            "STANDBY_HOST": "127.0.0.1", "STANDBY_PORT": str(self.port), "STANDBY_DATA": str(self.data),
            "STANDBY_NAME": "standby_a", "PGUSER": "postgres", "PGPASSWORD": self.password,
            "REPLICATION_PASSWORD": "only for this test",
        }
        return self.runbook.run(name, OWNER, **{**variables, **more})

    def make(self) -> None:
        for name in ("role", "copy", "wait-for-standby"):
            self.step(name)
        until(lambda: self.step("look") == "streaming sync", "the primary waits for the standby")

    def addresses(self, database: str) -> str:
        """As services are told."""
        return (
            f"postgres://postgres:{self.password}@127.0.0.1:{self.primary.port},127.0.0.1:{self.port}/{database}"
            "?target_session_attrs=read-write"
        )

    def remove(self) -> None:
        for data in (self.data, self.folder / "again"):
            if data.exists():
                stop = [f"{BIN}/pg_ctl", "stop", "-s", "-m", "immediate", "-D", str(data)]
                as_owner = ["runuser", "-u", OWNER, "--"] if os.geteuid() == 0 else []
                subprocess.run([*as_owner, *stop], cwd="/", check=False)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.primary.remove()


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    running = Pair()
    try:
        running.make()
        yield running
    finally:
        running.remove()


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, pair: Pair) -> Iterator[Stack]:
    """Instead of the stack that the other tests share."""
    running = Stack(tmp_path_factory.mktemp("stack"), pair.primary.url)
    running.environment["MARTLET_DATABASE_URL"] = pair.addresses(running.database)
    for process in running.processes:
        if "MARTLET_DATABASE_URL" in process.environment:
            process.environment["MARTLET_DATABASE_URL"] = pair.addresses(running.database)
    try:
        running.start()
        yield running
    finally:
        running.stop()


class Talk:
    """Somebody who says things until they are told to stop, as a good client does: by the same id until it is
    acknowledged, on a new connection when the old one is gone."""

    def __init__(self, person: Person, room: int, url: str):
        self.person, self.room, self.url = person, room, url
        self.acknowledged: dict[str, int] = {}
        self.when: list[float] = []
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self.work, daemon=True)

    def work(self) -> None:
        number = 0
        while not self.ending.is_set():
            try:
                chat = Chat.hello(self.url, self.person.jwt)
                while not self.ending.is_set():
                    client_id = f"f{number}"
                    chat.say(self.room, client_id, f"word {number}")
                    self.acknowledged[client_id] = chat.wait("ack", seconds=10, id=client_id)["seq"]
                    self.when.append(time.monotonic())
                    number += 1
                chat.close()
            except Exception:  # Refused, cut or silent: the same words again.
                self.ending.wait(0.1)

    def __enter__(self) -> "Talk":
        self.thread.start()
        self.wait_for_more()
        return self

    def __exit__(self, *exception: object) -> None:
        self.ending.set()
        self.thread.join(120)

    def wait_for_more(self) -> None:
        before = len(self.acknowledged)
        until(lambda: len(self.acknowledged) >= before + 10, "more is said", 180)


def test_the_standby_takes_over_and_nothing_acknowledged_is_lost(
    stack: Stack, pair: Pair, person: Callable[[str], Person], accepted: Callable
) -> None:
    representative = person("rep")
    representative.create_company(f"Company {new_word()}")
    them = accepted()
    with Load(representative) as load, Talk(them.applicant, them.room, stack.chat_urls[0]) as talk:
        pair.primary.crash(signal.SIGKILL)
        pair.step("promote")
        promoted = time.monotonic()
        stack.server_url = pair.url
        body = {"data": {"name": f"Engineer {new_word()}", "company": representative.company}}
        headers = {"Authorization": f"Bearer {representative.jwt}"}

        def takes_postings(base: str) -> bool:
            answer = requests.post(f"{base}/api/jobs", json=body, headers=headers, timeout=20)
            return answer.status_code == 200

        for base in (*stack.gateway_urls, stack.base):
            until(lambda: takes_postings(base), f"{base} takes postings")
        back = time.monotonic() - promoted
        until(lambda: talk.when[-1] > promoted, "the chat acknowledges again")
        talked = min(when for when in talk.when if when > promoted) - promoted
        print(f"back after the promotion: postings {back:.2f} s, messages {talked:.2f} s")
        assert back <= BACK_SECONDS_MAX and talked <= BACK_SECONDS_MAX
        load.wait_for_more()
        talk.wait_for_more()

    assert missing(stack, load.acknowledged) == ""
    assert set(load.refused) <= {502, 503}, load.refused
    rows = stack.sql(f"SELECT client_id, seq FROM messages WHERE room_id = {them.room} AND client_id LIKE 'f%'")
    kept = {client_id: int(seq) for client_id, seq in (line.split("\t") for line in rows.splitlines())}
    assert {client_id: kept.get(client_id) for client_id in talk.acknowledged} == talk.acknowledged
    seqs = [int(seq) for seq in stack.sql(f"SELECT seq FROM messages WHERE room_id = {them.room} ORDER BY 1").split()]
    assert seqs == list(range(1, len(seqs) + 1)), "no gap, and nothing twice"

    # All of the services, and across instances.
    for process in (*stack.gateways, *stack.chats, *stack.workers):
        process.wait_ready()
    one, other = (Chat.hello(url, who.jwt) for url, who in zip(stack.chat_urls, (them.applicant, them.representative)))
    one.say(them.room, "after", "after")
    seq = one.wait("ack", id="after")["seq"]
    assert other.wait("message", room=them.room, seq=seq)["body"] == "after"
    one.close()
    other.close()
    assert pair.step("look-again") == "f|t"
    assert "127.0.0.1" in stack.martlet("check")


def test_the_old_place_becomes_a_standby_by_the_same_steps(stack: Stack, pair: Pair) -> None:
    """With the roles changed; then the way back is as open as the way there was."""
    port = free_ports(1)[0]
    again = {
        "PRIMARY_PORT": str(pair.port), "STANDBY_PORT": str(port), "STANDBY_DATA": str(pair.folder / "again"),
        "STANDBY_NAME": "standby_b",
    }
    for name in ("role", "copy", "wait-for-standby"):
        pair.step(name, **again)
    until(lambda: pair.step("look", **again) == "streaming sync", "the new primary waits for the new standby")
    # Those for containers are run by make smoke.
    own = {step for step in pair.runbook.steps if not step.startswith("compose-")}
    assert set(pair.runbook.done) == own, "every command of the page has been run"
