"""Requests that begin when they should, however long others take: what waits for a slow answer is counted as slow."""

import asyncio
import gc
import random
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

CONNECTIONS_FIRST = 8  # Open before the load begins; more are opened as they are needed.
CONNECTIONS_MAX = 256  # Then the server does not keep up at all, and there is no measurement.
ANSWER_SECONDS_MAX = 30


@dataclass
class Answer:
    milliseconds: float  # From when it should have begun to its last byte.
    late_milliseconds: float  # How late it began: the client's own fault.
    status: int
    body: bytes
    ended: float  # Seconds since the load began.


def arrivals(count: int, per_second: float, seed: int) -> list[float]:
    """When each should begin, by a Poisson process of this rate: seconds since the load began."""
    rng = random.Random(seed)
    at, times = 0.0, []
    for _ in range(count):
        at += rng.expovariate(per_second)
        times.append(at)
    return times


Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Crowd:
    """Keep-alive connections to one service; of those that are free the one last used is taken."""

    def __init__(self, base: str):
        where = urlsplit(base)
        self.host, self.port = where.hostname or "", where.port or 80
        self.free: list[Connection] = []
        self.opened = 0

    async def open(self) -> Connection:
        if self.opened == CONNECTIONS_MAX:
            raise SystemExit(f"{CONNECTIONS_MAX} requests wait for an answer: no measurement.")
        self.opened += 1
        return await asyncio.open_connection(self.host, self.port)

    async def get(self, path: str) -> tuple[int, bytes, float]:
        """Status, body, and when it was sent."""
        reader, writer = self.free.pop() if self.free else await self.open()
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n\r\n".encode())
        sent = time.monotonic()
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode("latin-1").lower().split("\r\n")
        fields = dict(line.split(": ", 1) for line in lines[1:] if line)
        body = await reader.readexactly(int(fields["content-length"]))
        self.free.append((reader, writer))
        return int(lines[0].split()[1]), body, sent

    async def close(self) -> None:
        for _, writer in self.free:
            writer.close()


async def loaded(base: str, paths: list[str], times: list[float]) -> list[Answer]:
    crowd = Crowd(base)
    crowd.free = [await crowd.open() for _ in range(CONNECTIONS_FIRST)]
    begun = time.monotonic() + 0.1

    async def ask(path: str, due: float) -> Answer:
        status, body, sent = await crowd.get(path)
        now = time.monotonic()
        return Answer((now - due) * 1000, (sent - due) * 1000, status, body, now - begun)

    asked = []
    for path, at in zip(paths, times, strict=True):
        await asyncio.sleep(max(0.0, begun + at - time.monotonic()))
        asked.append(asyncio.create_task(ask(path, begun + at)))
    answers = await asyncio.wait_for(asyncio.gather(*asked), ANSWER_SECONDS_MAX)
    await crowd.close()
    return answers


def open_loop(base: str, paths: list[str], times: list[float]) -> list[Answer]:
    """What each path was answered, in their order."""
    # A collection would be a pause of the client's.
    gc.collect()
    gc.disable()
    try:
        return asyncio.run(loaded(base, paths, times))
    finally:
        gc.enable()
