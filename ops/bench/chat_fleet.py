"""Many sockets: what they cost while nobody speaks, and when all of them come back at once."""

import json
import time
from urllib.parse import urlsplit

from chat_rows import Program
from measure import Server
from stand import SECONDS, PgBench, Row, Stand

SOCKETS = 10_000
WARM = 1_000  # Connected before the memory is counted: what the process needs once is not a socket's.
WAVE = 250  # Of them that come at once, as people do in the course of a day.
IDLE_SECONDS = 10 * SECONDS
# PostgreSQL's own background writer notes after the last write, within this time, which transactions run.
SETTLE_SECONDS, SETTLE_SECONDS_MAX = 20, 90
RETURNING = 15_000
RETURN_SECONDS = 10  # Over which a restarting instance tells its clients to spread.
MISSED = 2  # Messages that each has missed.


class ChatFleet:
    def __init__(self, stand: Stand):
        self.stand = stand

    def members(self, count: int, name: str, resume: bool) -> tuple[str, list[int]]:
        """People in pairs of rooms of their own: each in two, with one other."""
        stand = self.stand
        people = stand.people(count)
        rooms = stand.places(count)
        pairs = [(room, people[(index + step) % count]) for index, room in enumerate(rooms) for step in (0, 1)]
        stand.enter(pairs)
        file = stand.folder / f"{name}.members"
        lines = []
        for index, person in enumerate(people):
            seen = {rooms[index]: 0, rooms[index - 1]: 0} if resume else {}
            lines.append(f"{2 * MISSED if resume else 0} {stand.hello(person, seen)}\n")
        file.write_text("".join(lines))
        return str(file), rooms

    def idle(self) -> None:
        """Sockets that say nothing and hear nothing."""
        stand = self.stand
        file, _ = self.members(SOCKETS + WARM, "idle", False)
        lines = open(file).readlines()
        first = stand.folder / "idle.first"
        first.write_text("".join(lines[:WARM]))
        rest = stand.folder / "idle.rest"
        rest.write_text("".join(lines[WARM:]))
        chat, url = stand.chat()
        port = urlsplit(url).port
        with chat, Program(stand, "fan", "martlet", port, first, WAVE) as some:
            some.heard()
            time.sleep(1)
            before = chat.resident_megabytes()
            with Program(stand, "fan", "martlet", port, rest, WAVE) as crowd:
                crowd.heard()
                time.sleep(2)
                each = (chat.resident_megabytes() - before) * 1024 * 1024 / SOCKETS
                wal, percent = self.quiet(chat)
        stand.rows += [
            Row("idle socket, bytes of memory", f"{each:,.0f} bytes", "", each, 2048, True),
            Row(f"idle, WAL bytes in {IDLE_SECONDS} s", f"{wal:,} bytes", "", wal, 0, True),
            Row("idle, CPU in percent", f"{percent:.2f} %", "", percent, 1, True),
        ]
        stand.notes.append(
            f"idle: {SOCKETS:,} sockets of as many users, each in two rooms, after {WARM:,} others; the memory is the "
            "process's resident set"
        )

    def quiet(self, chat: Server) -> tuple[int, float]:
        """WAL and CPU of a time in which nothing happens."""
        self.stand.sql("VACUUM")
        self.stand.sql("CHECKPOINT")
        at, since, deadline = "", 0.0, time.monotonic() + SETTLE_SECONDS_MAX
        while time.monotonic() < min(deadline, since + SETTLE_SECONDS if at else deadline):
            now = self.wal()
            if now != at:
                at, since = now, time.monotonic()
            time.sleep(1)
        at = self.wal()
        used, begun = chat.cpu_seconds(), time.monotonic()
        time.sleep(IDLE_SECONDS)
        percent = 100 * (chat.cpu_seconds() - used) / (time.monotonic() - begun)
        return int(self.stand.sql(f"SELECT pg_wal_lsn_diff('{self.wal()}', '{at}')")), percent

    def wal(self) -> str:
        return self.stand.sql("SELECT pg_current_wal_insert_lsn()")

    def comeback(self) -> None:
        """All clients of a restarted instance at once, each with what it has seen."""
        stand = self.stand
        file, rooms = self.members(RETURNING, "comeback", True)
        stand.sql(
            "INSERT INTO messages (room_id, seq, sender_id, client_id, body) "
            "SELECT r.id, n, 1, r.id || '-' || n, repeat('x', 200) "
            f"FROM rooms r, generate_series(1, {MISSED}) n WHERE r.id BETWEEN {rooms[0]} AND {rooms[-1]}"
        )
        stand.sql(f"UPDATE rooms SET last_seq = {MISSED} WHERE id BETWEEN {rooms[0]} AND {rooms[-1]}")
        stand.sql("VACUUM ANALYZE")
        script = f"\\set id random({rooms[0]}, {rooms[-1]})\nSELECT last_seq FROM rooms WHERE id = :id;\n"
        quiet = PgBench(stand, "quiet", script, 1, SECONDS, 200).finish()
        chat, url = stand.chat()
        with chat:
            time.sleep(1)
            before = self.transactions()
            other = PgBench(stand, "other", script, 1, SECONDS, 200)
            used = chat.cpu_seconds()
            with Program(stand, "fan", "martlet", urlsplit(url).port, file, 0) as crowd:
                result = json.loads(crowd.heard())
                used = chat.cpu_seconds() - used
                busy = other.finish()
                # A session reports what it did up to a second later.
                time.sleep(2)
                statements = self.transactions() - before - busy.requests
        stand.rows += [
            Row(f"{RETURNING:,} come back, seconds", f"{result['seconds']:.2f} s", "", result["seconds"],
                RETURN_SECONDS, True),
            Row("statements, for each of them", f"{statements:,}", "", statements / RETURNING, 0.1, True),
        ]
        stand.notes.append(
            f"{RETURNING:,} come back at once, each with 2 rooms and {2 * MISSED} missed messages: all greeted after "
            f"{result['greeted_seconds']:.2f} s, all served after {result['seconds']:.2f} s with {used:.2f} s of CPU "
            f"and {statements:,} transactions; another query's p99 {busy.p99_milliseconds:.1f} ms meanwhile, "
            f"{quiet.p99_milliseconds:.1f} ms before"
        )

    def transactions(self) -> int:
        """Of the database; a pipeline of reads is one, so it is what PostgreSQL is asked at a time."""
        return int(self.stand.sql(
            "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"))
