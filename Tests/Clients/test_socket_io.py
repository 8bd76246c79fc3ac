"""Socket.IO by python-socketio: alone, through the front door without stickiness, and while processes are killed."""

import asyncio
import re
import time
from typing import Callable, Iterator

import pytest
import requests

from chat import Chat
from conftest import Accepted
from engine import Engine, by_hand
from people import Person
from stack import Process, Stack
from talker import Talker
from waiting import until

AT_ONCE_SECONDS = 20  # Half a poll would be more; two cores are shared.
TALKERS_MAX = 16  # Of two people; the chat takes 20 connections of each.
POLLING, WEBSOCKET = ["polling"], ["websocket"]


@pytest.fixture
def talk(stack: Stack) -> Iterator[Callable[..., Talker]]:
    """Connects by the front door, or to one of the chats (0 or 1); all are closed after the test."""
    talkers: list[Talker] = []

    def connect(
        somebody: Person, transports: list[str] | None = None, number: int | None = None, reconnects: bool = False
    ) -> Talker:
        talkers.append(Talker(somebody.jwt, reconnects))
        talkers[-1].connect(stack.base if number is None else stack.chat_bases[number], transports)
        return talkers[-1]

    yield connect
    for each in talkers:
        each.close()


def only_room(talker: Talker) -> str:
    """The wire name of the talker's one room."""
    rooms = talker.rooms(lambda rooms: len(rooms) == 1)
    return rooms[0]["room"]


def converse(first: Talker, second: Talker, words: str) -> None:
    """Both open the room they share, and each hears what the other says."""
    room = only_room(first)
    assert only_room(second) == room
    first.join(room)
    second.join(room)
    for speaker, listener in ((first, second), (second, first)):
        text = f"{words} by {speaker.instance} {time.monotonic_ns()}"
        speaker.say(room, text)
        assert listener.texts(room, until=text)[-1]["text"] == text
        assert speaker.texts(room, until=text)[-1]["text"] == text


@pytest.mark.parametrize("transports", [POLLING, WEBSOCKET, None], ids=["polling", "websocket", "upgrade"])
def test_two_people_talk_through_the_front_door(
    accepted: Callable[[], Accepted], talk: Callable[..., Talker], transports: list[str] | None
) -> None:
    them = accepted()
    ada, rep = talk(them.applicant, transports), talk(them.representative, transports)
    converse(ada, rep, "Good morning €")
    expected = "polling" if transports == POLLING else "websocket"
    assert (ada.transport, rep.transport) == (expected, expected)


@pytest.mark.parametrize("transports", [POLLING, None], ids=["polling", "upgrade"])
def test_no_stickiness_is_needed(
    stack: Stack, accepted: Callable[[], Accepted], talk: Callable[..., Talker], transports: list[str] | None
) -> None:
    before = [passed_on(process) for process in stack.chats]
    them = accepted()
    talkers: list[Talker] = []
    while len(talkers) < 6 or len({each.instance for each in talkers}) < 2:
        assert len(talkers) < TALKERS_MAX, "the front door sends everybody to one chat"
        talkers.append(talk(them.applicant if len(talkers) % 2 else them.representative, transports))
        # Or clients that make an even number of requests each would all begin at the same chat.
        requests.get(f"{stack.base}/socket.io/?EIO=4", timeout=10)
    room = only_room(talkers[0])
    for each in talkers:
        each.join(room)
    for number, each in enumerate(talkers):
        each.say(room, f"word {number}")
    for each in talkers:
        all_there = {f"word {number}" for number in range(len(talkers))}
        value = each.wait("room_messages", lambda value: all_there <= {text["text"] for text in value["texts"]})
        assert len(value["texts"]) == len(talkers) + 1  # With the first, which says that there is a room.
    # Each has answered for the other.
    after = [passed_on(process) for process in stack.chats]
    assert all(now > then for now, then in zip(after, before)), (before, after)


def passed_on(chat: Process) -> int:
    """How many requests a chat has passed on, by its metrics."""
    metrics = requests.get(chat.ready.replace("/readyz", "/metrics"), timeout=10).text
    found = re.search(r"^martlet_chat_passed_on_total (\d+)$", metrics, re.MULTILINE)
    return int(found.group(1)) if found else 0


@pytest.mark.parametrize("transports", [POLLING, None], ids=["polling", "upgrade"])
def test_clients_come_back_after_a_chat_is_killed(
    stack: Stack, accepted: Callable[[], Accepted], talk: Callable[..., Talker], transports: list[str] | None
) -> None:
    them = accepted()
    ada, rep = talk(them.applicant, transports, reconnects=True), talk(them.representative, transports, reconnects=True)
    converse(ada, rep, "Before")
    killed = {"chat-1": stack.chats[0], "chat-2": stack.chats[1]}[ada.instance]
    lost = ada.client.eio.sid
    killed.kill()
    begun = time.monotonic()
    ada.wait("disconnect")
    # At once: not when a ping is missed, 45 seconds later.
    assert time.monotonic() - begun < 40
    until(lambda: ada.client.connected and ada.client.eio.sid != lost, "the client is back")
    answer = requests.get(f"{stack.base}/socket.io/?EIO=4&transport=polling&sid={lost}", timeout=15)
    assert (answer.status_code, answer.json()["code"]) == (400, 1)
    until(lambda: front_door_knows(stack), "the front door knows that the chat is away")
    until(lambda: rep.client.connected, "the other is there, too")
    settled(ada, rep)
    converse(ada, rep, "While one is away")
    killed.restart()


