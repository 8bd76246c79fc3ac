"""A client of the chat protocol martlet.v1 on the third-party library `websockets`."""

import json
import time
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

FRAME_SECONDS_MAX = 90


class Chat:
    """One connection. Frames that were not waited for are kept in order in `frames`."""

    def __init__(self, url: str):
        self.socket: ClientConnection = connect(
            url, subprotocols=["martlet.v1"], proxy=None, open_timeout=FRAME_SECONDS_MAX,
            max_queue=None,  # Or the library stops reading when frames are not taken, and a close is not seen.
        )
        assert self.socket.subprotocol == "martlet.v1"
        self.frames: list[dict[str, Any]] = []
        self.ready: dict[str, Any] = {}

    @classmethod
    def hello(cls, url: str, token: str, resume: dict[int, int] | None = None) -> "Chat":
        """A connection that has been greeted; `resume` tells the last seq seen in each room."""
        chat = cls(url)
        rooms = {str(room): seq for room, seq in (resume or {}).items()}
        chat.send({"type": "hello", "token": token, "resume": rooms})
        chat.ready = chat.wait("ready")
        return chat

    def send(self, frame: dict[str, Any]) -> None:
        self.socket.send(json.dumps(frame))

    def say(self, room: int, client_id: str, body: str) -> None:
        self.send({"type": "send", "room": room, "id": client_id, "body": body})

    def wait(self, kind: str, seconds: float = FRAME_SECONDS_MAX, **wanted: Any) -> dict[str, Any]:
        """The first frame of this type with these values, whether it has come already or comes within the time."""
        until = time.monotonic() + seconds
        looked = 0
        while True:
            for index in range(looked, len(self.frames)):
                frame = self.frames[index]
                if frame["type"] == kind and all(frame.get(key) == value for key, value in wanted.items()):
                    return self.frames.pop(index)
            looked = len(self.frames)
            try:
                text = self.socket.recv(timeout=max(until - time.monotonic(), 0.001))
            except TimeoutError:
                raise AssertionError(f"no {kind} {wanted} within {seconds} s; there were {self.frames}") from None
            self.frames.append(json.loads(text))

    def messages(self, room: int, count: int) -> list[dict[str, Any]]:
        """The next `count` messages of a room in the order of their arrival."""
        return [self.wait("message", room=room) for _ in range(count)]

    def closed(self, seconds: float = FRAME_SECONDS_MAX) -> int:
        """Waits until the server closes, and returns the close code."""
        until = time.monotonic() + seconds
        while True:
            try:
                self.frames.append(json.loads(self.socket.recv(timeout=max(until - time.monotonic(), 0.001))))
            except ConnectionClosed as closed:
                return closed.rcvd.code if closed.rcvd else 1006
            except TimeoutError:
                raise AssertionError(f"not closed within {seconds} s; there were {self.frames}") from None

    def refusal(self) -> str | int:
        """The code of the next error, or that of the connection's end, whichever comes first."""
        try:
            return self.wait("error")["code"]
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else 1006

    def close(self) -> None:
        self.socket.close()
