"""Processes, load and what they cost, for bench.py. Linux only: it reads /proc."""

import os
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")
READY_SECONDS_MAX = 30
STOP_SECONDS_MAX = 20


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            answer.read()
            return True
    except urllib.error.HTTPError as error:
        return error.code < 500
    except OSError:
        return False


class Server:
    """A child process, from its start until it is stopped."""

    def __init__(self, command: list[str], environment: dict[str, str], ready: str, log: Path, core: int | None = None):
        # taskset and setpriv become the command, so the pid is the server's own.
        pinned = ["taskset", "-c", str(core)] if core is not None else []
        self.begun = time.monotonic()
        with log.open("ab") as output:
            self.child = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *pinned, *command],
                env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True,
            )
        while not answers(ready):
            if self.child.poll() is not None or time.monotonic() - self.begun > READY_SECONDS_MAX:
                tail = "\n".join(log.read_text(errors="replace").splitlines()[-10:])
                self.stop()
                raise SystemExit(f"{command[0]} did not get ready:\n{tail}")
            time.sleep(0.002)
        self.ready_seconds = time.monotonic() - self.begun

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def stop(self) -> None:
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
        try:
            self.child.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()

    def pids(self) -> list[int]:
        """The process and its children, as nginx has its workers there."""
        children = Path(f"/proc/{self.child.pid}/task/{self.child.pid}/children").read_text().split()
        return [self.child.pid, *map(int, children)]

    def cpu_seconds(self) -> float:
        total = 0.0
        for pid in self.pids():
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += (int(fields[11]) + int(fields[12])) * TICK_SECONDS
        return total

    def resident_megabytes(self) -> float:
        kilobytes = 0
        for pid in self.pids():
            status = Path(f"/proc/{pid}/status").read_text()
            kilobytes += int(re.search(r"VmRSS:\s+(\d+)", status).group(1))  # type: ignore[union-attr]
        return kilobytes / 1024


@dataclass
class Load:
    requests: int
    per_second: float
    p99_milliseconds: float
    failed: int
    cpu_microseconds: float  # Of the server, for each request.


def load(server: Server, url: str, seconds: int, connections: int, script: Path | None, core: int | None) -> Load:
    """wrk for some seconds against a server."""
    pinned = ["taskset", "-c", str(core)] if core is not None else []
    command = [*pinned, "wrk", "-t", "1", "-c", str(connections), "-d", f"{seconds}s", "--latency"]
    command += ["-s", str(script)] if script else []
    before = server.cpu_seconds()
    said = subprocess.run([*command, url], capture_output=True, text=True, check=True).stdout
    used = server.cpu_seconds() - before
    requests = int(re.search(r"(\d+) requests in", said).group(1))  # type: ignore[union-attr]
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", said).group(1))  # type: ignore[union-attr]
    number, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", said).groups()  # type: ignore[union-attr]
    p99 = float(number) * {"us": 0.001, "ms": 1, "s": 1000}[unit]
    failures = re.search(r"Non-2xx or 3xx responses: (\d+)", said)
    return Load(requests, rate, p99, int(failures.group(1)) if failures else 0, used * 1e6 / max(requests, 1))
