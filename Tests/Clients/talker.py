"""A client of Socket.IO on the third-party library python-socketio; it does what the job board's app does."""

import json
import queue
import threading
import time
from contextlib import suppress
from typing import Any, Callable

import requests
import socketio

EVENT_SECONDS_MAX = 90


class Talker:
    """One connection. Events that were not waited for are kept in order."""

    def __init__(self, token: str, reconnects: bool = False):
        self.token = token
        self.reconnects = reconnects
        # Its own session of HTTP, so that each client has connections of its own through the front door.
        self.client = socketio.Client(
            reconnection=reconnects, reconnection_delay=0.2, reconnection_delay_max=1, http_session=requests.Session())
        self.events: list[tuple[str, Any]] = []
        self.came: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self.client.on("*", self.heard)
        for name in ("connect", "disconnect", "connect_error"):
            self.client.on(name, lambda *arguments, name=name: self.came.put((name, arguments)))

    def connect(self, url: str, transports: list[str] | None = None) -> None:
        auth = {"token": self.token}
        self.client.connect(
            url, auth=auth, transports=transports, wait_timeout=EVENT_SECONDS_MAX, retry=self.reconnects)

    def begin(self, url: str, transports: list[str]) -> None:
        """Connects in the background, for one who is refused: the library hangs up at its leisure."""

        def run() -> None:
            with suppress(socketio.exceptions.ConnectionError):
                self.connect(url, transports)

        threading.Thread(target=run, daemon=True).start()

    def heard(self, name: str, *arguments: Any) -> None:
        # The argument of an event is a string of JSON.
        assert len(arguments) == 1 and isinstance(arguments[0], str), arguments
        self.came.put((name, json.loads(arguments[0])))

    @property
    def instance(self) -> str:
        """Who holds the session: it stands in its id."""
        return self.client.eio.sid.rsplit(".", 2)[0]

    @property
    def transport(self) -> str:
        return self.client.transport()

    def wait(self, name: str, such: Callable[[Any], bool] = lambda _: True, seconds: float = EVENT_SECONDS_MAX) -> Any:
        """The first event of this name for which `such` holds, whether it has come already or comes within the time."""
        until = time.monotonic() + seconds
        looked = 0
        while True:
            for index in range(looked, len(self.events)):
                if self.events[index][0] == name and such(self.events[index][1]):
                    return self.events.pop(index)[1]
            looked = len(self.events)
            try:
                self.events.append(self.came.get(timeout=max(until - time.monotonic(), 0.001)))
            except queue.Empty:
                raise AssertionError(f"no {name} within {seconds} s; there were {self.events}") from None

    def rooms(self, such: Callable[[list[dict]], bool] = lambda _: True) -> list[dict[str, Any]]:
        """The list of rooms as it was last pushed, once `such` holds of it."""
        return self.wait("messages", lambda value: such(value["payload"]))["payload"]

    def join(self, room: str) -> list[dict[str, Any]]:
        self.client.emit("join_room", {"room": room})
        return self.texts(room)

    def ask(self, name: str, argument: dict[str, Any]) -> Any:
        """The acknowledgement of an event; what was sent before it has come by then."""
        self.client.emit(name, argument, callback=lambda answer: self.came.put(("answer", answer)))
        return self.wait("answer")

    def say(self, room: str, text: str) -> None:
        self.client.emit("send_message", {"room": room, "text": text})

    def texts(self, room: str, until: str | None = None) -> list[dict[str, Any]]:
        """The texts of a room as they were pushed; `until`: once this one is among them."""

        def holds(value: dict[str, Any]) -> bool:
            return value["room"] == room and (until is None or any(each["text"] == until for each in value["texts"]))

        value = self.wait("room_messages", holds)
        # The app reads the top level, its original server sent the row.
        assert value["message"]["texts"] == value["texts"] and value["message"]["id"] == value["id"]
        return value["texts"]

    def close(self) -> None:
        # Without waiting for the poll that is under way, which may take until the next ping.
        self.client.reconnection = False
        self.client.eio.disconnect(abort=True)
