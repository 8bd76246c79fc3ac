"""Three real chats on a PostgreSQL of their own, for tests that kill, pause and cut what the others share."""

import base64
import hashlib
import hmac
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

from stack import ROOT, Process, Stack, free_ports
from waiting import until

# A client of Socket.IO notices within these that its connection is dead, so a test need not wait for a minute.
PING_TIMES = {"MARTLET_SOCKETIO_PING_INTERVAL_MS": "2000", "MARTLET_SOCKETIO_PING_TIMEOUT_MS": "3000"}
TOKEN_SECONDS = 3600


def script(*command: str) -> str:
    """One of ops/scripts; what it printed."""
    done = subprocess.run(
        [str(ROOT / "ops/scripts" / command[0]), *command[1:]], capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


class Cluster:
    """A PostgreSQL that a test may take away."""

    def __init__(self, port: int | None = None) -> None:
        # Not in pytest's folder: root's cluster belongs to the user postgres, and every other pytest that starts takes
        # strangers' way into that folder away.
        self.folder = Path(tempfile.mkdtemp(prefix="martlet-"))
        self.folder.chmod(0o711)
        self.place, self.port = str(self.folder / "cluster"), str(port or free_ports(1)[0])
        self.start()
        self.url = script("postgres", "url", self.place)

    def start(self) -> None:
        script("postgres", "start", self.place, self.port)

    @property
    def pid(self) -> int:
        """Of the server that runs, or ran last."""
        return int((Path(self.place) / "data/postmaster.pid").read_text().splitlines()[0])

    def crash(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """By default an immediate shutdown: connections are cut, nothing is written down, the next start recovers."""
        server = self.pid
        os.kill(server, how)
        # Until then a start would find it running.
        until(lambda: not is_alive(server), "PostgreSQL is gone")

    def remove(self) -> None:
        script("postgres", "remove", self.place)
        shutil.rmtree(self.folder, ignore_errors=True)


def is_alive(process: int) -> bool:
    """False for one that has ended, though nobody may have waited for it."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@dataclass
class Account:
    """Somebody with rooms, without the gateway's ceremony."""

    id: int
    token: str


class ChatStack(Stack):
    """A database, and `chats`; no gateways, workers or front door."""

    COUNT = 3

    def __init__(self, folder: Path, cluster: Cluster):
        super().__init__(folder, cluster.url)
        self.cluster = cluster
        internal = free_ports(self.COUNT)
        made = [
            self.extra_chat(f"chat-{number}", {"MARTLET_INTERNAL_ADDRESS": f"127.0.0.1:{port}", **PING_TIMES})
            for number, port in enumerate(internal, 1)
        ]
        self.chats: list[Process] = [process for process, _ in made]
        self.chat_bases = [base for _, base in made]
        self.chat_urls = [f"ws{base[4:]}/chat" for base in self.chat_bases]
        self.processes = self.chats
        self.secret = Path(self.environment["MARTLET_SECRET_FILE"]).read_text().strip()

    def start(self) -> None:
        self.create_database()
        for process in self.chats:
            process.start()
        for process in self.chats:
            process.wait_ready()

    def accounts(self, count: int) -> list[Account]:
        """New people, signed in: a token is checked by its signature, and by the list of sessions that ended."""
        stamp = time.monotonic_ns()
        ids = self.sql(
            "INSERT INTO users (username, email) "
            f"SELECT 'u{stamp}x' || n, 'u{stamp}x' || n || '@example.org' FROM generate_series(1, {count}) n "
            "RETURNING id"
        ).split()
        return [Account(int(each), self.token(int(each))) for each in ids]

    def token(self, user: int) -> str:
        """As the gateway signs one; the session is nobody's, so it cannot end."""

        def part(content: bytes) -> str:
            return base64.urlsafe_b64encode(content).rstrip(b"=").decode()

        now = int(time.time())
        claims = {"id": user, "sid": 10**12 + user, "gen": 0, "typ": "long", "iat": now, "exp": now + TOKEN_SECONDS}
        signed = f"{part(json.dumps({'alg': 'HS256', 'typ': 'JWT'}).encode())}.{part(json.dumps(claims).encode())}"
        return f"{signed}.{part(hmac.new(self.secret.encode(), signed.encode(), hashlib.sha256).digest())}"

    def rooms(self, members: list[list[int]]) -> list[int]:
        """A room for each list of people; its name is as the gateway would make it."""
        ids = [
            int(each)
            for each in self.sql(
                f"INSERT INTO rooms (wire_name) SELECT NULL FROM generate_series(1, {len(members)}) RETURNING id"
            ).split()
        ]
        self.sql("UPDATE rooms SET wire_name = 'rep_' || id || '_ada' WHERE wire_name IS NULL")
        pairs = ",".join(f"({room},{user})" for room, users in zip(ids, members) for user in users)
        self.sql(f"INSERT INTO room_members (room_id, user_id) VALUES {pairs}")
        return ids


@contextmanager
def chat_stack(folder: Path) -> Iterator[ChatStack]:
    cluster = Cluster()
    try:
        running = ChatStack(folder, cluster)
        try:
            running.start()
            yield running
        finally:
            running.stop()
    finally:
        cluster.remove()
