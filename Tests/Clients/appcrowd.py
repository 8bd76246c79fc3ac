"""People who talk by Socket.IO, on the third-party library python-socketio, among those of `crowd`."""

import asyncio
import json
from contextlib import suppress
from typing import Any

import socketio

from chatstack import Account
from crowd import Crowd, Row

ANSWER_SECONDS_MAX = 5
PAUSE_SECONDS = 0.3


class App:
    """One person with one connection at a time. `seen` has of each room every text that was ever shown, by seq."""

    def __init__(self, crowd: Crowd, account: Account, url: str, number: int):
        self.crowd, self.account, self.url, self.number = crowd, account, url, number
        self.seen: dict[int, dict[int, tuple[int, str]]] = {}
        self.names: dict[int, str] = {}
        self.faults: list[str] = []
        self.connections = 0
        self.client = socketio.AsyncClient(reconnection=False)

    def join(self, rooms: list[int]) -> None:
        self.names = {room: f"rep_{room}_ada" for room in rooms}
        self.seen = {room: {} for room in rooms}

    async def live(self) -> None:
        """A new client of the library for each connection: the library's own coming back gives up for good when the
        connection is cut between two frames of an upgrade."""
        while not self.crowd.is_over:
            self.client = client = socketio.AsyncClient(reconnection=False, request_timeout=ANSWER_SECONDS_MAX)
            client.on("room_messages", self.shown)
            try:
                await client.connect(
                    self.url, auth={"token": self.account.token}, wait_timeout=ANSWER_SECONDS_MAX,
                    headers={"X-Forwarded-For": f"10.99.0.{self.number}"})
                self.connections += 1
                for name in self.names.values():
                    await client.emit("join_room", {"room": name})
                await client.wait()
            except Exception:  # Whatever the library makes of half a frame.
                pass
            finally:
                with suppress(Exception):
                    await client.eio.disconnect(abort=True)
            await asyncio.sleep(PAUSE_SECONDS / 3)

    def shown(self, text: str) -> None:
        value = json.loads(text)
        texts = value["texts"]
        seqs = [each["id"] for each in texts]
        if seqs and seqs != list(range(seqs[0], seqs[0] + len(seqs))):
            self.faults.append(f"room {value['id']} was shown as {seqs}")
        known = self.seen[value["id"]]
        for each in texts:
            shown = (each["source"], each["text"])
            if known.setdefault(each["id"], shown) != shown:
                self.faults.append(f"{value['id']}/{each['id']} was {known[each['id']]} and is {shown}")

    async def talk(self) -> None:
        """Says one thing after the other, each until it is acknowledged."""
        count = 0
        while self.crowd.per_second:
            count += 1
            room = list(self.names)[count % len(self.names)]
            client_id = f"app{self.account.id}-{count}"
            self.crowd.said[client_id] = 0
            message = {"room": self.names[room], "text": f"{client_id} by Socket.IO", "id": client_id}
            while True:
                answer: Any = None
                with suppress(Exception):  # As above.
                    answer = await self.client.call("send_message", message, timeout=ANSWER_SECONDS_MAX)
                if answer and answer.get("ok"):
                    break
                await asyncio.sleep(PAUSE_SECONDS)
            await asyncio.sleep(PAUSE_SECONDS)

    def lacks(self, table: dict[int, list[Row]]) -> bool:
        return any(len(known) < len(table[room]) for room, known in self.seen.items())

    def check(self, table: dict[int, list[Row]]) -> None:
        assert self.faults == []
        for room, known in self.seen.items():
            assert known == {row[0]: (row[1], row[3]) for row in table[room]}
