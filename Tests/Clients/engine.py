"""Engine.IO v4 by hand, on the third-party library aiohttp: every request and every frame is the test's."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any, Awaitable, Callable
from urllib.parse import urlencode

import aiohttp

ANSWER_SECONDS_MAX = 90  # Generous: two cores are shared with the services and PostgreSQL.
SEPARATOR = "\x1e"


@dataclass
class Answer:
    status: int
    text: str
    type: str

    @property
    def error(self) -> dict[str, Any]:
        """The code and message of a refusal."""
        assert self.status == 400, self
        return json.loads(self.text)


class Socket:
    """A WebSocket."""

    def __init__(self, raw: aiohttp.ClientWebSocketResponse):
        self.raw = raw

    async def send(self, packet: str | bytes) -> None:
        await (self.raw.send_str(packet) if isinstance(packet, str) else self.raw.send_bytes(packet))

    async def next(self) -> str | bytes:
        """The next frame; pings of the server are frames, too."""
        message = await self.raw.receive(ANSWER_SECONDS_MAX)
        assert message.type in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY), message
        return message.data

    async def closed(self) -> list[str]:
        """Waits for the server to close, and returns what it sent before."""
        frames = []
        while True:
            message = await self.raw.receive(ANSWER_SECONDS_MAX)
            if message.type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR):
                return frames
            frames.append(message.data)


@dataclass
class Session:
    """A session over polling."""

    engine: "Engine"
    handshake: dict[str, Any]
    pending: list[asyncio.Task] = field(default_factory=list)

    @property
    def sid(self) -> str:
        return self.handshake["sid"]

    async def poll(self) -> Answer:
        return await self.engine.ask("GET", {"sid": self.sid})

    async def post(self, body: str) -> Answer:
        return await self.engine.ask("POST", {"sid": self.sid}, body)

    async def said(self, body: str) -> None:
        answer = await self.post(body)
        assert (answer.status, answer.text) == (200, "ok"), answer

    async def packets(self) -> list[str]:
        answer = await self.poll()
        assert answer.status == 200, answer
        return answer.text.split(SEPARATOR)

    async def begin_poll(self) -> asyncio.Task:
        """A poll that is on its way when this returns."""
        sent = asyncio.Event()
        task = asyncio.create_task(self.engine.ask("GET", {"sid": self.sid}, sent=sent))
        await asyncio.wait_for(sent.wait(), ANSWER_SECONDS_MAX)
        return task

    async def socket(self) -> Socket:
        return await self.engine.socket(sid=self.sid)


class Engine:
    """What one server, or the front door before several, answers."""

    def __init__(self, base: str, http: aiohttp.ClientSession):
        self.base = base
        self.http = http

    def url(self, query: dict[str, str]) -> str:
        return f"{self.base}/socket.io/?{urlencode(query)}"

    async def ask(
        self, method: str, query: dict[str, str], body: str | None = None, sent: asyncio.Event | None = None,
        whole: bool = False, headers: dict[str, str] | None = None,
    ) -> Answer:
        """A request over polling. `whole`: the query is all there is; otherwise EIO and transport come with it."""
        query = query if whole else {"EIO": "4", "transport": "polling", **query}
        type_of_body = {"Content-Type": "text/plain;charset=UTF-8"} if body is not None else {}
        request = self.http.request(
            method, self.url(query), data=None if body is None else body.encode(),
            headers={**type_of_body, **(headers or {})}, trace_request_ctx=sent)
        async with request as response:
            return Answer(response.status, await response.text(), response.headers.get("Content-Type", ""))

    async def open(self) -> Session:
        answer = await self.ask("GET", {})
        assert answer.status == 200 and answer.text[0] == "0", answer
        return Session(self, json.loads(answer.text[1:]))

    async def connected(self, token: str) -> Session:
        """A session in the root namespace; what was pushed on connecting has been read."""
        session = await self.open()
        await session.said("40" + json.dumps({"token": token}))
        seen: list[str] = []
        while not any(packet.startswith("42") for packet in seen):
            seen += await session.packets()
        assert seen[0].startswith('40{"sid":"'), seen
        return session

    async def socket(self, **query: str) -> Socket:
        whole = {"EIO": "4", "transport": "websocket", **query}
        return Socket(await self.http.ws_connect(self.url(whole), autoping=False))

    async def refused_socket(self, query: dict[str, str]) -> int:
        """The status with which an upgrade is refused."""
        try:
            await self.http.ws_connect(self.url(query))
        except aiohttp.WSServerHandshakeError as error:
            return error.status
        raise AssertionError(f"{query} was upgraded")

    async def opened_socket(self) -> tuple[Socket, dict[str, Any]]:
        socket = await self.socket()
        frame = await socket.next()
        assert isinstance(frame, str) and frame[0] == "0", frame
        return socket, json.loads(frame[1:])

    async def connected_socket(self, token: str) -> Socket:
        """As `connected`, over a WebSocket only."""
        socket, _ = await self.opened_socket()
        await socket.send("40" + json.dumps({"token": token}))
        for begin in ('40{"sid":"', "42"):
            while (frame := await socket.next()) == "2":
                await socket.send("3")
            assert isinstance(frame, str) and frame.startswith(begin), frame
        return socket


def by_hand(base: str, test: Callable[[Engine], Awaitable[None]]) -> None:
    """Runs a test's requests."""

    async def run() -> None:
        async def sent(_: Any, context: Any, __: Any) -> None:
            if context.trace_request_ctx:
                context.trace_request_ctx.set()

        trace = aiohttp.TraceConfig()
        trace.on_request_headers_sent.append(sent)
        timeout = aiohttp.ClientTimeout(total=ANSWER_SECONDS_MAX)
        async with aiohttp.ClientSession(timeout=timeout, trace_configs=[trace]) as http:
            await test(Engine(base, http))

    asyncio.run(run())
