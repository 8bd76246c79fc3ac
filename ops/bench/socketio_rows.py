"""The chat's Socket.IO beside python-socketio."""

import sys
import time

from fanout import FanOut
from measure import Load, Server, free_port
from stand import HERE, Row, Stand

SOCKETS, MESSAGES, BURST = 500, 64, 16  # In one room; said there in each round; and at once.


class SocketIORows:
    def __init__(self, stand: Stand):
        self.stand = stand

    def room(self, person: int) -> str:
        """A new room of one member; its name."""
        room = self.stand.places(1)[0]
        self.stand.enter([(room, person)])
        return f"rep_{room}_ada"

    def socketio(self) -> None:
        """What one says in a room of many sockets, until all have it: one message after the other, and in bursts."""
        person = self.stand.people(1)[0]
        token = self.stand.token(person)
        chat, base = self.stand.chat()
        port = free_port()
        command = [sys.executable, "-m", "uvicorn", "socketio_app:app", "--app-dir", str(HERE), "--port", str(port)]
        command += ["--no-access-log", "--log-level", "warning"]
        url = f"http://127.0.0.1:{port}"
        with chat:
            peer = Server(command, {}, f"{url}/socket.io/?EIO=4&transport=polling", self.stand.folder / "socketio.log")
            with peer:
                for burst, name in ((1, "one by one"), (BURST, f"{BURST} at once")):
                    ours, theirs = self.stand.in_turns(
                        lambda: fan_out(chat, base, self.room(person), token, burst),
                        lambda: fan_out(peer, url, f"room{time.monotonic_ns()}", token, burst),
                    )
                    self.stand.notes.append(
                        f"Socket.IO, {name}: {ours.cpu_microseconds:.1f} µs of CPU a message and socket, slowest "
                        f"{ours.p99_milliseconds:.1f} ms; python-socketio {theirs.cpu_microseconds:.1f} µs, "
                        f"{theirs.p99_milliseconds:.1f} ms"
                    )
                    self.stand.rows.append(
                        Row(f"Socket.IO, {SOCKETS} hear {name}", f"{ours.per_second:,.0f}/s",
                            f"python-socketio {theirs.per_second:,.0f}/s", ours.per_second / theirs.per_second, 10,
                            False)
                    )
        self.stand.notes.append(
            f"Socket.IO: {MESSAGES} messages to {SOCKETS} sockets, room_messages with all texts so far; messages that "
            "meet go out together; python-socketio stores nothing"
        )


def fan_out(server: Server, url: str, room: str, token: str, burst: int) -> Load:
    """Messages to many sockets, so many at once; the p99 is the slowest time until all had heard them."""
    sockets = FanOut(url, SOCKETS, room, token)
    sockets.say(["the first"])
    used, begun, slowest = server.cpu_seconds(), time.monotonic(), 0.0
    for number in range(MESSAGES // burst):
        one = time.monotonic()
        sockets.say([f"message {number} {each} of some usual length, as people write them" for each in range(burst)])
        slowest = max(slowest, time.monotonic() - one)
    seconds, used = time.monotonic() - begun, server.cpu_seconds() - used
    sockets.close()
    count = MESSAGES * SOCKETS
    return Load(count, count / seconds, slowest * 1000, 0, used * 1e6 / count)
