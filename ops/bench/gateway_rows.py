"""The gateway beside nginx, pgbench and FastAPI."""

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
from contextlib import contextmanager
from typing import Iterator

from measure import Load, Server, free_port, load
from stand import BINARIES, CONNECTIONS, HERE, LOAD_CORE, PGBENCH, ROOT, SECONDS, SERVER_CORE, Row, Stand

POOL = ROOT.parent / "shared/data/usajobs"
STARTS = 5
PIPELINE = 50  # Selects in one of pgbench's pipelines.
# As the gateway's lane plans, so that both sides run the same plan.
PLANS = "-c plan_cache_mode=force_generic_plan -c jit=off"
PLANS += " -c enable_seqscan=off -c enable_hashjoin=off -c enable_bitmapscan=off"


class GatewayRows:
    def __init__(self, stand: Stand):
        self.stand = stand

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
        self.stand.rows.append(
            Row("import, postings a second", f"{rows:,} in {seconds:.2f} s", "", rows / seconds, 5000, False)
        )
        self.stand.rows.append(Row("import, memory in MB", f"{megabytes:.0f} MB", "", megabytes, 200, True))
        self.stand.sql("VACUUM ANALYZE")

    def starts(self) -> None:
        taken, memory = [], []
        for _ in range(STARTS):
            server, _ = self.stand.gateway()
            taken.append(server.ready_seconds * 1000)
            memory.append(server.resident_megabytes())
            server.stop()
        middle = statistics.median(taken)
        self.stand.rows.append(Row("gateway, start to ready in ms", f"{middle:.0f} ms", "", middle, 300, True))
        middle = statistics.median(memory)
        self.stand.rows.append(Row("gateway, idle memory in MB", f"{middle:.0f} MB", "", middle, 60, True))

    def nginx(self, body: bytes, core: int | None) -> tuple[Server, str]:
        port = free_port()
        pages = self.stand.folder / "pages"
        pages.mkdir(exist_ok=True)
        (pages / "constant.json").write_bytes(body)
        configuration = self.stand.folder / "nginx.conf"
        text = (HERE / "nginx.conf").read_text().replace("@PORT@", str(port))
        text = text.replace("@FOLDER@", str(self.stand.folder))
        configuration.write_text(text.replace("@USER@", getpass.getuser()))
        url = f"http://127.0.0.1:{port}/constant.json"
        binary = shutil.which("nginx") or "/usr/sbin/nginx"
        return Server([binary, "-c", str(configuration)], {}, url, self.stand.folder / "nginx.log", core), url

    def constant(self) -> None:
        """A constant answer: what a request costs the server's processor, beside nginx with the same bytes."""
        server, base = self.stand.gateway(SERVER_CORE)
        with server:
            with urllib.request.urlopen(f"{base}/") as answer:
                body = answer.read()
            other, url = self.nginx(body, SERVER_CORE)
            with other, self.doors(base, url.removesuffix("/constant.json")) as (our_door, their_door):
                ours, theirs, ours_inside, theirs_inside = self.stand.in_turns(
                    lambda: load(server, f"{base}/", SECONDS, CONNECTIONS, None, LOAD_CORE),
                    lambda: load(other, url, SECONDS, CONNECTIONS, None, LOAD_CORE),
                    lambda: load(server, f"{our_door}/", SECONDS, CONNECTIONS, None, LOAD_CORE),
                    lambda: load(other, f"{their_door}/constant.json", SECONDS, CONNECTIONS, None, LOAD_CORE),
                )
        self.stand.notes.append(
            f"constant answer ({len(body)} bytes): {ours.per_second:,.0f}/s, p99 {ours.p99_milliseconds:.1f} ms; "
            f"nginx {theirs.per_second:,.0f}/s, p99 {theirs.p99_milliseconds:.1f} ms; through the front door "
            f"{ours_inside.per_second:,.0f}/s and {theirs_inside.per_second:,.0f}/s"
        )
        for words, mine, its in (("", ours, theirs), (" behind the door", ours_inside, theirs_inside)):
            self.stand.rows.append(
                Row(f"constant{words}, µs a request", f"{mine.cpu_microseconds:.1f} µs",
                    f"nginx {its.cpu_microseconds:.1f} µs", mine.cpu_microseconds / its.cpu_microseconds, 1.1, True)
            )

    @contextmanager
    def doors(self, ours: str, theirs: str) -> Iterator[tuple[str, str]]:
        """Front doors of two services; their addresses."""
        first, our_door = self.stand.door(ours)
        with first:
            second, their_door = self.stand.door(theirs)
            with second:
                yield our_door, their_door

    def through_door(self, what: str, ours: Load, theirs: Load, target: float) -> None:
        self.stand.notes.append(
            f"{what}, through the front door: {ours.cpu_microseconds:.0f} µs of the service's CPU a request, p99 "
            f"{ours.p99_milliseconds:.1f} ms; FastAPI {theirs.cpu_microseconds:.0f} µs, p99 "
            f"{theirs.p99_milliseconds:.1f} ms"
        )
        self.stand.rows.append(
            Row(f"{what}, through the front door", f"{ours.per_second:,.0f}/s", f"FastAPI {theirs.per_second:,.0f}/s",
                ours.per_second / theirs.per_second, target, False)
        )

    def posting_by_id(self) -> None:
        """One posting by id, beside FastAPI and pgbench with the same statement on the same rows."""
        lowest, highest = map(int, self.stand.sql("SELECT min(id), max(id) FROM job_postings").split("|"))
        script = self.stand.folder / "ids.lua"
        script.write_text(
            f"math.randomseed(7)\nrequest = function()\n"
            f'  return wrk.format("GET", "/api/jobs/" .. math.random({lowest}, {highest}))\nend\n'
        )
        server, base = self.stand.gateway()
        with server:
            with ThreadPoolExecutor() as pool:
                loading = pool.submit(load, server, base, SECONDS, 8, script, None)
                statement, connections = self.statement(loading)
            (self.stand.folder / "query.sql").write_text(statement)
            other, url = self.fastapi(f"/api/jobs/{lowest}")
            with other, self.doors(base, url.removesuffix(f"/api/jobs/{lowest}")) as (our_door, their_door):
                rates: list[float] = []

                def pgbench() -> Load:
                    rates.append(self.pgbench(statement, connections, lowest, highest))
                    return Load(0, rates[-1], 0, 0, 0)

                ours, theirs, bare, ours_inside, theirs_inside = self.stand.in_turns(
                    lambda: load(server, base, SECONDS, CONNECTIONS, script, None),
                    lambda: load(other, url, SECONDS, CONNECTIONS, script, None),
                    pgbench,
                    lambda: load(server, our_door, SECONDS, CONNECTIONS, script, None),
                    lambda: load(other, their_door, SECONDS, CONNECTIONS, script, None),
                )
        self.stand.notes.append(
            f"posting by id: {ours.cpu_microseconds:.0f} µs of CPU a request, p99 {ours.p99_milliseconds:.1f} ms; "
            f"FastAPI {theirs.cpu_microseconds:.0f} µs, p99 {theirs.p99_milliseconds:.1f} ms; "
            f"our connections to PostgreSQL: {connections}"
        )
        figure = f"{ours.per_second:,.0f}/s"
        self.stand.rows.append(
            Row("posting by id, beside FastAPI", figure, f"FastAPI+asyncpg {theirs.per_second:,.0f}/s",
                ours.per_second / theirs.per_second, 10, False)
        )
        self.stand.rows.append(
            Row("posting by id, beside pgbench", figure, f"pgbench pipelined {bare.per_second:,.0f}/s",
                ours.per_second / bare.per_second, 0.75, False)
        )
        self.through_door("posting by id", ours_inside, theirs_inside, 10)

    def fastapi(self, ready: str) -> tuple[Server, str]:
        port = free_port()
        (self.stand.folder / "query.sql").touch()
        environment = {
            "BENCH_DATABASE_URL": self.stand.database_url,
            "BENCH_QUERY_FILE": str(self.stand.folder / "query.sql"),
        }
        command = [sys.executable, "-m", "uvicorn", "fastapi_app:app", "--app-dir", str(HERE), "--port", str(port)]
        command += ["--no-access-log", "--log-level", "warning"]
        url = f"http://127.0.0.1:{port}"
        return Server(command, environment, url + ready, self.stand.folder / "fastapi.log"), url

    def postings_list(self) -> None:
        """The stock client's list: 25 postings with company and logo, and how many there are."""
        path = "/api/jobs?populate%5Bcompany%5D%5Bpopulate%5D%5B0%5D=logo"
        # What is announced there has closed long ago.
        self.stand.sql("UPDATE job_postings SET state = 'published', valid_through = NULL")
        self.stand.sql("VACUUM ANALYZE job_postings")
        server, base = self.stand.gateway()
        with server:
            with urllib.request.urlopen(base + path) as answer:
                listed = len(json.load(answer)["data"])
            if listed != 25:
                raise SystemExit(f"The list has {listed} postings.")
            other, url = self.fastapi(path)
            with other, self.doors(base, url) as (our_door, their_door):
                ours, theirs, ours_inside, theirs_inside = self.stand.in_turns(
                    lambda: load(server, base + path, SECONDS, CONNECTIONS, None, None),
                    lambda: load(other, url + path, SECONDS, CONNECTIONS, None, None),
                    lambda: load(server, our_door + path, SECONDS, CONNECTIONS, None, None),
                    lambda: load(other, their_door + path, SECONDS, CONNECTIONS, None, None),
                )
        self.stand.notes.append(
            f"list of 25: {ours.cpu_microseconds:.0f} µs of CPU a request, p99 {ours.p99_milliseconds:.1f} ms; "
            f"FastAPI {theirs.cpu_microseconds:.0f} µs, p99 {theirs.p99_milliseconds:.1f} ms"
        )
        self.stand.rows.append(
            Row("list of 25, beside FastAPI", f"{ours.per_second:,.0f}/s",
                f"FastAPI+asyncpg {theirs.per_second:,.0f}/s", ours.per_second / theirs.per_second, 8, False)
        )
        self.through_door("list of 25", ours_inside, theirs_inside, 8)

    def statement(self, loading: Future) -> tuple[str, int]:
        """What the gateway asks PostgreSQL for a posting while it is loaded, and on how many connections at once."""
        seen: dict[str, int] = {}
        while not loading.done():
            found = self.stand.sql(
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
        script = self.stand.folder / "pipeline.pgbench"
        one = f"\\set id random({lowest}, {highest})\n{select};\n"
        script.write_text("\\startpipeline\n" + one * PIPELINE + "\\endpipeline\n")
        command = [PGBENCH, "-n", "-M", "prepared", "-c", str(connections), "-j", "1"]
        command += ["-T", str(SECONDS), "-f", str(script), self.stand.database_url]
        environment = {**os.environ, "PGOPTIONS": PLANS}
        said = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
        return float(re.search(r"tps = ([\d.]+)", said).group(1)) * PIPELINE  # type: ignore[union-attr]
