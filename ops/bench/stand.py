"""What the measures stand on: the programs, the database, the rows of the table that is printed at the end."""

import base64
import hashlib
import hmac
import json
import math
import os
import re
import statistics
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from measure import Load, Server, free_port

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
BINARIES = ROOT / ".build/release"
PGBENCH = "/usr/lib/postgresql/15/bin/pgbench"
ROUNDS = 3  # Of each measurement, taken in turns; the median counts, as the machine is seldom quiet.
SECONDS = int(os.environ.get("BENCH_SECONDS", "6"))  # Of each load.
CONNECTIONS = 64
SERVER_CORE, LOAD_CORE = 0, 1  # Only where two cores are enough: a server that uses one, and its clients.
SECRET = "0" * 64
TOKEN_SECONDS = 3600


@dataclass
class Row:
    what: str
    figure: str
    compared: str
    ratio: float
    target: float
    at_most: bool  # Whether the target is a ceiling.

    def text(self) -> str:
        sign = "≤" if self.at_most else "≥"
        reached = self.ratio <= self.target if self.at_most else self.ratio >= self.target
        cells = f"{self.what:<34} {self.figure:>22} {self.compared:>30} {self.ratio:>9.2f} {sign} {self.target:<7g}"
        return f"{cells} {'reached' if reached else 'MISSED'}"


