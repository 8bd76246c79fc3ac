"""The WebSocket module's own echo, as a process: Tests/WebSocketEcho of the debug build."""

import subprocess
from contextlib import contextmanager
from typing import Iterator

from stack import ROOT


@contextmanager
def running_echo() -> Iterator[str]:
    """Its URL. It ends with its standard input, so it cannot outlive the tests."""
    program = ROOT / ".build/debug/WebSocketEcho"
    with subprocess.Popen([str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin and child.stdout
        try:
            yield f"ws://127.0.0.1:{int(child.stdout.readline())}/"
        finally:
            child.stdin.close()
            child.wait(20)
