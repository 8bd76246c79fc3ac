"""ops/scripts/stack, with small programs in place of the services."""

import os
import random
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Iterator

import pytest

from chatstack import Cluster
from stack import ROOT
from waiting import until

FAKE = f"""#!{sys.executable}
import http.server, json, os, signal, sys, threading
name = os.environ.get("MARTLET_INSTANCE") or os.path.basename(sys.argv[0])
if name == os.environ.get("BROKEN"):
    sys.exit("MARTLET_STORE: the folder is missing")
signal.pthread_sigmask(signal.SIG_BLOCK, {{signal.SIGTERM}})
class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        # The front door sends nothing to whoever does not say that it is welcome.
        self.send_response(204 if self.path == "/_health" else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *arguments):
        pass
def serve(address):
    host, port = address.split(":")
    http.server.ThreadingHTTPServer((host, int(port)), Ready).serve_forever()
for key in ("MARTLET_HTTP_ADDRESS", "MARTLET_ADMIN_ADDRESS"):
    if key in os.environ:
        threading.Thread(target=serve, args=(os.environ[key],), daemon=True).start()
print(json.dumps({{"level": "info", "message": "pid", "of": name, "is": os.getpid(), "evil": "\\x1b[31m"}}), flush=True)
signal.sigwait({{signal.SIGTERM}})
print(json.dumps({{"level": "info", "message": "drained"}}), flush=True)
"""


def ports_in_a_row(count: int) -> int:
    """The first of `count` free ports that follow each other, below those that the kernel gives to connections."""
    for first in random.sample(range(12_000, 32_000, count), 50):
        try:
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
            return first
        except OSError:
            continue
    raise AssertionError("no free ports in a row")


class Run:
    """A running ops/scripts/stack and what it has said so far."""

    def __init__(self, folder: Path, environment: dict[str, str], postgres: Cluster | None):
        self.output = folder / "said"
        binaries = folder / "binaries"
        binaries.mkdir()
        for name in ("martlet-gateway", "martlet-chat", "martlet-worker"):
            (binaries / name).write_text(FAKE)
            (binaries / name).chmod(0o755)
        (folder / "local/secrets").mkdir(parents=True)
        (folder / "local/secrets/demo-password").write_text("horse")
        # PostgreSQL's port is the tenth after the front door's.
        first = int(postgres.port) - 10 if postgres else ports_in_a_row(13)
        command = [sys.executable, str(ROOT / "ops/scripts/stack"), "--port", str(first)]
        command += ["--postgres", postgres.place] if postgres else []
        command += ["--binaries", str(binaries), "--local", str(folder / "local")]
        with self.output.open("wb") as output:
            self.child = subprocess.Popen(
                command, env={**os.environ, **environment}, stdout=output, stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL, start_new_session=True,
            )

    def said(self) -> str:
        return self.output.read_text(errors="replace")

    def wait_for(self, words: str) -> None:
        until(lambda: words in self.said() or self.child.poll() is not None, words)
        assert words in self.said(), self.said()

    def pid_of(self, name: str) -> int:
        lines = [line for line in self.said().splitlines() if f"pid of={name} is=" in line]
        return int(lines[-1].split("is=")[1].split()[0])


@pytest.fixture
def begin(tmp_path: Path):
    runs: list[Run] = []

    def start(environment: dict[str, str] | None = None, postgres: Cluster | None = None) -> Run:
        runs.append(Run(tmp_path, environment or {}, postgres))
        return runs[-1]

    yield start
    for run in runs:
        if run.child.poll() is None:
            run.child.kill()
        run.child.wait(20)


@pytest.fixture
def postgres() -> Iterator[Cluster]:
    own = Cluster(ports_in_a_row(13) + 10)
    yield own
    own.remove()


def test_all_start_and_a_killed_service_is_named_and_comes_back(begin) -> None:
    run = begin()
    run.wait_for("Martlet is up")
    assert "password horse" in run.said()
    assert "\x1b" not in run.said(), "no terminal: no colours, and none of a service's own"
    first = run.pid_of("chat-2")
    os.kill(first, signal.SIGKILL)
    run.wait_for("chat-2   is back as process ")
    assert "chat-2   was killed by SIGKILL. Its last lines" in run.said()
    assert run.pid_of("chat-2") != first

    run.child.send_signal(signal.SIGTERM)
    assert run.child.wait(30) == 0
    drained = [line.split()[0] for line in run.said().splitlines() if line.endswith("drained")]
    assert drained[0] == "worker" and set(drained[1:3]) == {"chat-1", "chat-2"} and drained[3] == "gateway"


def test_a_service_that_cannot_start_is_named_with_its_words_and_nothing_stays_behind(begin) -> None:
    run = begin({"BROKEN": "martlet-worker"})
    assert run.child.wait(40) == 1
    assert "worker   ended by itself with status 1" in run.said()
    assert "MARTLET_STORE: the folder is missing" in run.said()
    assert not Path(f"/proc/{run.pid_of('martlet-gateway')}").exists()


def test_the_services_die_with_a_killed_stack(begin) -> None:
    run = begin()
    run.wait_for("Martlet is up")
    gateway = run.pid_of("martlet-gateway")
    run.child.kill()
    run.child.wait(20)

    def gone() -> bool:
        status = Path(f"/proc/{gateway}/status")
        return not status.exists() or "State:\tZ" in status.read_text()

    until(gone, "the gateway ends with its parent")


def test_a_killed_postgres_is_named_once_and_comes_back_each_time(begin, postgres: Cluster) -> None:
    run = begin(postgres=postgres)
    run.wait_for("Martlet is up")
    assert f"postgres {postgres.pid}" in run.said()
    for how in (signal.SIGKILL, signal.SIGINT):
        before = postgres.pid
        os.kill(before, how)
        run.wait_for(f"postgres process {before} is gone. Its last lines")
        until(lambda: run.said().count("postgres is back as process ") == run.said().count(" is gone."), "it is back")
        assert postgres.pid != before and f"postgres is back as process {postgres.pid}." in run.said()
    assert run.said().count(" is gone.") == 2
    assert "postgres   " in run.said() and "received fast shutdown request" in run.said(), "its own last words"
    last = postgres.pid
    run.child.send_signal(signal.SIGTERM)
    assert run.child.wait(30) == 0
    assert postgres.pid == last and run.said().count(" is gone.") == 2, "whoever started it stops it"


def test_a_postgres_that_cannot_run_any_more_stops_everything(begin, postgres: Cluster) -> None:
    run = begin(postgres=postgres)
    run.wait_for("Martlet is up")
    data = Path(postgres.place) / "data"
    (data / "global/pg_control").rename(data / "global/pg_control.away")
    postgres.crash(signal.SIGKILL)
    assert run.child.wait(60) == 1
    assert "postgres dies again and again; stopping everything." in run.said()
    assert run.said().count("PostgreSQL did not start") == 5 and "could not find the database system" in run.said()


def test_no_stack_starts_without_the_postgres_it_was_told_of(begin, postgres: Cluster) -> None:
    postgres.crash()
    run = begin(postgres=postgres)
    assert run.child.wait(20) == 1 and "does not run" in run.said() and "pid of=" not in run.said()
