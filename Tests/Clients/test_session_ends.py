"""What ends somebody's right to listen ends it within a second, on every chat, with NOTIFY and without."""

import time
from typing import Callable, Iterator

import pytest

from chat import Chat
from conftest import Accepted
from people import Person
from stack import Stack
from talker import Talker
from waiting import AT_ONCE_SECONDS_MAX


@pytest.fixture(scope="module")
def silent_chat(stack: Stack) -> Iterator[str]:
    """A chat that is woken by nobody."""
    process, base = stack.extra_chat("silent", {"MARTLET_NOTIFY": "off"})
    process.restart()
    yield f"ws{base[4:]}/chat"
    process.stop()


@pytest.fixture
def urls(stack: Stack, silent_chat: str) -> list[str]:
    return [*stack.chat_urls, silent_chat]


def everywhere(urls: list[str], token: str) -> list[Chat]:
    return [Chat.hello(url, token) for url in urls]


def all_closed(sockets: list[Chat], since: float) -> None:
    """Each is closed, and in time. The libraries' threads take the closes while the others are waited for."""
    assert [each.closed() for each in sockets] == [4401] * len(sockets)
    assert time.monotonic() - since < AT_ONCE_SECONDS_MAX


def still_open(sockets: list[Chat], room: int) -> None:
    for each in sockets:
        each.send({"type": "history", "room": room, "limit": 1})
        assert each.wait("history", room=room)["messages"]
        each.close()


def log_out(stack: Stack, somebody: Person) -> None:
    somebody.ask("POST", "/api/auth/logout", 204)


def change_password(stack: Stack, somebody: Person) -> None:
    new = somebody.password + "x"
    body = {"currentPassword": somebody.password, "password": new, "passwordConfirmation": new}
    somebody.ask("POST", "/api/auth/change-password", 200, json=body)


def block(stack: Stack, somebody: Person) -> None:
    stack.martlet("user", "block", somebody.email)


@pytest.mark.parametrize("end", [log_out, change_password, block])
def test_a_session_that_ends_closes_its_sockets_everywhere(
    stack: Stack, urls: list[str], accepted: Callable[[], Accepted], end: Callable[[Stack, Person], None]
) -> None:
    them = accepted()
    sockets, others = everywhere(urls, them.applicant.jwt), everywhere(urls, them.representative.jwt)
    talkers = [Talker(them.applicant.jwt) for _ in urls]
    for talker, url in zip(talkers, urls):
        talker.connect(url.replace("ws", "http", 1).removesuffix("/chat"), ["websocket"])
    end(stack, them.applicant)
    ended = time.monotonic()
    for talker in talkers:
        talker.wait("disconnect", seconds=AT_ONCE_SECONDS_MAX)
    all_closed(sockets, ended)
    still_open(others, them.room)
    # The token opens nothing any more, anywhere.
    for url in urls:
        refused = Chat(url)
        begun = time.monotonic()
        refused.send({"type": "hello", "token": them.applicant.jwt})
        assert refused.closed() == 4401 and time.monotonic() - begun < AT_ONCE_SECONDS_MAX


def test_a_refreshed_session_keeps_its_sockets(
    stack: Stack, urls: list[str], accepted: Callable[[], Accepted]
) -> None:
    them = accepted()
    program = Person(stack.base, "", "", "")
    names = {"identifier": them.applicant.email, "password": them.applicant.password}
    first = program.ask("POST", "/api/auth/token", 200, json=names)
    sockets = everywhere(urls, first["access_token"])
    refresh = {"grant_type": "refresh_token", "refresh_token": first["refresh_token"]}
    second = program.ask("POST", "/api/auth/token", 200, json=refresh)
    # The end of another session of the same person has gone round on every chat before we look.
    ending = everywhere(urls, them.applicant.jwt)
    log_out(stack, them.applicant)
    all_closed(ending, time.monotonic())
    still_open(sockets, them.room)
    still_open(everywhere(urls, second["access_token"]), them.room)


def test_who_is_removed_from_a_room_hears_nothing_more_of_it(
    stack: Stack, urls: list[str], accepted: Callable[[], Accepted]
) -> None:
    them = accepted()
    sockets, others = everywhere(urls, them.applicant.jwt), everywhere(urls, them.representative.jwt)
    # As docs/chat-protocol.md says: whoever changes members notes it in the same transaction.
    stack.sql(
        f"DELETE FROM room_members WHERE room_id = {them.room} AND user_id = {them.applicant.id}; "
        f"INSERT INTO room_changes (room_ids) VALUES (ARRAY[{-them.room}::bigint])")
    begun = time.monotonic()
    for each in sockets:
        each.wait("left", room=them.room)
    assert time.monotonic() - begun < AT_ONCE_SECONDS_MAX
    for number, each in enumerate(others):
        each.say(them.room, f"after-{number}", "Are you there?")
        each.wait("ack", id=f"after-{number}")
    for each in sockets:
        # The answer comes after what would have been delivered before.
        each.say(them.room, "late", "Let me in")
        assert each.wait("error", id="late")["code"] == "forbidden"
        assert [frame for frame in each.frames if frame["type"] == "message"] == []
        each.close()
    # Back again: the room and all that was said come by themselves.
    sockets = everywhere(urls, them.applicant.jwt)
    assert all(each.ready["rooms"] == [] for each in sockets)
    stack.sql(
        f"INSERT INTO room_members (room_id, user_id) VALUES ({them.room}, {them.applicant.id}); "
        f"INSERT INTO room_changes (room_ids) VALUES (ARRAY[{-them.room}::bigint])")
    begun = time.monotonic()
    for each in sockets:
        assert each.wait("room")["room"]["id"] == them.room
    assert time.monotonic() - begun < AT_ONCE_SECONDS_MAX
    for each in sockets:
        bodies = [each.wait("message", room=them.room)["body"] for _ in range(1 + len(others))]
        assert bodies[1:] == ["Are you there?"] * len(others)
        each.close()
    for each in others:
        each.close()
