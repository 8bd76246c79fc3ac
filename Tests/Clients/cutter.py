"""A relay before a server that cuts connections at random bytes, as trains, lifts and sleeping phones do."""

import asyncio
import random
import socket
import struct

PIECE_BYTES_MAX = 65536
# From the client: about what a greeting and some messages need, so that cuts fall into the handshake, the hello and
# what is said. From the server: the same, and then many messages.
UP_BYTES_MAX = 2_500
DOWN_BYTES_MAX = 10_000
UP_SHARE = 0.35


class Cutter:
    def __init__(self, port: int, chance: random.Random, down_bytes_max: int = DOWN_BYTES_MAX):
        self.upstream = port
        self.chance = chance
        self.down_bytes_max = down_bytes_max
        self.cuts = 0
        self.resets = 0
        self.is_calm = False
        self.server: asyncio.Server | None = None
        self.tasks: set[asyncio.Task] = set()

    async def start(self) -> int:
        """Listens; the port."""
        self.server = await asyncio.start_server(self._carry, "127.0.0.1", 0, backlog=1024)
        return self.server.sockets[0].getsockname()[1]

    def calm(self) -> None:
        """Cuts nothing from now on."""
        self.is_calm = True

    def close(self) -> None:
        if self.server:
            self.server.close()
        for task in self.tasks:
            task.cancel()

    async def _carry(self, client_in: asyncio.StreamReader, client_out: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self.tasks.add(task)
        outs = [client_out]
        try:
            server_in, server_out = await asyncio.open_connection("127.0.0.1", self.upstream)
            outs.append(server_out)
            cuts_up = self.chance.random() < UP_SHARE
            up = self.chance.randint(0, UP_BYTES_MAX) if cuts_up else None
            down = None if cuts_up else self.chance.randint(0, self.down_bytes_max)
            pumps = [
                asyncio.create_task(self._pump(client_in, server_out, up)),
                asyncio.create_task(self._pump(server_in, client_out, down)),
            ]
            try:
                done, _ = await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for pump in pumps:
                    pump.cancel()
                await asyncio.gather(*pumps, return_exceptions=True)
            if any(not pump.cancelled() and pump.exception() is None and pump.result() for pump in done):
                self._cut(outs)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            for out in outs:
                out.close()
            self.tasks.discard(task)

    def _cut(self, outs: list[asyncio.StreamWriter]) -> None:
        self.cuts += 1
        if self.chance.random() < 0.5:
            return  # An orderly end, each side thinks, but in the middle of a frame.
        self.resets += 1
        for out in outs:
            # Without lingering, closing is a reset: what is on its way is gone too.
            out.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            out.transport.abort()

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, limit: int | None) -> bool:
        """Carries bytes until the end, or until exactly `limit` have gone; then true."""
        carried = 0
        while piece := await source.read(PIECE_BYTES_MAX):
            if limit is not None and not self.is_calm and carried + len(piece) >= limit:
                sink.write(piece[: limit - carried])
                await sink.drain()
                return True
            carried += len(piece)
            sink.write(piece)
            await sink.drain()
        return False