@pytest.mark.parametrize("upgrades", [False, True], ids=["polling", "websocket"])
def test_what_another_chat_passes_on_ends_at_once_when_the_owner_is_killed(stack: Stack, upgrades: bool) -> None:
    async def test(owner: Engine) -> None:
        other = Engine(stack.chat_bases[1], owner.http)
        session = await owner.open()
        assert session.sid.startswith("chat-1.")
        session.engine = other
        await session.said("40/random,")
        assert (await session.poll()).text == '44/random,{"message":"Invalid namespace"}'
        if upgrades:
            socket = await session.socket()
            await socket.send("2probe")
            assert await socket.next() == "3probe"
            assert (await session.poll()).text == "6"
            await socket.send("5")
            await socket.send("40/random,")
            assert await socket.next() == '44/random,{"message":"Invalid namespace"}'
            stack.chats[0].kill()
            assert await asyncio.wait_for(socket.closed(), AT_ONCE_SECONDS) == []
        else:
            pending = await session.begin_poll()
            stack.chats[0].kill()
            answer = await asyncio.wait_for(pending, AT_ONCE_SECONDS)
            assert answer.error == {"code": 1, "message": "Session ID unknown"}
        assert (await asyncio.wait_for(session.poll(), AT_ONCE_SECONDS)).error["code"] == 1

    try:
        by_hand(stack.chat_bases[0], test)
    finally:
        stack.chats[0].restart()


def front_door_knows(stack: Stack) -> bool:
    """Whether no POST goes to a dead chat, where it is lost: the front door looks every second who is there."""
    url = f"{stack.base}/socket.io/?EIO=4&transport=polling&sid=nobody"
    return all(requests.post(url, "2", timeout=15).status_code == 400 for _ in range(4))


def settled(*talkers: Talker) -> None:
    """What came before the reconnect is not to be taken for what comes after."""
    for each in talkers:
        each.ask("exit_room", {"room": "a_0_b"})
        last = [value for name, value in each.events if name == "messages"][-1:]
        each.events = [("messages", value) for value in last]


def test_clients_come_back_after_the_front_door_restarts(
    stack: Stack, accepted: Callable[[], Accepted], talk: Callable[..., Talker]
) -> None:
    them = accepted()
    ada = talk(them.applicant, POLLING, reconnects=True)
    rep = talk(them.representative, None, reconnects=True)
    converse(ada, rep, "Before")
    stack.proxy.stop()
    for each in (ada, rep):
        each.wait("disconnect")
    stack.proxy.restart()
    for each in (ada, rep):
        each.wait("connect")
        until(lambda: each.client.connected, "the client is back")
    settled(ada, rep)
    converse(ada, rep, "After")


def test_a_bad_token_is_refused_within_a_second(stack: Stack) -> None:
    for token in ("", "x", "a.b.c"):
        for transports in (POLLING, WEBSOCKET):
            talker = Talker(token)
            talker.begin(stack.base, transports)
            assert talker.wait("connect_error", seconds=AT_ONCE_SECONDS) == ({"message": "Not authorized"},)


def test_a_room_is_its_members_own(
    accepted: Callable[[], Accepted], person: Callable[[str], Person], talk: Callable[..., Talker]
) -> None:
    them = accepted()
    ada, stranger = talk(them.applicant, WEBSOCKET), talk(person("eve"), WEBSOCKET)
    assert stranger.rooms() == []
    room = only_room(ada)
    for act, more in (("join_room", {}), ("send_message", {"text": "I listen"})):
        stranger.client.emit(act, {"room": room, **more})
        assert stranger.wait("room_error") == {"room": room, "message": "Not your room."}
    ada.join(room)
    ada.say(room, "private")
    assert [text["text"] for text in ada.texts(room, until="private")] == ["Application accepted", "private"]
    # An answer to a later question proves that nothing else was on its way.
    assert stranger.ask("exit_room", {"room": room}) == {"ok": True}
    assert [event for event in stranger.events if event[0] == "room_messages"] == []


def test_a_message_of_the_native_protocol_arrives_and_the_other_way_round(
    stack: Stack, accepted: Callable[[], Accepted], talk: Callable[..., Talker], chat: Callable[..., Chat]
) -> None:
    them = accepted()
    # On different instances.
    app, native = talk(them.applicant, None, number=0), chat(them.representative, 1)
    room = only_room(app)
    app.join(room)
    native.say(them.room, "1", "from the native side")
    texts = app.texts(room, until="from the native side")
    assert texts[-1]["source"] == them.representative.id and isinstance(texts[-1]["id"], int)
    app.say(room, "from the app")
    seen = native.wait("message", room=them.room, body="from the app")
    assert seen["sender"] == them.applicant.id


def test_the_list_of_rooms_is_what_the_app_decodes_and_follows_what_happens(
    accepted: Callable[[], Accepted], talk: Callable[..., Talker]
) -> None:
    them = accepted()
    ada, rep = talk(them.applicant), talk(them.representative)
    (row,) = ada.rooms(lambda rooms: len(rooms) == 1)
    assert isinstance(row["id"], int) and len(row["room"].split("_")) >= 3
    (text,) = row["texts"]
    assert set(text) >= {"id", "source", "text"}
    assert (type(text["id"]), text["source"], text["text"]) == (int, 0, "Application accepted")
    assert {"createdAt", "updatedAt"} <= set(row)
    rep.say(row["room"], "Welcome")
    (row,) = ada.rooms(lambda rooms: any(each["text"] == "Welcome" for each in rooms[0]["texts"]))
    assert row["texts"][-1]["source"] == them.representative.id
    # A second acceptance is a second room, without a new connection.
    posting = them.representative.publish("Another one")["id"]
    them.representative.decide(them.applicant.apply(posting)["id"], "accepted")
    assert len(ada.rooms(lambda rooms: len(rooms) == 2)) == 2
