"""The chat beside a bare loop of send(), python-socketio, and one INSERT + NOTIFY per commit."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable
from urllib.parse import urlsplit

from measure import Load, Server, free_port
from stand import HERE, LOAD_CORE, ROUNDS, SECONDS, SERVER_CORE, PgBench, Row, Stand, middle

SOCKETS = 1000  # That hear one room.
BURST = 16
PAUSE = 10  # Milliseconds between messages of the fan-out that is compared with a bare loop.
BODY = "x" * 200
ROOMS, ROOMS_MANY = 1_000, 10_000
MANY, FEW = 64, 8  # Sends under way.
SENDERS = 64
LISTENERS = 2
NEIGHBOUR_RATE = 200  # Commits a second of another writer.
# What a chat that does it the obvious way does for each message: number it, store it, tell the others.
NAIVE = """
\\set room random({first}, {last})
WITH numbered AS (
  UPDATE rooms SET last_seq = last_seq + 1 WHERE id = :room RETURNING id, last_seq
), added AS (
  INSERT INTO messages (room_id, seq, sender_id, client_id, body)
  SELECT id, last_seq, {person}, gen_random_uuid()::text, repeat('x', 200) FROM numbered RETURNING room_id
) SELECT pg_notify('bench_naive', room_id::text) FROM added;
"""


class Program:
    """One of ops/bench/load, which speaks JSON on its output."""

    def __init__(self, stand: Stand, name: str, *arguments: object, core: int | None = None):
        pinned = ["taskset", "-c", str(core)] if core is not None else []
        command = ["setpriv", "--pdeathsig", "KILL", "--", *pinned, str(stand.folder / "load" / name)]
        self.name = name
        self.child = subprocess.Popen(
            [*command, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def heard(self) -> str:
        line = self.child.stdout.readline()  # type: ignore[union-attr]
        if not line:
            raise SystemExit(f"{self.name} failed; its words are above.")
        return line

    def asked(self, line: str) -> dict:
        self.child.stdin.write(line + "\n")  # type: ignore[union-attr]
        self.child.stdin.flush()  # type: ignore[union-attr]
        return json.loads(self.heard())

    def stop(self) -> None:
        self.child.kill()
        self.child.communicate()

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()


def cpu_seconds(child: subprocess.Popen) -> float:
    """By the scheduler's own account, as ticks of 10 ms are too coarse here."""
    total = 0
    for task in Path(f"/proc/{child.pid}/task").iterdir():
        total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


