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
ANSWER_SECONDS_MAX = 90
ATTEMPTS_MAX = 200  # Of a send while tables are locked.
CHANGES = 40  # Messages that one edits or deletes meanwhile.
PACE_SECONDS = 0.05  # Between sends of one: a chat refuses who is much faster for long.
# A migration that moves many rows takes its time. This one moves few, so it is kept before the end, for longer than
# PostgreSQL waits before it looks for a deadlock and for less than a send may take.
HOLD = """
    CREATE FUNCTION hold_drop() RETURNS event_trigger LANGUAGE plpgsql AS $$
    BEGIN IF current_query() LIKE '%DROP TABLE messages%' THEN PERFORM pg_sleep(3); END IF; END $$;
    CREATE EVENT TRIGGER hold_drop ON ddl_command_start WHEN TAG IN ('DROP TABLE') EXECUTE FUNCTION hold_drop()
    """


class Talker(threading.Thread):
    """Sends one numbered message after the other, each again until it is acknowledged."""

    def __init__(self, chat: Chat, room: int):
        super().__init__(daemon=True)
        self.chat, self.room = chat, room
        self.stopped = threading.Event()
        self.bodies: list[str] = []  # What is to be found in the end.
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            self.talk()
        except BaseException as failure:
            self.failure = failure

    def talk(self) -> None:
        while not self.stopped.is_set():
            self.bodies.append(f"while it migrates {len(self.bodies)}")
            self.text(len(self.bodies) - 1)

    def text(self, number: int) -> int:
        return self.say({"type": "send", "id": f"talk-{number}", "body": self.bodies[number]})

    def say(self, frame: dict[str, Any]) -> int:
        for _ in range(ATTEMPTS_MAX):
            self.chat.send({"room": self.room, **frame})
            answer = first(self.chat)
            if answer["type"] == "ack":
                self.stopped.wait(PACE_SECONDS)
                return answer["seq"]
            assert answer["code"] in ("unavailable", "outcome_unknown", "busy", "too_many"), answer
            threading.Event().wait(PACE_SECONDS)
        raise AssertionError("never acknowledged")

    def finish(self) -> list[str]:
        self.stopped.set()
        self.join(60)
        assert self.failure is None and not self.is_alive(), self.failure
        return self.bodies


class Changer(Talker):
    """Edits and deletes what it sent before, and does each twice: the statements of these read before they write."""

    def __init__(self, chat: Chat, room: int):
        super().__init__(chat, room)
        self.bodies = [f"to be changed {number}" for number in range(CHANGES)]
        self.seqs = [self.text(number) for number in range(CHANGES)]

    def talk(self) -> None:
        for number, seq in enumerate(self.seqs):
            if self.stopped.is_set():
                return
            edit = {"type": "edit", "id": f"e-{number}", "target": seq, "body": "changed"}
            assert self.say(edit) == self.say(edit)
            if number % 2 == 1:
                self.say({"type": "delete", "id": f"d-{number}", "target": seq})
                self.bodies[number] = ""


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

    stack.sql(HOLD)
    # Each kind at a chat of its own, as a chat's sends wait for one another.
    kinds: list[type[Talker]] = [Talker, Changer]
    talking = [kinds[number % 2](chat(pair.representative, number % 2), pair.room)
               for number, pair in enumerate(pairs[:4])]
    for talker in talking:
        talker.start()
    stack.martlet("migrate")
    stack.sql("DROP EVENT TRIGGER hold_drop")
    during = [(talker.room, talker.finish()) for talker in talking]

    stays += [(pair.room, acts(ours, pair.room, "after"), "after 1") for pair, ours in zip(pairs, chats)]
    # What was deleted is empty, and nothing else is, wherever in its table it stands.
    for room, seq, body in stays:
        assert stack.sql(f"SELECT body FROM messages WHERE room_id = {room} AND seq = {seq}") == body
    rooms = ", ".join(str(pair.room) for pair in pairs)
    emptied = stack.sql(
        f"SELECT count(*) FROM messages WHERE room_id IN ({rooms}) AND kind IN ('text', 'edit') AND body = ''")
    taken_back = sum(bodies.count("") for _, bodies in during)
    assert emptied == str((PAIRS * 2 + taken_back) * 2)
    # Each that was acknowledged is there once, in order.
    for room, bodies in during:
        found = stack.sql(
            f"SELECT '>' || body FROM messages WHERE room_id = {room} AND client_id LIKE 'talk-%' ORDER BY seq")
        assert found.splitlines() == [">" + body for body in bodies] and bodies
    # And a new pair goes the whole way, with the applications' and alerts' statements.
    late = accepted()
    acts(chat(late.applicant, 0), late.room, "late")
