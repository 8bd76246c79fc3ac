"""The work queue: beside other queues, and under a snapshot that somebody holds, as a dump does."""

import json
import os
import re
import statistics
import subprocess
import sys
from urllib.parse import urlsplit, urlunsplit

from measure import Load
from stand import BINARIES, HERE, PgBench, Row, Stand

BATCH = 100
ITEMS = {"ours": 100_000, "pgqueuer": 20_000, "procrastinate": 1_000}  # Seconds each.
OFFERED = 800  # Items a second.
WINDOW_SECONDS = 10  # As in Tests/QueueBench.
# The first window and the one in which the snapshot is taken do not count.
BEFORE_SECONDS = 70
HELD_SECONDS = int(os.environ.get("BENCH_HELD_SECONDS", "600"))
PUT_IN = """
BEGIN;
INSERT INTO work_items (kind, payload)
VALUES ('prune', jsonb_build_object('at', extract(epoch FROM clock_timestamp())));
SELECT pg_notify('martlet_work', '');
COMMIT;
"""


class QueueRows:
    def __init__(self, stand: Stand):
        self.stand = stand

    def queue(self) -> None:
        """A backlog of items that do nothing, taken out in batches by one worker of each kind."""
        ours, pgqueuer, procrastinate = self.stand.in_turns(
            self.drain, lambda: self.peer("pgqueuer"), lambda: self.peer("procrastinate")
        )
        for name, theirs, target in (("pgqueuer", pgqueuer, 5), ("procrastinate", procrastinate, 20)):
            self.stand.rows.append(
                Row(f"work queue, beside {name}", f"{ours.per_second:,.0f}/s", f"{name} {theirs.per_second:,.0f}/s",
                    ours.per_second / theirs.per_second, target, False)
            )
        self.stand.notes.append(
            f"work queue: {ITEMS['ours']:,} items in batches of {BATCH}, one worker on one loop; pgqueuer "
            f"{ITEMS['pgqueuer']:,} in the same; procrastinate {ITEMS['procrastinate']:,}, {BATCH} tasks at once"
        )

    def drain(self) -> Load:
        count = ITEMS["ours"]
        items = f"SELECT 'prune', '{{}}' FROM generate_series(1, {count})"
        self.stand.sql(f"INSERT INTO work_items (kind, payload) {items}")
        taken = self.worker("drain", count).communicate()[0]
        if (left := self.stand.sql("SELECT count(*) FROM work_items WHERE kind = 'prune'")) != "0":
            raise SystemExit(f"{left} items are left in the queue.")
        self.stand.sql("VACUUM work_items")
        return Load(count, count / json.loads(taken)["seconds"], 0, 0, 0)

    def worker(self, mode: str, count: int) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", str(BINARIES / "QueueBench"), mode, str(count), str(BATCH)],
            stdout=subprocess.PIPE, text=True, env={**os.environ, "MARTLET_DATABASE_URL": self.stand.database_url},
        )

    def peer(self, name: str) -> Load:
        """In a new database of its own on the same server."""
        self.stand.sql(f"DROP DATABASE IF EXISTS bench_{name}")
        self.stand.sql(f"CREATE DATABASE bench_{name}")
        url = urlunsplit(urlsplit(self.stand.database_url)._replace(path=f"/bench_{name}"))
        command = [sys.executable, str(HERE / "queue_peers.py"), name, url, str(ITEMS[name]), str(BATCH)]
        ended = subprocess.run(command, capture_output=True, text=True)
        if ended.returncode:
            raise SystemExit(f"{name} failed:\n{ended.stderr[-2000:]}")
        taken = json.loads(ended.stdout.splitlines()[-1])["seconds"]
        self.stand.sql(f"DROP DATABASE bench_{name}")
        return Load(ITEMS[name], ITEMS[name] / taken, 0, 0, 0)

    def queue_held(self) -> None:
        """Items offered at a rate, first as usual, then under a snapshot that is held until the end."""
        self.stand.sql("VACUUM ANALYZE work_items")
        seconds = BEFORE_SECONDS + WINDOW_SECONDS + HELD_SECONDS
        offering = PgBench(self.stand, "offered", PUT_IN, 4, seconds + WINDOW_SECONDS, OFFERED)
        worker = self.worker("steady", seconds)
        windows, holder = [], None
        try:
            for line in worker.stdout or []:
                windows.append(json.loads(line))
                if len(windows) * WINDOW_SECONDS == BEFORE_SECONDS:
                    holder = self.hold()
        finally:
            if holder:
                holder.kill()
                holder.wait()
        if worker.wait() or holder is None:
            raise SystemExit("QueueBench failed; its words are above.")
        offering.finish()
        first = BEFORE_SECONDS // WINDOW_SECONDS
        self.compare(windows[1:first], windows[-(first - 1) :])

    def hold(self) -> subprocess.Popen[bytes]:
        """As pg_dump holds one: a snapshot, taken when this returns."""
        holder = subprocess.Popen(
            ["psql", "-X", "-q", "-A", "-t", self.stand.database_url], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        if holder.stdin is None or holder.stdout is None:
            raise SystemExit("psql has no pipes.")
        holder.stdin.write(b"BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT count(*) FROM work_items;\n")
        holder.stdin.flush()
        if not re.fullmatch(rb"\d+\n", holder.stdout.readline()):
            raise SystemExit("psql took no snapshot.")
        return holder

    def compare(self, before: list[dict[str, float]], held: list[dict[str, float]]) -> None:
        def middle(windows: list[dict[str, float]], name: str) -> float:
            return statistics.median(window[name] for window in windows)

        dead = self.stand.sql("SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'work_items'")
        what = f"held {HELD_SECONDS} s"
        usual, under = middle(before, "done") / WINDOW_SECONDS, middle(held, "done") / WINDOW_SECONDS
        self.stand.rows.append(
            Row(f"queue {what}, items", f"{under:,.0f}/s", f"without {usual:,.0f}/s", under / usual, 0.9, False)
        )
        for name, words in (("claim_p99", "claim p99"), ("wait_p99", "wait p99")):
            usual, under = middle(before, name), middle(held, name)
            row = Row(f"queue {what}, {words}", f"{under:.2f} ms", f"without {usual:.2f} ms", under / usual, 1.1, True)
            self.stand.rows.append(row)
        self.stand.notes.append(
            f"work queue under a snapshot: {OFFERED} items a second offered, each with a NOTIFY; the median of "
            f"{len(before)} windows of {WINDOW_SECONDS} s before it and of the last {len(held)} under it; p50 of the "
            f"wait {middle(before, 'wait_p50'):.2f} and {middle(held, 'wait_p50'):.2f} ms; {dead} dead rows at the end"
        )
