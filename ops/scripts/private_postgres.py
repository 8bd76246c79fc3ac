"""The PostgreSQL of `make run`, as ops/scripts/stack watches it: by way of ops/scripts/postgres.

It is no child of the stack's: it outlives it, and ops/scripts/run stops it last.
"""

import asyncio
import contextlib
import os
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent / "postgres"
LAST_LINES = 8  # Of its log, when it is gone.
TAIL_BYTES_MAX = 64 * 1024  # Of the log, read for them.


class Postgres:
    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port
        self.pid = 0
        self.log = Path()
        self.log_bytes = 0  # When it was last known to run.

    async def find(self) -> str:
        """Notes which process it is; what is wrong, if none runs."""
        status, output = await self.script("pid")
        if status != 0:
            return output
        self.pid = int(output)
        _, output = await self.script("log")
        self.log = Path(output)
        self.log_bytes = self.log.stat().st_size
        return ""

    async def start(self) -> str:
        """Starts it, unless it runs; what is wrong, if it does not run then."""
        status, output = await self.script("start", str(self.port))
        return output if status != 0 else await self.find()

    async def gone(self, stopping: asyncio.Event) -> bool:
        """Waits until it has ended; False when everything stops before."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return not stopping.is_set()
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(descriptor, ended.set)
        waiting = [asyncio.create_task(event.wait()) for event in (ended, stopping)]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)
            for task in waiting:
                task.cancel()
        return not stopping.is_set()

    def last_lines(self) -> list[str]:
        """What the log says since the server was last known to run."""
        with contextlib.suppress(OSError), self.log.open("rb") as log:
            log.seek(max(self.log_bytes, self.log.stat().st_size - TAIL_BYTES_MAX))
            return log.read().decode(errors="replace").splitlines()[-LAST_LINES:]
        return []

    async def script(self, action: str, *arguments: str) -> tuple[int, str]:
        """One call of ops/scripts/postgres: its status, and what it printed."""
        process = await asyncio.create_subprocess_exec(
            SCRIPT, action, self.folder, *arguments, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT, start_new_session=True,  # Ctrl-C does not leave a start half done.
        )
        output, _ = await process.communicate()
        assert process.returncode is not None
        return process.returncode, output.decode(errors="replace").strip()
