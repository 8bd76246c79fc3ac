"""What docs/chat-protocol.md promises, against the real processes: its own client, changes, files, counts."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Callable, Iterator
from urllib.parse import urlsplit

import pytest
import requests

from chat import Chat
from images import png
from people import Person
from relay import Relay
from stack import ROOT, Stack
from waiting import until

NewPerson = Callable[[str], Person]


class Example:
    """The client of the documentation, as a process of its own."""

    def __init__(self, folder: Path, url: str, token: str, room: int):
        text = (ROOT / "docs/chat-protocol.md").read_text()
        (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        program = folder / "client.py"
        program.write_text(code)
        self.log = folder / "client.log"
        with self.log.open("wb") as log:
            self.child = subprocess.Popen(
                [sys.executable, str(program), url, token, str(room)], stdin=subprocess.PIPE, stdout=log, stderr=log,
                text=True)

    def say(self, line: str) -> None:
        assert self.child.stdin
        self.child.stdin.write(f"{line}\n")
        self.child.stdin.flush()

    def lines(self) -> list[list[str]]:
        """Room, seq, kind, target and words of all that was shown."""
        return [line.split(" ", 4) for line in self.log.read_text().splitlines()]

    def wait(self, words: str) -> None:
        until(lambda: any(line[-1] == words for line in self.lines()), f"{words} in {self.log.read_text()}")

    def close(self) -> None:
        self.child.kill()
        self.child.wait()


@pytest.fixture
def relay(stack: Stack) -> Iterator[Relay]:
    """Before the first chat."""
    where = urlsplit(stack.chat_bases[0])
    assert where.hostname and where.port
    relay = Relay(where.hostname, where.port)
    yield relay
    relay.close()


def test_the_client_of_the_documentation_loses_and_doubles_nothing(
    stack: Stack, accepted: Callable, chat: Callable[..., Chat], relay: Relay, tmp_path: Path
) -> None:
    them = accepted()
    other = chat(them.representative, 1)
    start = other.ready["rooms"][0]["last_seq"]
    example = Example(tmp_path, f"ws://127.0.0.1:{relay.port}/chat", them.applicant.jwt, them.room)
    try:
        example.say("first")
        example.wait("first")
        for cut in range(3):
            other.say(them.room, f"before-{cut}", f"before {cut}")
            example.wait(f"before {cut}")
            relay.away()
            example.say(f"mine {cut}")
            other.say(them.room, f"away-{cut}", f"away {cut}")
            other.wait("ack", id=f"away-{cut}")
            relay.back()
            example.wait(f"mine {cut}")
        target = other.wait("message", body="before 0")["seq"]
        other.send({"type": "edit", "room": them.room, "id": "e", "target": target, "body": "edited"})
        example.wait("edited")
        other.send({"type": "delete", "room": them.room, "id": "d", "target": target})
        last = other.wait("ack", id="d")["seq"]
        until(lambda: example.lines()[-1][1] == str(last), "the deletion is shown")
        assert [int(line[1]) for line in example.lines()] == list(range(start + 1, last + 1))
        assert example.lines()[-1][2:4] == ["delete", str(target)]
        stored = stack.sql(
            f"SELECT count(*), count(DISTINCT body) FROM messages WHERE room_id = {them.room} AND body LIKE 'mine %'")
        assert stored == "3\t3"
        # Signed out: it does not come back.
        them.applicant.ask("POST", "/api/auth/logout", 204)
        assert example.child.stdin
        example.child.stdin.close()
        assert example.child.wait(timeout=15) == 0
    finally:
        example.close()


def test_the_client_of_the_documentation_sends_a_crowd_of_acts_again_in_their_order(
    accepted: Callable, chat: Callable[..., Chat], relay: Relay, tmp_path: Path
) -> None:
    them, crowd = accepted(), 90  # Above the burst of a user.
    other = chat(them.representative, 1)
    example = Example(tmp_path, f"ws://127.0.0.1:{relay.port}/chat", them.applicant.jwt, them.room)
    try:
        example.say("here")
        example.wait("here")
        relay.away()
        for number in range(crowd):
            example.say(f"crowd {number}")
        relay.back()
        other.wait("message", body="crowd 0")
        example.say("and one more")
        other.wait("message", body="and one more")
        until(lambda: len(example.lines()) == crowd + 2, "all are shown")
        assert [line[-1] for line in example.lines()] == [
            "here", *(f"crowd {number}" for number in range(crowd)), "and one more"]
    finally:
        example.close()


def test_a_file_is_for_the_room_until_its_message_is_deleted(
    stack: Stack, accepted: Callable, person: NewPerson, chat: Callable[..., Chat]
) -> None:
    them, stranger = accepted(), person("eve")
    ada, representative, room = them.applicant, them.representative, them.room
    parts = [("files", ("Contract.png", png(60, 40), "image/png"))]
    file = ada.ask("POST", "/api/upload", 200, files=parts)[0]["id"]
    theirs = representative.ask("POST", "/api/upload", 200, files=parts)[0]["id"]
    path = f"/api/upload/files/{file}"
    representative.ask("GET", path, 404)

    one, two = chat(ada, 0), chat(representative, 1)
    one.send({"type": "send", "room": room, "id": "stolen", "media": theirs})
    assert one.wait("error", id="stolen")["code"] == "not_found"
    one.send({"type": "send", "room": room, "id": "file", "media": file})
    seq = one.wait("ack", id="file")["seq"]
    heard = two.wait("message", seq=seq)
    assert heard["media"] == file and heard["body"] == ""
    about = representative.get(path)
    assert about["name"] == "Contract.png"
    stranger.ask("GET", path, 404)
    until(lambda: representative.get(path)["url"], "the file has been looked at")
    url = stack.base + representative.get(path)["url"]
    assert requests.get(url, timeout=10).status_code == 200

    one.send({"type": "delete", "room": room, "id": "gone", "target": seq})
    one.wait("ack", id="gone")
    assert two.wait("message", target=seq)["kind"] == "delete"
    representative.ask("GET", path, 404)
    assert requests.get(url, timeout=10).status_code in (403, 404), "the address that was given out is worthless"
    assert ada.get(path)["id"] == file, "it is still its owner's"


def test_what_is_changed_on_one_instance_is_so_on_the_other(
    accepted: Callable, chat: Callable[..., Chat]
) -> None:
    them = accepted()
    one, two = chat(them.applicant, 0), chat(them.representative, 1)
    room = them.room
    one.say(room, "a", "Hallo")
    one.say(room, "b", "Secret")
    first, second = one.wait("ack", id="a")["seq"], one.wait("ack", id="b")["seq"]
    one.send({"type": "edit", "room": room, "id": "c", "target": first, "body": "Hello"})
    one.send({"type": "delete", "room": room, "id": "d", "target": second})
    last = one.wait("ack", id="d")["seq"]
    two.wait("message", seq=last)
    two.send({"type": "edit", "room": room, "id": "x", "target": first, "body": "Not mine"})
    assert two.wait("error", id="x")["code"] == "not_found"

    two.send({"type": "unread", "rooms": [room, room + 1_000_000]})
    assert two.wait("unread")["rooms"] == {str(room): 1}
    two.send({"type": "history", "room": room, "after": first - 1, "limit": 2})
    page = two.wait("history")
    assert [(each["seq"], each["body"], "edited" in each, each.get("deleted", False)) for each in page["messages"]] == [
        (first, "Hello", True, False), (second, "", False, True)]
    assert page["more"] is False
    same = them.representative.get(f"/api/rooms/{room}/messages?after={first - 1}&limit=1")
    assert [each["body"] for each in same["data"]] == ["Hello"] and same["meta"]["more"] is True
    them.representative.ask("GET", f"/api/rooms/{room}/messages?after=1&before=3", 400)
    # Who was away finds nothing of what was deleted.
    back = chat(them.representative, 1, {room: first - 1})
    assert [each["body"] for each in back.messages(room, 4)] == ["Hallo", "", "Hello", ""]
