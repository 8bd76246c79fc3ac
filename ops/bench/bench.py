"""make bench: Martlet beside nginx, pgbench and FastAPI, in one run on one machine. Ratios count, not figures.

Called by ops/scripts/bench, which has built the programs and started a PostgreSQL: MARTLET_DATABASE_URL names an empty
database in it, with the schema migrated.
"""

import getpass
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from fanout import FanOut
from measure import Load, Server, free_port, load

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
BINARIES = ROOT / ".build/release"
POOL = ROOT.parent / "shared/data/usajobs"
ROUNDS = 3  # Of each measurement, taken in turns; the median counts, as the machine is seldom quiet.
SECONDS = int(os.environ.get("BENCH_SECONDS", "6"))  # Of each load.
ONLY = os.environ.get("BENCH_ONLY", "").split()  # Names of measures, or all.
CONNECTIONS = 64
STARTS = 5
SERVER_CORE, LOAD_CORE = 0, 1  # Only where two cores are enough: a server that uses one, and wrk.
SOCKETS, MESSAGES, BURST = 500, 64, 16  # In one room of Socket.IO; said there in each round; and at once.
PIPELINE = 50  # Selects in one of pgbench's pipelines.


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


class Bench:
    def __init__(self, folder: Path):
        self.folder = folder
        self.database_url = os.environ["MARTLET_DATABASE_URL"]
        self.rows: list[Row] = []
        self.notes: list[str] = []
        (folder / "store").mkdir(exist_ok=True)
        (folder / "secret").write_text("0" * 64)

    def sql(self, statement: str) -> str:
        command = ["psql", "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-c", statement, self.database_url]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def gateway(self, core: int | None = None) -> tuple[Server, str]:
        port, admin = free_port(), free_port()
        environment = {
            "MARTLET_HTTP_ADDRESS": f"127.0.0.1:{port}",
            "MARTLET_ADMIN_ADDRESS": f"127.0.0.1:{admin}",
            "MARTLET_SECRET_FILE": str(self.folder / "secret"),
            "MARTLET_PUBLIC_URL": "http://localhost",
            "MARTLET_STORE": str(self.folder / "store"),
            "MARTLET_LOOPS": "1",  # As many as nginx and uvicorn have here.
            "MARTLET_LOG_LEVEL": "warning",
        }
        ready = f"http://127.0.0.1:{admin}/readyz"
        log = self.folder / "gateway.log"
        server = Server([str(BINARIES / "martlet-gateway")], environment, ready, log, core)
        return server, f"http://127.0.0.1:{port}"

    def imports(self) -> None:
        """All announcements there are, by one command."""
        pool = POOL if POOL.is_dir() else ROOT / "ops/sample/usajobs.json"
        files = sorted(pool.glob("*.json")) if pool.is_dir() else [pool]
        rows = len({row["control_number"] for file in files for row in json.loads(file.read_text())})
        command = [str(BINARIES / "martlet"), "import", str(pool), "--format", "usajobs"]
        begun = time.monotonic()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - begun
        if child.returncode:
            raise SystemExit("martlet import failed; its words are above.")
        megabytes = usage.ru_maxrss / 1024
        self.rows.append(
            Row("import, postings a second", f"{rows:,} in {seconds:.2f} s", "", rows / seconds, 5000, False)
        )
        self.rows.append(Row("import, memory in MB", f"{megabytes:.0f} MB", "", megabytes, 200, True))
        self.sql("VACUUM ANALYZE")

    def starts(self) -> None:
        taken, memory = [], []
        for _ in range(STARTS):
            server, _ = self.gateway()
            taken.append(server.ready_seconds * 1000)
            memory.append(server.resident_megabytes())
            server.stop()
        middle = statistics.median(taken)
        self.rows.append(Row("gateway, start to ready in ms", f"{middle:.0f} ms", "", middle, 300, True))
        middle = statistics.median(memory)
        self.rows.append(Row("gateway, idle memory in MB", f"{middle:.0f} MB", "", middle, 60, True))

    def nginx(self, body: bytes, core: int | None) -> tuple[Server, str]:
        port = free_port()
        pages = self.folder / "pages"
        pages.mkdir(exist_ok=True)
        (pages / "constant.json").write_bytes(body)
        configuration = self.folder / "nginx.conf"
        text = (HERE / "nginx.conf").read_text().replace("@PORT@", str(port)).replace("@FOLDER@", str(self.folder))
        configuration.write_text(text.replace("@USER@", getpass.getuser()))
        url = f"http://127.0.0.1:{port}/constant.json"
        binary = shutil.which("nginx") or "/usr/sbin/nginx"
        return Server([binary, "-c", str(configuration)], {}, url, self.folder / "nginx.log", core), url

    def in_turns(self, *measures: Callable[[], Load]) -> list[Load]:
        """Each in turn, some rounds; of each the round with the median rate."""
        results: list[list[Load]] = [[] for _ in measures]
        for _ in range(ROUNDS):
            for result, measure in zip(results, measures):
                result.append(measure())
                if failed := result[-1].failed:
                    raise SystemExit(f"{failed} of {result[-1].requests} requests were refused: no measurement.")
        return [sorted(result, key=lambda each: each.per_second)[ROUNDS // 2] for result in results]

    def constant(self) -> None:
        """A constant answer: what a request costs the server's processor, beside nginx with the same bytes."""
        server, base = self.gateway(SERVER_CORE)
        with server:
            with urllib.request.urlopen(f"{base}/") as answer:
                body = answer.read()
            front, url = self.nginx(body, SERVER_CORE)
            with front:
                ours, theirs = self.in_turns(
                    lambda: load(server, f"{base}/", SECONDS, CONNECTIONS, None, LOAD_CORE),
                    lambda: load(front, url, SECONDS, CONNECTIONS, None, LOAD_CORE),
                )
        self.notes.append(
            f"constant answer ({len(body)} bytes): {ours.per_second:,.0f}/s, p99 {ours.p99_milliseconds:.1f} ms; "
            f"nginx {theirs.per_second:,.0f}/s, p99 {theirs.p99_milliseconds:.1f} ms"
        )
        self.rows.append(
            Row(
                "constant answer, µs a request", f"{ours.cpu_microseconds:.1f} µs",
                f"nginx {theirs.cpu_microseconds:.1f} µs", ours.cpu_microseconds / theirs.cpu_microseconds, 1.2, True,
            )
        )

    def posting_by_id(self) -> None:
        """One posting by id, beside FastAPI and pgbench with the same statement on the same rows."""
        lowest, highest = map(int, self.sql("SELECT min(id), max(id) FROM job_postings").split("|"))
        script = self.folder / "ids.lua"
        script.write_text(
            f"math.randomseed(7)\nrequest = function()\n"
            f'  return wrk.format("GET", "/api/jobs/" .. math.random({lowest}, {highest}))\nend\n'
        )
        server, base = self.gateway()
        with server:
            with ThreadPoolExecutor() as pool:
                loading = pool.submit(load, server, base, SECONDS, 8, script, None)
                statement, connections = self.statement(loading)
            (self.folder / "query.sql").write_text(statement)
            other, url = self.fastapi(f"/api/jobs/{lowest}")
            with other:
                rates: list[float] = []

                def pgbench() -> Load:
                    rates.append(self.pgbench(statement, connections, lowest, highest))
                    return Load(0, rates[-1], 0, 0, 0)

                ours, theirs, bare = self.in_turns(
                    lambda: load(server, base, SECONDS, CONNECTIONS, script, None),
                    lambda: load(other, url, SECONDS, CONNECTIONS, script, None),
                    pgbench,
                )
        self.notes.append(
            f"posting by id: {ours.cpu_microseconds:.0f} µs of CPU a request, p99 {ours.p99_milliseconds:.1f} ms; "
            f"FastAPI {theirs.cpu_microseconds:.0f} µs, p99 {theirs.p99_milliseconds:.1f} ms; "
            f"our connections to PostgreSQL: {connections}"
        )
        figure = f"{ours.per_second:,.0f}/s"
        self.rows.append(
            Row("posting by id, beside FastAPI", figure, f"FastAPI+asyncpg {theirs.per_second:,.0f}/s",
                ours.per_second / theirs.per_second, 10, False)
        )
        self.rows.append(
            Row("posting by id, beside pgbench", figure, f"pgbench pipelined {bare.per_second:,.0f}/s",
                ours.per_second / bare.per_second, 0.6, False)
        )

    def fastapi(self, ready: str) -> tuple[Server, str]:
        port = free_port()
        (self.folder / "query.sql").touch()
        environment = {
            "BENCH_DATABASE_URL": self.database_url,
            "BENCH_QUERY_FILE": str(self.folder / "query.sql"),
        }
        command = [sys.executable, "-m", "uvicorn", "fastapi_app:app", "--app-dir", str(HERE), "--port", str(port)]
        command += ["--no-access-log", "--log-level", "warning"]
        url = f"http://127.0.0.1:{port}"
        return Server(command, environment, url + ready, self.folder / "fastapi.log"), url

    def postings_list(self) -> None:
        """The stock client's list: 25 postings with company and logo, and how many there are."""
        path = "/api/jobs?populate%5Bcompany%5D%5Bpopulate%5D%5B0%5D=logo"
        # What is announced there has closed long ago.
        self.sql("UPDATE job_postings SET state = 'published', valid_through = NULL")
        self.sql("VACUUM ANALYZE job_postings")
        server, base = self.gateway()
        with server:
            with urllib.request.urlopen(base + path) as answer:
                listed = len(json.load(answer)["data"])
            if listed != 25:
                raise SystemExit(f"The list has {listed} postings.")
            other, url = self.fastapi(path)
            with other:
                ours, theirs = self.in_turns(
                    lambda: load(server, base + path, SECONDS, CONNECTIONS, None, None),
                    lambda: load(other, url + path, SECONDS, CONNECTIONS, None, None),
                )
        self.notes.append(
            f"list of 25: {ours.cpu_microseconds:.0f} µs of CPU a request, p99 {ours.p99_milliseconds:.1f} ms; "
            f"FastAPI {theirs.cpu_microseconds:.0f} µs, p99 {theirs.p99_milliseconds:.1f} ms"
        )
        self.rows.append(
            Row("list of 25, beside FastAPI", f"{ours.per_second:,.0f}/s",
                f"FastAPI+asyncpg {theirs.per_second:,.0f}/s", ours.per_second / theirs.per_second, 8, False)
        )

    def chat(self) -> tuple[Server, str]:
        port, admin = free_port(), free_port()
        environment = {
            "MARTLET_HTTP_ADDRESS": f"127.0.0.1:{port}",
            "MARTLET_ADMIN_ADDRESS": f"127.0.0.1:{admin}",
            "MARTLET_SECRET_FILE": str(self.folder / "secret"),
            "MARTLET_LOOPS": "1",  # As many as uvicorn has.
            "MARTLET_LOG_LEVEL": "warning",
            # All sockets are one person's, who says much.
            "MARTLET_CHAT_SOCKETS_PER_USER": str(2 * SOCKETS),
            "MARTLET_CHAT_SENDS_PER_SECOND": "10000",
        }
        ready = f"http://127.0.0.1:{admin}/readyz"
        server = Server([str(BINARIES / "martlet-chat")], environment, ready, self.folder / "chat.log")
        return server, f"http://127.0.0.1:{port}"

    def person(self) -> tuple[int, str]:
        """A new account and its token."""
        name = f"p{time.monotonic_ns()}"
        body = {"username": name, "email": f"{name}@example.org", "password": name}
        server, base = self.gateway()
        with server:
            answer = request_json(f"{base}/api/auth/local/register", body)
        return answer["user"]["id"], answer["jwt"]

    def room(self, person: int) -> str:
        """A new room of one member; its name."""
        room = self.sql("INSERT INTO rooms DEFAULT VALUES RETURNING id")
        name = f"rep_{room}_ada"
        self.sql(
            f"UPDATE rooms SET wire_name = '{name}' WHERE id = {room};"
            f"INSERT INTO room_members (room_id, user_id) VALUES ({room}, {person})"
        )
        return name

    def socketio(self) -> None:
        """What one says in a room of many sockets, until all have it: one message after the other, and in bursts."""
        person, token = self.person()
        chat, base = self.chat()
        port = free_port()
        command = [sys.executable, "-m", "uvicorn", "socketio_app:app", "--app-dir", str(HERE), "--port", str(port)]
        command += ["--no-access-log", "--log-level", "warning"]
        url = f"http://127.0.0.1:{port}"
        with chat:
            peer = Server(command, {}, f"{url}/socket.io/?EIO=4&transport=polling", self.folder / "socketio.log")
            with peer:
                for burst, name in ((1, "one by one"), (BURST, f"{BURST} at once")):
                    ours, theirs = self.in_turns(
                        lambda: fan_out(chat, base, self.room(person), token, burst),
                        lambda: fan_out(peer, url, f"room{time.monotonic_ns()}", token, burst),
                    )
                    self.notes.append(
                        f"Socket.IO, {name}: {ours.cpu_microseconds:.1f} µs of CPU a message and socket, slowest "
                        f"{ours.p99_milliseconds:.1f} ms; python-socketio {theirs.cpu_microseconds:.1f} µs, "
                        f"{theirs.p99_milliseconds:.1f} ms"
                    )
                    self.rows.append(
                        Row(f"Socket.IO, {SOCKETS} hear {name}", f"{ours.per_second:,.0f}/s",
                            f"python-socketio {theirs.per_second:,.0f}/s", ours.per_second / theirs.per_second, 10,
                            False)
                    )
        self.notes.append(
            f"Socket.IO: {MESSAGES} messages to {SOCKETS} sockets, room_messages with all texts so far; messages that "
            "meet go out together; python-socketio stores nothing"
        )

    def statement(self, loading: Future) -> tuple[str, int]:
        """What the gateway asks PostgreSQL for a posting while it is loaded, and on how many connections at once."""
        seen: dict[str, int] = {}
        while not loading.done():
            found = self.sql(
                "SELECT jsonb_build_array(query, count(*)) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                "AND datname = current_database() AND query ~ 'FROM job_postings p' GROUP BY query"
            )
            for line in found.splitlines():
                query, count = json.loads(line)
                seen[query] = max(count, seen.get(query, 0))
        if not seen:
            raise SystemExit("The gateway was not seen asking for postings.")
        statement = max(seen, key=lambda query: seen[query])
        # The second parameter is the reader, who may see drafts of their own: nobody here.
        return re.sub(r"\$2\b", "NULL::bigint", statement), seen[statement]

    def pgbench(self, statement: str, connections: int, lowest: int, highest: int) -> float:
        select = re.sub(r"\$1\b", ":id", " ".join(statement.split()))
        script = self.folder / "pipeline.pgbench"
        one = f"\\set id random({lowest}, {highest})\n{select};\n"
        script.write_text("\\startpipeline\n" + one * PIPELINE + "\\endpipeline\n")
        command = ["/usr/lib/postgresql/15/bin/pgbench", "-n", "-M", "prepared", "-c", str(connections), "-j", "1"]
        command += ["-T", str(SECONDS), "-f", str(script), self.database_url]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return float(re.search(r"tps = ([\d.]+)", said).group(1)) * PIPELINE  # type: ignore[union-attr]


def fan_out(server: Server, url: str, room: str, token: str, burst: int) -> Load:
    """Messages to many sockets, so many at once; the p99 is the slowest time until all had heard them."""
    sockets = FanOut(url, SOCKETS, room, token)
    sockets.say(["the first"])
    used, begun, slowest = server.cpu_seconds(), time.monotonic(), 0.0
    for number in range(MESSAGES // burst):
        one = time.monotonic()
        sockets.say([f"message {number} {each} of some usual length, as people write them" for each in range(burst)])
        slowest = max(slowest, time.monotonic() - one)
    seconds, used = time.monotonic() - begun, server.cpu_seconds() - used
    sockets.close()
    count = MESSAGES * SOCKETS
    return Load(count, count / seconds, slowest * 1000, 0, used * 1e6 / count)


def request_json(url: str, body: dict) -> dict:
    data = json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def machine() -> str:
    model = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1024**3
    name = model.group(1) if model else "unknown processor"
    return f"{os.cpu_count()} cores of {name}, {memory:.0f} GiB, Linux {os.uname().release}"


def main() -> None:
    bench = Bench(Path(os.environ["BENCH_FOLDER"]))
    print(f"Machine: {machine()}")
    print(f"Each load: {SECONDS} s, {CONNECTIONS} connections, the median of {ROUNDS} rounds in turns.", flush=True)
    measures = (bench.imports, bench.starts, bench.constant, bench.posting_by_id, bench.postings_list, bench.socketio)
    for measure in measures:
        # The import makes the rows of the others.
        if not ONLY or measure.__name__ in {"imports", *ONLY}:
            print(f"… {measure.__name__.replace('_', ' ')}", flush=True)
            measure()
    print()
    print(f"{'what':<34} {'Martlet':>22} {'beside':>30} {'ratio':>9}   target")
    for row in bench.rows:
        print(row.text())
    print()
    for note in bench.notes:
        print(f"  {note}")
    print(f"  wrk -t1 -c{CONNECTIONS} -d{SECONDS}s; gateway, nginx and uvicorn with one loop each;")
    print(f"  constant answer: server on core {SERVER_CORE}, wrk on core {LOAD_CORE}; the rest not pinned.")


if __name__ == "__main__":
    main()
