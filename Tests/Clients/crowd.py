"""Many people who talk at once over martlet.v1 on the third-party library `websockets`. Each does what
docs/chat-protocol.md asks of a client: it keeps the last seq of each room, comes back with it whatever happens, and
says again, by the same id, what was not answered. Each keeps a log of what came, to be compared with the table."""

import asyncio
import json
import random
import time
from collections import Counter
from typing import Any, Awaitable, Callable

import websockets
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from chatstack import Account, ChatStack
from stack import Process

SETTLE_SECONDS_MAX = 300  # Generous: two cores are shared with the services and PostgreSQL.
LOOK_SECONDS = 0.05
PACE_SECONDS = 0.02
COME_BACK_SECONDS_MAX = 0.1  # Much sooner than a polite client, so that one test sees many returns.
SAY_AGAIN_SECONDS = 0.2
WAITING_MAX = 10  # Sends of one person that have no answer; then it pauses.

Row = tuple[int, int, str, str]  # seq, sender, client id, body


class Member:
    """One person with one socket at a time."""

    def __init__(self, crowd: "Crowd", account: Account, number: int):
        self.crowd = crowd
        self.id, self.token = account.id, account.token
        self.random = random.Random(crowd.seed * 100_003 + number)
        # The front door would say so; a limit for one address is not what is tried here.
        self.headers = {"X-Forwarded-For": f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"}
        self.compression = "deflate" if number % 2 else None
        self.log: dict[int, list[Row]] = {}
        self.faults: list[str] = []
        self.waiting: dict[str, tuple[int, str, float]] = {}  # By client id: room, body, when it was first said.
        self.acknowledged: dict[tuple[int, str], int] = {}
        self.connections = 0
        self.closes: Counter[int] = Counter()
        self.reasons: list[str] = []
        self.socket: ClientConnection | None = None
        self.here_since = 0.0

    def join(self, room: int) -> None:
        self.log[room] = []

    async def live(self) -> None:
        while not self.crowd.is_over:
            url = self.crowd.url(self.random)
            try:
                async with connect(
                    url, subprotocols=[websockets.Subprotocol("martlet.v1")], proxy=None, open_timeout=5,
                    close_timeout=1, ping_interval=None, max_queue=None, compression=self.compression,
                    additional_headers=self.headers,
                ) as socket:
                    await self.converse(socket)
            except ConnectionClosed as closed:
                self.closes[closed.rcvd.code if closed.rcvd else 1006] += 1
                self.reasons.append(closed.rcvd.reason if closed.rcvd else "")
            except (OSError, WebSocketException, EOFError, TimeoutError):
                pass
            self.socket = None
            await asyncio.sleep(self.random.uniform(0, COME_BACK_SECONDS_MAX))

    async def converse(self, socket: ClientConnection) -> None:
        resume = {str(room): log[-1][0] if log else 0 for room, log in self.log.items()}
        await socket.send(json.dumps({"type": "hello", "token": self.token, "resume": resume}))
        while True:
            frame = json.loads(await socket.recv())
            match frame["type"]:
                case "message":
                    self.heard(frame)
                case "ack":
                    self.answered(frame)
                case "ready":
                    self.greeted(frame)
                    self.socket = socket
                    for client_id in list(self.waiting):
                        await self.say(client_id)
                case "error" if frame["code"] in ("unavailable", "too_many"):
                    loop = asyncio.get_running_loop()
                    loop.call_later(SAY_AGAIN_SECONDS, self.crowd.soon, self.say, frame["id"])
                case "reset" | "left" | "error":
                    self.faults.append(f"was told {frame}")

    def greeted(self, frame: dict[str, Any]) -> None:
        self.connections += 1
        self.here_since = time.monotonic()
        if {room["id"] for room in frame["rooms"]} != set(self.log):
            self.faults.append(f"has other rooms than {list(self.log)}: {frame}")

    def heard(self, frame: dict[str, Any]) -> None:
        log = self.log.get(frame["room"])
        if log is None:
            self.faults.append(f"heard what is for others: {frame}")
            return
        last = log[-1][0] if log else 0
        if frame["seq"] != last + 1:
            self.faults.append(f"heard {frame['seq']} after {last} in room {frame['room']}")
        log.append((frame["seq"], frame["sender"], frame["id"], frame["body"]))
        said = self.crowd.said.get(frame["id"])
        if said and said > self.here_since:
            self.crowd.heard_after.append(time.monotonic() - said)

    def answered(self, frame: dict[str, Any]) -> None:
        key = (frame["room"], frame["id"])
        if self.acknowledged.setdefault(key, frame["seq"]) != frame["seq"]:
            self.faults.append(f"{key} was {self.acknowledged[key]} and is {frame['seq']}")
        if sent := self.waiting.pop(frame["id"], None):
            self.crowd.acknowledged_after.append(time.monotonic() - sent[2])

    def write(self, text: str) -> None:
        if len(self.waiting) >= WAITING_MAX:
            return
        client_id = f"{self.id}-{len(self.acknowledged) + len(self.waiting)}"
        room = self.random.choice(list(self.log))
        now = time.monotonic()
        self.crowd.said[client_id] = now
        self.waiting[client_id] = (room, f"{client_id} {text}", now)
        self.crowd.soon(self.say, client_id)

    async def say(self, client_id: str) -> None:
        """Says it, for the first time or again; if there is no connection, the next one does."""
        if self.socket and (sent := self.waiting.get(client_id)):
            try:
                await self.socket.send(json.dumps({"type": "send", "room": sent[0], "id": client_id, "body": sent[1]}))
            except ConnectionClosed:
                pass


async def restarted(process: Process) -> None:
    """Starts it again. Not in another thread: the kernel ends a child with the thread that made it."""
    process.start()
    await asyncio.to_thread(process.wait_ready)


class Crowd:
    """Members, of whom the first ones write. `async with` brings them all in and sends them away."""

    def __init__(self, stack: ChatStack, members: int, writers: int, rooms: int, seed: int, rooms_each: int = 2):
        self.stack = stack
        self.seed = seed
        self.random = random.Random(seed)
        self.urls = list(stack.chat_urls)
        self.said: dict[str, float] = {}
        # Seconds from the first try of a send, for members who were connected all the time, and for its writer.
        self.heard_after: list[float] = []
        self.acknowledged_after: list[float] = []
        self.is_over = False
        self.patience_seconds: float | None = None
        self.per_second = 0.0
        self.tasks: set[asyncio.Task] = set()
        self.members = [Member(self, account, number) for number, account in enumerate(stack.accounts(members), 1)]
        self.writers = self.members[:writers]
        self.seats: list[list[int]] = [[] for _ in range(rooms)]
        for number, member in enumerate(self.members):
            for turn in range(rooms_each):
                self.seats[(number + turn * (1 + number // rooms)) % rooms].append(member.id)
        self.seats = [sorted(set(seat)) for seat in self.seats]

    def seat(self, more: list[list[int]] | None = None) -> None:
        """Makes the rooms; `more`: people who are in them besides."""
        seats = [seat + (more[number] if more else []) for number, seat in enumerate(self.seats)]
        self.rooms = self.stack.rooms(seats)
        by_id = {member.id: member for member in self.members}
        for room, seat in zip(self.rooms, self.seats):
            for user in seat:
                by_id[user].join(room)

    def url(self, chance: random.Random) -> str:
        return chance.choice(self.urls)

    def soon(self, act: Callable[..., Awaitable[None]], *arguments: Any) -> None:
        task = asyncio.get_running_loop().create_task(act(*arguments))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def __aenter__(self) -> "Crowd":
        if not hasattr(self, "rooms"):
            self.seat()
        for member in self.members:
            self.soon(member.live)
        await self.until(lambda: all(member.socket for member in self.members), "everybody is there")
        return self

    async def __aexit__(self, *exception: object) -> None:
        self.is_over = True
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def until(self, look: Callable[[], bool], what: str, seconds: float = SETTLE_SECONDS_MAX) -> None:
        deadline = time.monotonic() + seconds
        while not look():
            assert time.monotonic() < deadline, f"{what}: not within {seconds} s; {self.faults()[:5]}"
            await asyncio.sleep(LOOK_SECONDS)

    def write(self, per_second: float) -> None:
        """So many messages a second, of all writers together, until it is told 0."""
        begins = not self.per_second
        self.per_second = per_second
        if begins and per_second:
            self.soon(self.pace)

    async def pace(self) -> None:
        due, turn = 0.0, 0
        while self.per_second:
            await asyncio.sleep(PACE_SECONDS)
            due = min(due + self.per_second * PACE_SECONDS, 50)
            while due >= 1:
                due -= 1
                turn += 1
                # Some are long enough to be compressed.
                self.writers[turn % len(self.writers)].write("word " * self.random.choice((1, 8, 300)))
            if self.patience_seconds:
                self.lose_patience(self.patience_seconds)

    def lose_patience(self, seconds: float) -> None:
        """Who has waited so long for an answer leaves, and tries another chat."""
        now = time.monotonic()
        for member in self.writers:
            if member.socket and any(max(sent[2], member.here_since) < now - seconds
                                     for sent in member.waiting.values()):
                member.socket.transport.abort()
                member.socket = None

    async def more(self, count: int = 50) -> None:
        """So many acknowledgements come."""
        goal = self.acknowledged_count + count
        await self.until(lambda: self.acknowledged_count >= goal, f"{count} more are acknowledged")

    @property
    def acknowledged_count(self) -> int:
        return len(self.acknowledged_after)

    def faults(self) -> list[str]:
        return [f"{member.id}: {fault}" for member in self.members for fault in member.faults]

    async def settle(self) -> dict[int, list[Row]]:
        """Everything said is acknowledged, and every log is the table. Returns the table."""
        self.write(0)
        await self.until(lambda: not any(member.waiting for member in self.members), "all is acknowledged")
        table = await asyncio.to_thread(self.table)

        def behind() -> int:
            return sum(len(log) < len(table[room]) for member in self.members for room, log in member.log.items())

        await self.until(lambda: not behind(), "every member has every message")
        self.compare(table)
        return table

    def compare(self, table: dict[int, list[Row]]) -> None:
        """Every log is the table, which has everything that was said, once, where its sender was told it is."""
        assert self.faults() == [], self.faults()
        said = Counter(row[2] for rows in table.values() for row in rows)
        assert set(said) == set(self.said) and set(said.values()) <= {1}, "each is in the table once"
        for room, rows in table.items():
            assert [row[0] for row in rows] == list(range(1, len(rows) + 1))
        for member in self.members:
            for room, log in member.log.items():
                assert log == table[room], f"{member.id}'s log of room {room} is not the table"
            for (room, client_id), seq in member.acknowledged.items():
                assert table[room][seq - 1][1:3] == (member.id, client_id), "an acknowledged seq is another message"

    def table(self) -> dict[int, list[Row]]:
        listed = ",".join(map(str, self.rooms))
        text = self.stack.sql(
            "SELECT coalesce(json_agg(json_build_array(room_id, seq, sender_id, client_id, body) "
            f"ORDER BY room_id, seq), '[]') FROM messages WHERE room_id IN ({listed})")
        table: dict[int, list[Row]] = {room: [] for room in self.rooms}
        for room, *row in json.loads(text):
            table[room].append((row[0], row[1], row[2], row[3]))
        return table