class Stand:
    def __init__(self, folder: Path):
        self.folder = folder
        self.database_url = os.environ["MARTLET_DATABASE_URL"]
        self.rows: list[Row] = []
        self.notes: list[str] = []
        (folder / "store").mkdir(exist_ok=True)
        (folder / "secret").write_text(SECRET)

    def sql(self, statement: str) -> str:
        command = ["psql", "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-c", statement, self.database_url]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def service(self, name: str, environment: dict[str, str], core: int | None) -> tuple[Server, str]:
        port, admin = free_port(), free_port()
        common = {
            "MARTLET_HTTP_ADDRESS": f"127.0.0.1:{port}",
            "MARTLET_ADMIN_ADDRESS": f"127.0.0.1:{admin}",
            "MARTLET_SECRET_FILE": str(self.folder / "secret"),
            "MARTLET_LOOPS": "1",  # As many as nginx and uvicorn have here.
            "MARTLET_LOG_LEVEL": "warning",
        }
        ready = f"http://127.0.0.1:{admin}/readyz"
        log = self.folder / f"{name}.log"
        server = Server([str(BINARIES / f"martlet-{name}")], common | environment, ready, log, core)
        return server, f"http://127.0.0.1:{port}"

    def gateway(self, core: int | None = None) -> tuple[Server, str]:
        environment = {"MARTLET_PUBLIC_URL": "http://localhost", "MARTLET_STORE": str(self.folder / "store")}
        return self.service("gateway", environment, core)

    def chat(self, core: int | None = None) -> tuple[Server, str]:
        environment = {
            "MARTLET_INSTANCE": f"bench-{time.monotonic_ns()}",
            # Crowds of few people who say much, all from one address.
            "MARTLET_CHAT_SOCKETS_PER_USER": "10000",
            "MARTLET_CHAT_SENDS_PER_SECOND": "100000",
        }
        return self.service("chat", environment, core)

    def door(self, base: str) -> tuple[Server, str]:
        """The front door of a deployment, with what answers at `base` as its only gateway."""
        port = free_port()
        caddy = str(self.folder / "caddy")
        environment = {
            "MARTLET_SITE": f":{port}", "MARTLET_BIND": "127.0.0.1", "MARTLET_GATEWAYS": base.removeprefix("http://"),
            "XDG_CONFIG_HOME": caddy, "XDG_DATA_HOME": caddy,
            "GOGC": "400", "GOMEMLIMIT": "384MiB",  # As in docker-compose.yml.
        }
        command = ["caddy", "run", "--config", str(ROOT / "ops/Caddyfile"), "--adapter", "caddyfile"]
        url = f"http://127.0.0.1:{port}"
        return Server(command, environment, f"{url}/_health", self.folder / "caddy.log"), url

    def people(self, count: int) -> list[int]:
        """New accounts."""
        begun = time.monotonic_ns()
        found = self.sql(
            f"INSERT INTO users (username, email) SELECT 'p{begun}x' || n, 'p{begun}x' || n || '@example.org' "
            f"FROM generate_series(1, {count}) n RETURNING id"
        )
        return list(map(int, found.split()))

    def places(self, count: int) -> list[int]:
        """New rooms, without members."""
        made = self.sql(f"INSERT INTO rooms (last_seq) SELECT 0 FROM generate_series(1, {count}) RETURNING id")
        rooms = list(map(int, made.split()))
        self.sql(f"UPDATE rooms SET wire_name = 'rep_' || id || '_ada' WHERE id BETWEEN {rooms[0]} AND {rooms[-1]}")
        return rooms

    def enter(self, pairs: list[tuple[int, int]]) -> None:
        """Makes people members of rooms: (room, person)."""
        command = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", self.database_url]
        command += ["-c", "COPY room_members (room_id, user_id) FROM STDIN"]
        text = "".join(f"{room}\t{person}\n" for room, person in pairs)
        subprocess.run(command, input=text, text=True, check=True)
        self.sql("ANALYZE rooms, room_members, users")

    def token(self, person: int) -> str:
        """As the gateway would sign it, for a session that nobody has ended."""

        def part(data: bytes) -> str:
            return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

        made = int(time.time()) - 5
        claims = {"id": person, "sid": person, "gen": 0, "typ": "access", "iat": made, "exp": made + TOKEN_SECONDS}
        signed = f"{part(json.dumps({'alg': 'HS256', 'typ': 'JWT'}).encode())}.{part(json.dumps(claims).encode())}"
        return f"{signed}.{part(hmac.new(SECRET.encode(), signed.encode(), hashlib.sha256).digest())}"

    def hello(self, person: int, resume: dict[int, int] | None = None) -> str:
        seen = {str(room): seq for room, seq in (resume or {}).items()}
        return json.dumps({"type": "hello", "token": self.token(person), "resume": seen})

    def in_turns(self, *measures: Callable[[], Load]) -> list[Load]:
        """Each in turn, some rounds; of each the round with the median rate."""
        results: list[list[Load]] = [[] for _ in measures]
        for _ in range(ROUNDS):
            for result, measure in zip(results, measures):
                result.append(measure())
                if failed := result[-1].failed:
                    raise SystemExit(f"{failed} of {result[-1].requests} requests were refused: no measurement.")
        return [sorted(result, key=lambda each: each.per_second)[ROUNDS // 2] for result in results]


class PgBench:
    """One script of pgbench for some seconds, in the background or not."""

    def __init__(
        self, stand: Stand, name: str, script: str, clients: int, seconds: float, rate: float | None = None
    ):
        self.logs = stand.folder / f"pgbench-{name}"
        for old in stand.folder.glob(f"pgbench-{name}.*"):
            old.unlink()
        (stand.folder / f"{name}.pgbench").write_text(script)
        # Its time begins before its clients have connected; its rate does not.
        whole = max(1, round(seconds)) + math.ceil(clients / 32)
        command = [PGBENCH, "-n", "-M", "prepared", "-c", str(clients), "-j", "1", "-T", str(whole)]
        command += ["-l", "--log-prefix", str(self.logs), "-f", str(stand.folder / f"{name}.pgbench")]
        command += ["-R", str(rate)] if rate else []
        self.child = subprocess.Popen([*command, stand.database_url], stdout=subprocess.PIPE, text=True)

    def finish(self) -> Load:
        """With a rate, latencies count from when each should have begun."""
        said, _ = self.child.communicate()
        if self.child.returncode:
            raise SystemExit("pgbench failed; its words are above.")
        rate = float(re.search(r"tps = ([\d.]+)", said).group(1))  # type: ignore[union-attr]
        lines = [line for log in self.logs.parent.glob(f"{self.logs.name}.*") for line in log.read_text().splitlines()]
        times = sorted(int(line.split()[2]) / 1000 for line in lines)
        return Load(len(times), rate, quantile(times, 0.99), 0, 0)


def quantile(ordered: list[float], part: float) -> float:
    return ordered[int((len(ordered) - 1) * part)] if ordered else 0.0


def middle(values: list[float]) -> float:
    return statistics.median(values)
