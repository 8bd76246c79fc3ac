"""Who does not read what is sent to them loses their connection; nobody else notices, and memory stays as it is."""

import json
import re
import threading
import time
from typing import Any, Callable, Iterator

import pytest
import requests

from chat import Chat
from stack import Process, Stack
from wire import TEXT, Wire, closing, frame

SLOW = 10  # Sockets that do not read.
TEXT_BYTES = 40_000
FLOOD_TEXTS = 120  # 4.8 MB to each: far more than the kernel holds for a connection, and than the chat may.
PROBES = 100
# Ten slow readers may cost 256 KiB each; were all kept for them, it would be 48 MB.
GROWTH_KIB_MAX = 24 * 1024
WAITING_SENDS_MAX = 4


@pytest.fixture
def roomy(stack: Stack) -> Iterator[tuple[Process, str]]:
    """A chat of this test's own where one may send much, and its URL."""
    process, base = stack.extra_chat("roomy", {"MARTLET_CHAT_SENDS_PER_SECOND": "1000"})
    process.restart()
    yield process, f"ws{base[4:]}/chat"
    process.stop()


def memory_kib(process: Process) -> int:
    """The most that was resident since the start."""
    assert process.child
    with open(f"/proc/{process.child.pid}/status") as status:
        return int(re.search(r"VmHWM:\s+(\d+) kB", status.read())[1])


def sockets(process: Process) -> int:
    metrics = requests.get(process.ready.replace("/readyz", "/metrics"), timeout=10).text
    return int(re.search(r"^martlet_chat_sockets (\d+)$", metrics, re.MULTILINE)[1])


def words(fields: dict[str, Any]) -> bytes:
    return frame(TEXT, json.dumps(fields).encode())


def greeted(url: str, token: str, receive_bytes: int | None = None) -> Wire:
    wire = Wire(url, "martlet.v1", receive_bytes=receive_bytes)
    wire.send(words({"type": "hello", "token": token}))
    assert json.loads(wire.next()[1])["type"] == "ready"
    return wire


def flood(
    sender: Chat, room: int, name: str, count: int = FLOOD_TEXTS, goes_on: Callable[[], bool] = lambda: True
) -> int:
    """Sends long texts, a few of them under way at a time; how many."""
    sent = 0
    while sent < count and goes_on():
        sender.say(room, f"{name}-{sent}", "x" * TEXT_BYTES)
        sent += 1
        if sent >= WAITING_SENDS_MAX:
            sender.wait("ack", id=f"{name}-{sent - WAITING_SENDS_MAX}")
            sender.frames.clear()
    for last in range(max(sent - WAITING_SENDS_MAX + 1, 0), sent):
        sender.wait("ack", id=f"{name}-{last}")
    return sent


def read_on(wire: Wire) -> threading.Thread:
    """Reads whatever comes until the connection ends."""

    def run() -> None:
        while wire.take():
            pass

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def slowest(one: Wire, other: Wire, room: int, name: str) -> float:
    """Seconds from one's sending to the other's having it: nine of ten were faster, the machine's moments are not."""
    took = []
    for number in range(PROBES):
        began = time.monotonic()
        one.send(words({"type": "send", "room": room, "id": f"{name}-{number}", "body": "How are you?"}))
        while json.loads(other.next()[1]).get("id") != f"{name}-{number}":
            pass
        took.append(time.monotonic() - began)
    return sorted(took)[-len(took) // 10]


def test_slow_readers_cost_nobody_anything(roomy: tuple[Process, str], accepted: Callable) -> None:
    process, url = roomy
    loud, quiet = accepted(), accepted()
    sender = Chat.hello(url, loud.applicant.jwt)
    one, other = greeted(url, quiet.applicant.jwt), greeted(url, quiet.representative.jwt)
    measured: dict[str, tuple[float, int]] = {}
    for name in ("all read", "nobody reads"):
        before = sockets(process)
        readers = [
            greeted(url, loud.representative.jwt, None if name == "all read" else 4096) for _ in range(SLOW)
        ]
        threads = [read_on(wire) for wire in readers] if name == "all read" else []
        flooding = threading.Thread(target=flood, args=(sender, loud.room, name), daemon=True)
        flooding.start()
        took = slowest(one, other, quiet.room, name)
        flooding.join(300)
        assert not flooding.is_alive()
        measured[name] = took, memory_kib(process)
        if name == "all read":
            for wire in readers:
                wire.send(closing())
            for thread in threads:
                thread.join(30)
        else:
            assert sockets(process) == before, "those who did not read are gone, all the others are there"
        for wire in readers:
            wire.socket.close()
    (usual, memory), (slow, more_memory) = measured["all read"], measured["nobody reads"]
    assert slow < 3 * usual + 0.5, measured
    assert more_memory - memory < GROWTH_KIB_MAX, measured
    sender.close()


def test_a_slow_reader_is_told_and_resumes(roomy: tuple[Process, str], accepted: Callable) -> None:
    process, url = roomy
    them = accepted()
    sender, slow = Chat.hello(url, them.applicant.jwt), greeted(url, them.representative.jwt, 4096)
    start = sender.ready["rooms"][0]["last_seq"]
    there = sockets(process)
    sent = flood(sender, them.room, "slow", 5 * FLOOD_TEXTS, lambda: sockets(process) == there)
    assert sent < 5 * FLOOD_TEXTS
    # What was taken before comes whole and in order; then the reason.
    seqs = []
    while (event := slow.next())[0] == "text":
        message = json.loads(event[1])
        assert len(message["body"]) == TEXT_BYTES
        seqs.append(message["seq"])
    assert event == ("close", 1013)
    assert seqs == list(range(start + 1, start + 1 + len(seqs))) and 0 < len(seqs) < sent
    slow.send(closing(1013))
    assert slow.next() == ("end", None)
    again = Chat.hello(url, them.representative.jwt, {them.room: seqs[-1]})
    missed = [each["seq"] for each in again.messages(them.room, sent - len(seqs))]
    assert missed == list(range(seqs[-1] + 1, start + 1 + sent))
    for each in (sender, again):
        each.close()
