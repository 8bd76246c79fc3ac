"""What ops/scripts/stack shows of the services, and the files it keeps of their logs."""

import contextlib
import json
import os
import re
import sys
from collections import deque
from pathlib import Path

LAST_LINES = 8  # Shown of a service that died.
LINE_BYTES_MAX = 64 * 1024  # A longer log line is cut, or one service could fill the memory.
LOG_BYTES_MAX = 10 * 1024 * 1024  # Then the file is put aside as NAME.log.1, and the one before is dropped.
TEXT_COLUMNS_MAX = 160  # What the terminal shows of one line; the file has all of it.
COLOURS = {"gateway": 36, "chat-1": 35, "chat-2": 95, "worker": 33, "mail": 32, "proxy": 34, "postgres": 94}
LEVELS = {"warning": 33, "warn": 33, "error": 31, "critical": 31, "fatal": 31}


class Terminal:
    """Short lines for a person; colours only where one looks."""

    def __init__(self) -> None:
        self.colours = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    def paint(self, text: str, code: int) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colours else text

    def line(self, name: str, text: str, level: str = "") -> None:
        if level in LEVELS:
            text = self.paint(text, LEVELS[level])
        self.say(f"{self.paint(f'{name:<8}', COLOURS.get(name, 0))} {text}")

    def say(self, text: str = "") -> None:
        # The terminal may have been closed; the services still have to be stopped in order.
        with contextlib.suppress(OSError, ValueError):
            print(text, flush=True)


def printable(text: str) -> str:
    """Log lines carry words from outside: no colours and no control sequences of theirs reach the terminal."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    return "".join(c if c.isprintable() else " " for c in text)[:TEXT_COLUMNS_MAX]


def shortened(line: str) -> tuple[str, str]:
    """A log line in short, and its level. JSON becomes `message key=value …`; anything else stays as it is."""
    try:
        entry = json.loads(line)
        if not isinstance(entry, dict):
            raise ValueError
    except ValueError:
        return printable(line), ""
    level = str(entry.pop("level", "")).lower()
    message = str(entry.pop("message", entry.pop("msg", "")))
    for known in ("time", "timestamp", "ts", "service", "instance", "pid", "trace_id", "traceparent"):
        entry.pop(known, None)
    text = " ".join([message] + [f"{key}={value}" for key, value in entry.items()])
    return printable(text), level


class Log:
    """A service's log file, its size bounded, and its last lines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.last: deque[str] = deque(maxlen=LAST_LINES)
        self.file = path.open("ab")

    def write(self, line: bytes) -> None:
        self.file.write(line + b"\n")
        self.file.flush()
        if self.file.tell() > LOG_BYTES_MAX:
            self.file.close()
            self.path.replace(self.path.with_suffix(".log.1"))
            self.file = self.path.open("ab")
