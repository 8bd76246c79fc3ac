"""Fixtures: one stack of real processes for the whole run, and new people for each test."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Iterator

import pytest

from chat import Chat
from inbox import Inbox
from people import Person, new_word
from stack import ROOT, Stack

# Everything is on this machine; a proxy in the environment would be asked for it all the same.
os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1,localhost"


def pytest_configure(config: pytest.Config) -> None:
    for program in ("martlet", "martlet-gateway", "martlet-chat", "martlet-worker", "WebSocketEcho"):
        if not (ROOT / ".build/debug" / program).exists():
            raise pytest.UsageError(f".build/debug/{program} is missing: run make test, or swift build")
    if not os.environ.get("MARTLET_TEST_DATABASE_URL"):
        raise pytest.UsageError("MARTLET_TEST_DATABASE_URL is not set: run make test, or ops/scripts/postgres start")
    for program in ("caddy", "psql", "pgbouncer", "nginx", "haproxy", "clamd", "prometheus", "promtool"):
        if not shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin"):
            raise pytest.UsageError(f"{program} is missing: run ops/scripts/packages test")


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    running = Stack(tmp_path_factory.mktemp("stack"), os.environ["MARTLET_TEST_DATABASE_URL"])
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="module")
def person(stack: Stack) -> Callable[[str], Person]:
    """Registers somebody through the front door."""
    return lambda name: Person.register(stack.base, name)


@pytest.fixture(scope="session")
def token(stack: Stack) -> str:
    """Of somebody without rooms."""
    return Person.register(stack.base, "tok").jwt


@pytest.fixture(scope="session")
def hasty_chat(stack: Stack) -> Iterator[str]:
    """A chat with the times that the protocol's own test-suites expect."""
    times = {
        "MARTLET_SOCKETIO_PING_INTERVAL_MS": "300",
        "MARTLET_SOCKETIO_PING_TIMEOUT_MS": "200",
        "MARTLET_SOCKETIO_PAYLOAD_BYTES": "1000000",
        "MARTLET_SOCKETIO_CONNECT_TIMEOUT_MS": "1000",
    }
    process, base = stack.extra_chat("hasty", times)
    process.restart()
    yield base
    process.stop()


@pytest.fixture(scope="session")
def pinging_chat(stack: Stack) -> Iterator[str]:
    """A chat that pings often, and waits for the answer of a client that is busy."""
    times = {"MARTLET_SOCKETIO_PING_INTERVAL_MS": "300", "MARTLET_SOCKETIO_PING_TIMEOUT_MS": "60000"}
    process, base = stack.extra_chat("pinging", times)
    process.restart()
    yield base
    process.stop()


@pytest.fixture
def inbox(stack: Stack) -> Callable[[Person], Inbox]:
    return lambda somebody: Inbox(stack.mail_folder, somebody.email)


@pytest.fixture
def chat(stack: Stack) -> Iterator[Callable[..., Chat]]:
    """Greets one of the chats (0 or 1) directly, or any by the front door; all are closed after the test."""
    open_chats: list[Chat] = []

    def greet(somebody: Person, number: int | None = None, resume: dict[int, int] | None = None) -> Chat:
        url = f"ws{stack.base[4:]}/chat" if number is None else stack.chat_urls[number]
        open_chats.append(Chat.hello(url, somebody.jwt, resume))
        return open_chats[-1]

    yield greet
    for each in open_chats:
        each.close()


@dataclass
class Accepted:
    """An application that has been accepted, so that the two people share a room."""

    applicant: Person
    representative: Person
    company: int
    posting: int
    application: int
    room: int


@pytest.fixture(scope="module")
def accepted(person: Callable[[str], Person]) -> Callable[[], Accepted]:
    def make() -> Accepted:
        applicant, representative = person("ada"), person("rep")
        company = representative.create_company(f"Company {new_word()}")["id"]
        posting = representative.publish(f"Engineer {new_word()}")["id"]
        application = applicant.apply(posting)["id"]
        representative.decide(application, "accepted")
        rooms = applicant.rooms()
        assert len(rooms) == 1, rooms
        return Accepted(applicant, representative, company, posting, application, rooms[0]["id"])

    return make


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A failed test shows the ends of all logs: the reason is usually in another process."""
    report = (yield).get_result()
    stack = getattr(item, "funcargs", {}).get("stack")
    if report.failed and stack:
        report.sections.append(("logs of the processes", stack.logs()))


def pytest_make_parametrize_id(val: object) -> str | None:
    """Names of tests stay short, however long the values are that they try."""
    text = repr(val)
    return None if len(text) < 40 else text[:30] + "…"
