"""Programs of the last release, at work while the schema is brought up to date. Not among our own tests: `make compat`
copies this file into that release's client tests and runs it there, so it uses what those have."""

import json
import os
import threading
from typing import Any, Callable

from chat import Chat
from conftest import Accepted
from stack import Stack

ADDED = int(os.environ["MARTLET_COMPAT_ADDED"])  # Migrations that the release does not know.
PAIRS = 12  # Rooms: more than there are partitions.
ANSWER_SECONDS_MAX = 30
ATTEMPTS_MAX = 200  # Of a send while tables are locked.
PACE_SECONDS = 0.05  # Between sends of one: a chat refuses who is much faster for long.


class Talker(threading.Thread):
    """Sends one numbered message after the other, each again until it is acknowledged."""

    def __init__(self, chat: Chat, room: int):
        super().__init__(daemon=True)
        self.chat, self.room = chat, room
        self.stopped = threading.Event()
        self.bodies: list[str] = []
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.stopped.is_set():
                body = f"while it migrates {len(self.bodies)}"
                self.say(body)
                self.bodies.append(body)
                self.stopped.wait(PACE_SECONDS)
        except BaseException as failure:
            self.failure = failure

    def say(self, body: str) -> None:
        for _ in range(ATTEMPTS_MAX):
            self.chat.say(self.room, body.replace(" ", "-"), body)
            answer = first(self.chat)
            if answer["type"] == "ack":
                return
            assert answer["code"] in ("unavailable", "outcome_unknown", "busy", "too_many"), answer
            threading.Event().wait(PACE_SECONDS)
        raise AssertionError("never acknowledged")

    def finish(self) -> list[str]:
        self.stopped.set()
        self.join(60)
        assert self.failure is None and not self.is_alive(), self.failure
        return self.bodies


def first(chat: Chat) -> dict[str, Any]:
    """The next answer to a send."""
    while True:
        for kind in ("ack", "error"):
            for index, frame in enumerate(chat.frames):
                if frame["type"] == kind:
                    return chat.frames.pop(index)
        chat.frames.clear()
        chat.frames.append(json.loads(chat.socket.recv(timeout=ANSWER_SECONDS_MAX)))


def acts(chat: Chat, room: int, name: str) -> int:
    """Two texts, of which the first is edited and then deleted; the seq of the one that stays."""
    seqs = []
    for number in range(2):
        chat.say(room, f"{name}-{number}", f"{name} {number}")
        seqs.append(chat.wait("ack", id=f"{name}-{number}")["seq"])
    chat.send({"type": "edit", "room": room, "id": f"{name}-e", "target": seqs[0], "body": f"{name} edited"})
    chat.wait("ack", id=f"{name}-e")
    chat.send({"type": "delete", "room": room, "id": f"{name}-d", "target": seqs[0]})
    chat.wait("ack", id=f"{name}-d")
    return seqs[1]


def test_the_last_release_serves_on_while_and_after_the_schema_is_brought_up_to_date(
    stack: Stack, chat: Callable[..., Chat], accepted: Callable[[], Accepted]
) -> None:
    for _ in range(ADDED):
        stack.martlet("migrate", "down")
    pairs = [accepted() for _ in range(PAIRS)]
    chats = [chat(pair.applicant, number % 2) for number, pair in enumerate(pairs)]
    # Statements are prepared now, for the old schema.
    stays = [(pair.room, acts(ours, pair.room, "before"), "before 1") for pair, ours in zip(pairs, chats)]

    talking = [Talker(chat(pair.representative, number % 2), pair.room) for number, pair in enumerate(pairs[:4])]
    for talker in talking:
        talker.start()
    stack.martlet("migrate")
    during = [(talker.room, talker.finish()) for talker in talking]

    stays += [(pair.room, acts(ours, pair.room, "after"), "after 1") for pair, ours in zip(pairs, chats)]
    # What was deleted is empty, and nothing else is, wherever in its table it stands.
    for room, seq, body in stays:
        assert stack.sql(f"SELECT body FROM messages WHERE room_id = {room} AND seq = {seq}") == body
    rooms = ", ".join(str(pair.room) for pair in pairs)
    emptied = stack.sql(
        f"SELECT count(*) FROM messages WHERE room_id IN ({rooms}) AND kind IN ('text', 'edit') AND body = ''")
    assert emptied == str(PAIRS * 2 * 2)
    # Each that was acknowledged is there once, in order.
    for room, bodies in during:
        found = stack.sql(
            f"SELECT body FROM messages WHERE room_id = {room} AND body LIKE 'while it migrates%' ORDER BY seq")
        assert found.splitlines() == bodies and bodies
    # And a new pair goes the whole way, with the applications' and alerts' statements.
    late = accepted()
    acts(chat(late.applicant, 0), late.room, "late")
