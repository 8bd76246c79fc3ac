"""Load for a deployment that is being disturbed: people who ask and change things, and people who talk.

Each is a thread that goes on until it is told to stop, and remembers what it saw. Nobody tries a request again: what
fails has failed. Those who talk do what a chat client does: connect again, say again under the same id, resume.
"""

import threading
import time
from dataclasses import dataclass, field
from typing import Callable

import requests
from websockets.exceptions import WebSocketException

from chat import Chat
from people import Person

REQUEST_PAUSE_SECONDS = 0.05  # Of one asker: the load is steady, not all that the machine can bear.
SAY_PAUSE_SECONDS = 0.1
ANSWER_SECONDS_MAX = 10  # Of one request; longer counts as failed.
ACK_SECONDS_MAX = 5  # Then the connection is taken for dead.
RECONNECT_SECONDS = 0.3


@dataclass
class Request:
    """One request, as its client saw it."""

    began: float  # time.monotonic()
    seconds: float
    method: str
    failure: str  # Empty when it was answered as it should be.


class Loop(threading.Thread):
    """Does one thing again and again."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.stopping = threading.Event()
        self.broken = ""

    def run(self) -> None:
        try:
            while not self.stopping.is_set():
                self.once()
        except Exception as error:  # noqa: BLE001, told at the end by whoever started it
            self.broken = f"{type(error).__name__}: {error}"

    def once(self) -> None:
        raise NotImplementedError

    def end(self) -> None:
        self.stopping.set()
        self.join(60)
        assert not self.is_alive() and not self.broken, self.broken or "it did not end"


class Asker(Loop):
    """Sends requests over one connection, as a browser keeps one."""

    def __init__(self, http: requests.Session, make: Callable[[int], tuple[str, str, dict]]):
        """`make`: method, URL and the rest of the request of that number."""
        super().__init__()
        self.http = http
        self.make = make
        self.requests: list[Request] = []

    def once(self) -> None:
        method, url, more = self.make(len(self.requests))
        began = time.monotonic()
        try:
            answer = self.http.request(method, url, timeout=ANSWER_SECONDS_MAX, **more)
            failure = "" if answer.status_code == 200 else f"{answer.status_code} {answer.text[:200]}"
        except requests.RequestException as error:
            failure = f"{type(error).__name__}: {error}"
        self.requests.append(Request(began, time.monotonic() - began, method, failure))
        self.stopping.wait(REQUEST_PAUSE_SECONDS)


@dataclass
class Heard:
    """What somebody was sent of a room."""

    seqs: list[int] = field(default_factory=list)
    bodies: list[str] = field(default_factory=list)


class Socket(Loop):
    """A client of the chat that comes back when it is cut off, and goes on where it was."""

    def __init__(self, url: str, person: Person, room: int):
        super().__init__()
        self.url = url
        self.person = person
        self.room = room
        self.heard = Heard()
        self.chat: Chat | None = None
        self.connections = 0
        self.last = 0

    def connected(self) -> Chat | None:
        """The connection, made anew if need be; None when that has just failed."""
        if self.chat:
            return self.chat
        try:
            self.chat = Chat.hello(self.url, self.person.jwt, {self.room: self.last} if self.last else None)
            self.connections += 1
            if not self.last:
                self.last = next(each["last_seq"] for each in self.chat.ready["rooms"] if each["id"] == self.room)
        except (OSError, WebSocketException, AssertionError):
            self.chat = None
            self.stopping.wait(RECONNECT_SECONDS)
        return self.chat

    def lost(self) -> None:
        if self.chat:
            self.chat.close()
        self.chat = None

    def note(self, chat: Chat) -> None:
        """Takes what has come of the room out of the frames."""
        rest = []
        for frame in chat.frames:
            if frame["type"] == "message" and frame["room"] == self.room:
                self.heard.seqs.append(frame["seq"])
                self.heard.bodies.append(frame["body"])
                self.last = frame["seq"]
            else:
                rest.append(frame)
        chat.frames[:] = rest[-20:]


class Listener(Socket):
    def once(self) -> None:
        chat = self.connected()
        if not chat:
            return
        try:
            frame = chat.wait("message", seconds=0.5, room=self.room)
            chat.frames.insert(0, frame)
            self.note(chat)
        except AssertionError:
            pass  # Nothing was said.
        except WebSocketException:
            self.note(chat)
            self.lost()


class Speaker(Socket):
    """Says one thing after another, each until it is acknowledged."""

    def __init__(self, url: str, person: Person, room: int):
        super().__init__(url, person, room)
        self.said: list[str] = []  # Acknowledged, in this order.

    def once(self) -> None:
        body = f"word {len(self.said)}"
        while not self.stopping.is_set():
            chat = self.connected()
            if not chat:
                continue
            try:
                chat.say(self.room, f"id-{len(self.said)}", body)
                chat.wait("ack", seconds=ACK_SECONDS_MAX, id=f"id-{len(self.said)}")
            except (AssertionError, WebSocketException):
                self.note(chat)
                self.lost()
                continue
            self.said.append(body)
            self.note(chat)
            self.stopping.wait(SAY_PAUSE_SECONDS)
            return
