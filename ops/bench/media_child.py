"""A media child as the worker has it: the same program in the same sandbox, asked by the same frames."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from stand import BINARIES, HERE

WORKER = BINARIES / "martlet-worker"
# Of its own, as a worker gives it: nothing of ours but what keeps freed memory going back.
ENVIRONMENT = {
    "LANG": "C.UTF-8", "HOME": "/nonexistent", "MALLOC_ARENA_MAX": "2", "SWIFT_BACKTRACE": "enable=no",
    "GIO_USE_VFS": "local",
}


class Child:
    """One file at a time; what ends the child is one file, and the next one finds another child."""

    def __init__(self, roots: list[Path]):
        self.roots = roots
        self.request = json.loads((HERE / "media_request.json").read_text())
        self.peak_megabytes = 0.0  # Of all its lives.
        self.cpu_seconds = 0.0  # Of those that have ended.
        self.start()

    def start(self) -> None:
        self.child = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", str(WORKER), "media-child", *map(str, self.roots)],
            env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )
        if self.read() is None:
            raise SystemExit(f"{WORKER} media-child did not come up in its sandbox.")

    def read(self) -> bytes | None:
        """The next frame; None when the child has ended."""
        assert self.child.stdout
        head = self.child.stdout.read(4)
        body = self.child.stdout.read(int.from_bytes(head)) if len(head) == 4 else b""
        return body if len(head) == 4 and len(body) == int.from_bytes(head) else None

    def ask(self, path: Path, output: Path) -> dict[str, Any]:
        """The answer by its one name: `image`, `document`, `rejected`, `failed`, or `crashed`."""
        output.mkdir(parents=True, exist_ok=True)
        body = json.dumps({**self.request, "path": str(path), "outputDirectory": str(output)}).encode()
        assert self.child.stdin
        self.child.stdin.write(len(body).to_bytes(4) + body)
        self.child.stdin.flush()
        taken = self.read()
        answer = self.read() if taken == b"" else None
        if answer is None:
            self.end()
            self.start()
            return {"crashed": taken}
        return json.loads(answer)

    def end(self) -> None:
        assert self.child.stdin and self.child.stdout
        self.child.stdin.close()
        self.child.stdout.close()
        _, status, usage = os.wait4(self.child.pid, 0)
        self.child.returncode = os.waitstatus_to_exitcode(status)
        self.peak_megabytes = max(self.peak_megabytes, usage.ru_maxrss / 1024)
        self.cpu_seconds += usage.ru_utime + usage.ru_stime