class ChatRows:
    def __init__(self, stand: Stand):
        self.stand = stand
        self.best = 0.0  # Sends a second with many under way, once measured.

    # MARK: Fan-out

    def fan_out(self) -> None:
        """What one says to many sockets: our chat, python-socketio, and a loop of send() with the same frames."""
        stand = self.stand
        room = stand.places(1)[0]
        people = stand.people(SOCKETS)
        stand.enter([(room, person) for person in people])
        members = stand.folder / "fan.members"
        members.write_text("".join(f"0 {stand.hello(person)}\n" for person in people))
        strangers = stand.folder / "fan.strangers"
        strangers.write_text('0 40{"token":"-"}\n' * SOCKETS)
        said = json.dumps({"type": "send", "room": room, "id": f"f{time.monotonic_ns()}-%", "body": BODY})
        chat, url = stand.chat(SERVER_CORE)
        port = free_port()
        command = [sys.executable, "-m", "uvicorn", "socketio_app:app", "--app-dir", str(HERE), "--port", str(port)]
        command += ["--no-access-log", "--log-level", "warning"]
        ready = f"http://127.0.0.1:{port}/socket.io/?EIO=4&transport=polling"
        peer = Server(command, {}, ready, stand.folder / "socketio.log", SERVER_CORE)
        with chat, peer:
            ours = Program(stand, "fan", "martlet", urlsplit(url).port, members, 0, core=LOAD_CORE)
            join = '42["join_room",{"room":"bench"}]'
            theirs = Program(stand, "fan", "socketio", port, strangers, 0, join, core=LOAD_CORE)
            with ours, theirs:
                ours.heard(), theirs.heard()
                time.sleep(1)  # The others join in their own time.
                size = ours.asked(f"say 20 1 0 {said}")["bytes"]
                bare_port = free_port()
                loop = Program(stand, "bare", bare_port, SOCKETS, round(size), core=SERVER_CORE)
                time.sleep(0.2)
                with loop, Program(stand, "fan", "bare", bare_port, strangers, 0, core=LOAD_CORE) as silent:
                    silent.heard()
                    self.compare_fan_outs(said, size, [(ours, chat.child), (theirs, peer.child), (silent, loop.child)])

    def compare_fan_outs(self, said: str, size: float, three: list[tuple[Program, subprocess.Popen]]) -> None:
        def measure(which: int, burst: int, text: str, count: int, pause: int = 0) -> Load:
            program, server = three[which]
            used = cpu_seconds(server)
            result = program.asked(f"say {count} {burst} {pause} {text}")
            used = cpu_seconds(server) - used
            heard = result["deliveries"]
            return Load(heard, heard / result["seconds"], result["slowest_milliseconds"], 0, used * 1e6 / heard)

        # At the same pace: the loop of send() would have its memory at hand if it went on without a commit between.
        paced = SECONDS * 1000 // PAUSE
        few, bursts = SECONDS, 10 * SECONDS
        there = f'42["say",{json.dumps({"room": "bench", "body": BODY})}]'
        ours, burst, theirs, many, loop = self.stand.in_turns(
            lambda: measure(0, 1, said, paced, PAUSE), lambda: measure(0, BURST, said, bursts),
            lambda: measure(1, 1, there, few), lambda: measure(1, BURST, there, 1),
            lambda: measure(2, 1, "x", paced, PAUSE),
        )

        def figure(load: Load) -> str:
            return f"{load.cpu_microseconds:.2f} µs"

        beside = f"bare send() {figure(loop)}"
        self.stand.rows += [
            Row(f"fan-out to {SOCKETS}, CPU each", figure(ours), beside,
                loop.cpu_microseconds / ours.cpu_microseconds, 0.85, False),
            Row(f"the same, {BURST} at once", figure(burst), beside,
                loop.cpu_microseconds / burst.cpu_microseconds, 5, False),
            # One by one a bare loop would not be twenty times as fast either.
            Row(f"deliveries a second, {BURST} at once", f"{burst.per_second:,.0f}/s",
                f"python-socketio {many.per_second:,.0f}/s", burst.per_second / many.per_second, 20, False),
        ]
        self.stand.notes.append(
            f"fan-out of frames of {size:.0f} bytes: one message each {PAUSE} ms, slowest round "
            f"{ours.p99_milliseconds:.1f} ms (bare {loop.p99_milliseconds:.1f} ms); python-socketio "
            f"{theirs.per_second:,.0f}/s one by one and {figure(theirs)} of CPU each"
        )

    # MARK: Sends

    def crowd(self, rooms: int, name: str) -> tuple[Path, list[int], list[int]]:
        """Senders and receivers in pairs, each pair with its share of the rooms."""
        stand = self.stand
        places = stand.places(rooms)
        people = stand.people(2 * SENDERS)
        senders, receivers = people[:SENDERS], people[SENDERS:]
        shares = [places[index::SENDERS] for index in range(SENDERS)]
        stand.enter([(room, pair[index]) for index, share in enumerate(shares) for room in share
                     for pair in (senders, receivers)])
        file = stand.folder / f"{name}.members"
        file.write_text("".join(
            f"{','.join(map(str, share))}\t{stand.hello(sender)}\t{stand.hello(receiver)}\n"
            for share, sender, receiver in zip(shares, senders, receivers)
        ))
        return file, places, people

    def send(self, url: str, other: str, in_flight: int, rate: float, file: Path, also: Callable | None = None) -> dict:
        """Sends for some seconds to one instance; with `other`, receivers are connected there."""
        port, there = urlsplit(url).port, urlsplit(other).port if other else 0
        with Program(self.stand, "send", port, there, SECONDS, in_flight, rate, file) as program:
            program.heard()
            beside = also() if also else None
            result = program.asked("go")
            result["beside"] = beside.finish() if beside else None
            return result

    def naive(self, clients: int, places: list[int], person: int, rate: float | None, seconds: float) -> PgBench:
        script = NAIVE.format(first=places[0], last=places[-1], person=person)
        return PgBench(self.stand, "naive", script, clients, seconds, rate)

    def listeners(self) -> Program:
        program = Program(self.stand, "listen", self.stand.database_url, "bench_naive", LISTENERS)
        program.heard()
        return program

    def sends(self) -> None:
        """Sends acknowledged a second, beside a commit and a NOTIFY for each, with two listeners both."""
        file, places, people = self.crowd(ROOMS, "sends")
        first, url = self.stand.chat()
        second, _ = self.stand.chat()
        with first, second, self.listeners():
            for count, target in ((MANY, 10), (FEW, 3)):
                answers: list[dict] = []

                def ours() -> Load:
                    answers.append(self.send(url, "", count, 0, file))
                    return Load(answers[-1]["acks"], answers[-1]["per_second"], answers[-1]["ack_p99"], 0, 0)

                mine, theirs = self.stand.in_turns(
                    ours, lambda: self.naive(count, places, people[0], None, SECONDS).finish())
                if count == MANY:
                    self.best = mine.per_second
                self.stand.rows.append(
                    Row(f"durable sends, {count} under way", f"{mine.per_second:,.0f}/s",
                        f"INSERT + NOTIFY {theirs.per_second:,.0f}/s", mine.per_second / theirs.per_second, target,
                        False)
                )
                p50 = middle([answer["ack_p50"] for answer in answers])
                self.stand.notes.append(
                    f"durable sends, {count} under way: acknowledged after {p50:.1f} ms, p99 "
                    f"{mine.p99_milliseconds:.1f} ms; INSERT + NOTIFY p99 {theirs.p99_milliseconds:.1f} ms"
                )

    def half_load(self) -> float:
        if not self.best:
            file, _, _ = self.crowd(ROOMS, "half")
            first, url = self.stand.chat()
            with first:
                self.best = self.send(url, "", MANY, 0, file)["per_second"]
        return self.best / 2

    def latency(self) -> None:
        """From a send to a socket of another instance, at half the load that the sends reached."""
        rate = self.half_load()
        crowds = [(rooms, self.crowd(rooms, f"rooms{rooms}")[0]) for rooms in (ROOMS, ROOMS_MANY)]
        first, url = self.stand.chat()
        second, other = self.stand.chat()
        seen: dict[int, list[dict]] = {ROOMS: [], ROOMS_MANY: []}
        with first, second:
            for _ in range(ROUNDS):
                for rooms, file in crowds:
                    seen[rooms].append(self.send(url, other, 0, rate, file))
        p50 = {rooms: middle([each["delivery_p50"] for each in results]) for rooms, results in seen.items()}
        p99 = {rooms: middle([each["delivery_p99"] for each in results]) for rooms, results in seen.items()}
        at = f"{rate:,.0f} sends/s"
        self.stand.rows += [
            Row("to another instance, p50 in ms", f"{p50[ROOMS]:.2f} ms", at, p50[ROOMS], 3, True),
            Row("to another instance, p99 in ms", f"{p99[ROOMS]:.2f} ms", at, p99[ROOMS], 20, True),
            # As fast, but for the noise of the machine.
            Row(f"the same p50, {ROOMS_MANY} rooms", f"{p50[ROOMS_MANY]:.2f} ms", f"{ROOMS} rooms {p50[ROOMS]:.2f} ms",
                p50[ROOMS_MANY] / p50[ROOMS], 1.25, True),
        ]
        self.stand.notes.append(
            f"to another instance: p99 {p99[ROOMS_MANY]:.1f} ms with {ROOMS_MANY} rooms; "
            f"{seen[ROOMS][0]['deliveries']:,} deliveries a round; all on this machine's {SENDERS} pairs"
        )

    # MARK: Others

    def neighbour(self) -> None:
        """What another writer of the same database waits for its commit."""
        rate = self.half_load()
        self.stand.sql("CREATE TABLE IF NOT EXISTS bench_writes (id bigint GENERATED ALWAYS AS IDENTITY, body text)")
        script = "INSERT INTO bench_writes (body) VALUES (repeat('x', 200));\n"

        def writes() -> PgBench:
            return PgBench(self.stand, "neighbour", script, 1, SECONDS, NEIGHBOUR_RATE)

        file, places, people = self.crowd(ROOMS, "neighbour")
        first, url = self.stand.chat()
        second, _ = self.stand.chat()
        offered: list[float] = []

        def beside_naive(at: float) -> Load:
            load = self.naive(MANY, places, people[0], at, SECONDS + 1)
            result = writes().finish()
            offered.append(load.finish().per_second)
            return result

        with first, second, self.listeners():
            idle, ours, theirs, slow = self.stand.in_turns(
                lambda: writes().finish(), lambda: self.send(url, "", 0, rate, file, writes)["beside"],
                lambda: beside_naive(rate), lambda: beside_naive(rate / 10),
            )
        self.stand.rows.append(
            Row("another writer's commit, p99 in ms", f"{ours.p99_milliseconds:.1f} ms",
                f"INSERT + NOTIFY {theirs.p99_milliseconds:.1f} ms",
                ours.p99_milliseconds / theirs.p99_milliseconds, 1, True)
        )
        self.stand.notes.append(
            f"another writer's commit, p99: idle {idle.p99_milliseconds:.1f} ms; chat at {rate:,.0f} sends/s "
            f"{ours.p99_milliseconds:.1f} ms; INSERT + NOTIFY offered as many, of which it did "
            f"{min(offered[0::2]):,.0f}, {theirs.p99_milliseconds:.1f} ms, and at a tenth of that "
            f"{slow.p99_milliseconds:.1f} ms"
        )
