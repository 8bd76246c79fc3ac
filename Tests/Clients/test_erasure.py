"""martlet user erase on running services: nothing of somebody is left in database, files, mails and logs."""

import json
import os
import secrets
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import Callable, Iterator

import pytest
import requests

from chat import Chat
from images import png
from inbox import Inbox
from pdf import curriculum_vitae
from people import Person, new_word
from stack import Stack
from waiting import AT_ONCE_SECONDS_MAX, until


class Canary:
    """Somebody whose every word stands nowhere else."""

    def __init__(self, stack: Stack, representative: Person):
        self.stack = stack
        # One word for each place it could be forgotten in.
        self.words = {place: new_word() for place in ("name", "phone", "file", "cv", "text", "edit", "alert", "q")}
        self.person = Person.register(stack.base, self.words["name"])
        me = self.person
        me.ask("PUT", "/api/users/me", 200, json={"phone_number": self.words["phone"]})
        picture = ("files", (f"{self.words['file']}.png", png(400, 300), "image/png"))
        self.file = me.ask("POST", "/api/upload", 200, files=[picture])[0]
        alert = {"name": self.words["alert"], "q": self.words["q"], "cadence": "instant"}
        me.ask("POST", "/api/alerts", 201, json={"data": alert})
        posting = representative.publish(f"Engineer {new_word()}")["id"]
        self.application = me.apply(posting, curriculum_vitae(self.words["cv"]))["id"]
        representative.decide(self.application, "accepted")
        self.room = me.rooms()[0]["id"]
        self.erasing = [str(stack.binaries / "martlet"), "user", "erase", f"id:{me.id}", "--yes"]
        self.environment = {**os.environ, **stack.environment}

    def talk(self, mine: Chat) -> None:
        mine.say(self.room, "a", self.words["text"])
        seq = mine.wait("ack", id="a")["seq"]
        mine.send({"type": "edit", "room": self.room, "id": "b", "target": seq, "body": self.words["edit"]})
        mine.wait("ack", id="b")

    def erase(self) -> subprocess.CompletedProcess:
        """By id, so that it can be said again when the name is gone."""
        return subprocess.run(self.erasing, env=self.environment, capture_output=True, text=True)

    def erase_and_kill(self, look: str, found: str, when: str) -> None:
        """Begins, and kills the program when a query finds that."""
        child = subprocess.Popen(
            self.erasing, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(lambda: self.stack.sql(look) == found, when)
        assert child.poll() is None, f"{when}, and waits"
        child.kill()
        child.wait(60)

    def settled(self) -> bool:
        return self.stack.sql(
            f"SELECT count(*) FROM media WHERE owner_id = {self.person.id} AND state = 'pending'") == "0"

    def objects(self) -> list[Path]:
        store = Path(self.stack.environment["MARTLET_STORE"])
        keys = self.stack.sql(
            "SELECT storage_key FROM media WHERE owner_id = {0} UNION ALL SELECT v.storage_key FROM media_variants v "
            "JOIN media m ON m.id = v.media_id WHERE m.owner_id = {0}".format(self.person.id)).split()
        return [store / key for key in keys]

    def left(self) -> dict[str, list[str]]:
        """Which of the words are still in a dump of the database, in the store, in a log."""
        url = f"{self.stack.server_url.rpartition('/')[0]}/{self.stack.database}"
        dump = subprocess.run(["pg_dump", "--data-only", url], capture_output=True, check=True).stdout
        places = {"dump": dump}
        for path in Path(self.stack.environment["MARTLET_STORE"]).rglob("*"):
            if path.is_file():
                places[f"store {path.name}"] = path.read_bytes()
        for path in self.stack.folder.glob("*.log"):
            places[f"log {path.name}"] = path.read_bytes()
        words = [*self.words.values(), self.person.username, self.person.email]
        found = {word: [place for place, content in places.items() if word.encode() in content] for word in words}
        return {word: places for word, places in found.items() if places}


@contextmanager
def left_open(stack: Stack, name: str, statement: str) -> Iterator[None]:
    """A transaction of a program of that name, which has done a statement and does not end."""
    theirs = f"FROM pg_stat_activity WHERE application_name = '{name}' AND datname = '{stack.database}'"
    program = subprocess.Popen(
        ["psql", "-X", "-q", "-c", "BEGIN", "-c", statement, "-c", "SELECT pg_sleep(600)",
         f"{stack.server_url.rpartition('/')[0]}/{stack.database}"],
        env={**os.environ, "PGAPPNAME": name}, stdout=subprocess.DEVNULL)
    try:
        done = f"SELECT count(*) {theirs} AND query LIKE '%pg_sleep%'"
        until(lambda: stack.sql(done) == "1", f"{name} has done it")
        yield
    finally:
        stack.sql(f"SELECT pg_terminate_backend(pid) {theirs}")
        program.wait(60)


@pytest.fixture
def representative(person: Callable[[str], Person]) -> Person:
    somebody = person("rep")
    somebody.create_company(f"Company {new_word()}")
    return somebody


def test_nothing_of_somebody_is_left_and_the_other_side_goes_on(
    stack: Stack, representative: Person, chat: Callable[..., Chat]
) -> None:
    canary = Canary(stack, representative)
    somebody = canary.person
    mine, also_mine, theirs = chat(somebody, 0), chat(somebody, 1), chat(representative, 1)
    canary.talk(mine)
    until(canary.settled, "the files have been looked at")
    objects = canary.objects()
    assert len(objects) > 3 and all(path.exists() for path in objects)

    counted = json.loads(stack.martlet("user", "erase", somebody.email, "--json"))
    assert counted["erased"] is False and counted["counts"]["messages"] == 2 and counted["counts"]["files"] == 2
    assert somebody.get("/api/users/me")["id"] == somebody.id, "that was only counting"
    before = canary.left()
    assert set(canary.words.values()) <= set(before)
    assert not [place for places in before.values() for place in places if place.startswith("log")], before

    # A mail is on its way, and its server is away.
    stack.mail.stop()
    stack.martlet("user", "show", somebody.email)
    representative.publish(f"Engineer {canary.words['q']}")
    waiting = f"SELECT count(*) FROM mails WHERE user_id = {somebody.id}"
    until(lambda: stack.sql(waiting) == "1", "the alert has found it")
    done = stack.martlet("user", "erase", somebody.email, "--yes")
    stack.mail.restart()
    assert f"id:{somebody.id} is erased" in done
    assert (mine.closed(), also_mine.closed()) == (4401, 4401)
    answer = requests.get(f"{stack.base}/api/users/me", headers=dict(somebody.http.headers), timeout=10)
    assert answer.status_code == 401
    until(lambda: not any(path.exists() for path in objects), "the files are deleted")
    left = "SELECT count(*) FROM work_items WHERE kind IN ('send_mail', 'delete_files')"
    until(lambda: stack.sql(left) == "0", "the queue is done with it")
    # The posting that was found by the alert has the word of the search; that is the representative's.
    after = {word: places for word, places in canary.left().items() if word != canary.words["q"]}
    assert after == {}, after
    assert Inbox(stack.mail_folder, somebody.email).mails() == []

    text, edit, deletion = theirs.messages(canary.room, 3)
    assert [each["sender"] for each in (text, edit, deletion)] == [somebody.id, somebody.id, 0]
    assert (deletion["kind"], deletion["target"], deletion["body"]) == ("delete", text["seq"], "")
    theirs.say(canary.room, "mine", "is anybody there?")
    theirs.wait("ack", id="mine")
    room = representative.rooms()[0]
    assert f"deleted-{somebody.id}" in room["name"]
    theirs.send({"type": "history", "room": canary.room, "limit": 50})
    texts = theirs.wait("history", room=canary.room)["messages"]
    assert [text.get("deleted", False) for text in texts] == [False, True, False]
    again = stack.martlet("user", "erase", f"id:{somebody.id}", "--yes")
    assert "nothing to erase" in again


def test_an_erasure_that_is_killed_has_done_nothing_but_the_block_and_is_done_anew(
    stack: Stack, representative: Person, chat: Callable[..., Chat]
) -> None:
    canary = Canary(stack, representative)
    somebody = canary.person
    canary.talk(chat(somebody, 0))
    until(canary.settled, "the files have been looked at")
    stuck = (
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'martlet-operator/leased' "
        f"AND datname = '{stack.database}' AND wait_event_type = 'Lock'")
    with left_open(stack, "blocker", "LOCK TABLE mail_suppressions IN ACCESS EXCLUSIVE MODE"):
        canary.erase_and_kill(stuck, "1", "it is in the middle")
    until(lambda: stack.sql(stuck) == "0", "the server has noticed")
    assert stack.sql(f"SELECT username, blocked FROM users WHERE id = {somebody.id}") == f"{somebody.username}\tt"
    assert set(canary.words.values()) <= set(canary.left()), "all or nothing"
    done = canary.erase()
    assert done.returncode == 0, done.stderr
    until(lambda: not any(words != canary.words["q"] for words in canary.left()), "nothing is left")


def test_an_erasure_that_is_killed_before_its_second_look_is_brought_to_its_end_by_id(
    stack: Stack, representative: Person, chat: Callable[..., Chat]
) -> None:
    canary = Canary(stack, representative)
    somebody = canary.person
    canary.talk(chat(somebody, 0))
    until(canary.settled, "the files have been looked at")
    # A send of a chat that began before and does not end.
    with left_open(stack, "older/write", "SELECT 1"):
        canary.erase_and_kill(f"SELECT count(*) FROM users WHERE id = {somebody.id}", "0", "it has committed")
        # Another that had waited for the room while the erasure committed.
        stack.sql(
            f"WITH r AS (UPDATE rooms SET last_seq = last_seq + 1 WHERE id = {canary.room} RETURNING last_seq) "
            "INSERT INTO messages (room_id, seq, sender_id, client_id, body) "
            f"SELECT {canary.room}, last_seq, {somebody.id}, 'late', 'a late word' FROM r")
    done = canary.erase()
    assert done.returncode == 0 and "1 text was stored" in done.stderr, done.stderr
    stored = f"SELECT count(*) FROM messages WHERE sender_id = {somebody.id} AND (body <> '' OR client_id IS NOT NULL)"
    assert stack.sql(stored) == "0"
    again = canary.erase()
    assert again.returncode == 0 and "stored" not in again.stderr, again.stderr


def test_an_upload_that_is_under_way_ends_with_nothing(stack: Stack, person: Callable[[str], Person]) -> None:
    """Its request was let in before; the bytes are still coming when its owner is erased."""
    slow = person("slow")
    boundary = secrets.token_hex(8)
    head = (
        f"--{boundary}\r\nContent-Disposition: form-data; name=\"files\"; filename=\"a.png\"\r\n"
        "Content-Type: image/png\r\n\r\n").encode()
    content = png(600, 600)
    erased = False

    def body():
        yield head + content[:100]
        stack.martlet("user", "erase", slow.email, "--yes")
        nonlocal erased
        erased = True
        yield content[100:] + f"\r\n--{boundary}--\r\n".encode()

    before = set(Path(stack.environment["MARTLET_STORE"]).rglob("*"))
    answer = requests.post(
        f"{stack.gateway_urls[0]}/api/upload", data=body(), timeout=60,
        headers={**slow.http.headers, "Content-Type": f"multipart/form-data; boundary={boundary}"})
    assert erased and answer.status_code in (401, 404), answer.text
    assert stack.sql(f"SELECT count(*) FROM media WHERE owner_id = {slow.id}") == "0"

    def new() -> set[Path]:
        return {path for path in set(Path(stack.environment["MARTLET_STORE"]).rglob("*")) - before if path.is_file()}

    until(lambda: not new(), "its bytes are gone")


def test_sessions_that_an_operator_ends_are_over_everywhere(
    stack: Stack, person: Callable[[str], Person], chat: Callable[..., Chat]
) -> None:
    ada = person("ada")
    sockets = [chat(ada, 0), chat(ada, 1)]
    listed = json.loads(stack.martlet("user", "sessions", ada.email, "--json"))
    assert [each["kind"] for each in listed] == ["long"]
    assert "1 session of" in stack.martlet("user", "end-sessions", ada.email)
    assert [each.closed(AT_ONCE_SECONDS_MAX) for each in sockets] == [4401, 4401]
    assert "There are none." in stack.martlet("user", "sessions", ada.email)
    ada.sign_in()
    assert ada.get("/api/users/me")["id"] == ada.id


def test_completion_and_pages_of_people(stack: Stack, person: Callable[[str], Person]) -> None:
    word = new_word()
    ids = [person(word).id for _ in range(3)]
    first = json.loads(stack.martlet("user", "ls", "--find", word.upper(), "--limit", "2", "--json"))
    assert [each["id"] for each in first] == ids[:2]
    rest = json.loads(stack.martlet("user", "ls", "--find", word, "--after", str(ids[1]), "--json"))
    assert [each["id"] for each in rest] == ids[2:]
    done = subprocess.run(
        [str(stack.binaries / "martlet"), "user", "role", f"id:{ids[0]}", "king"],
        env={**os.environ, **stack.environment}, capture_output=True, text=True)
    assert done.returncode == 64 and "authenticated, administrator" in done.stderr
