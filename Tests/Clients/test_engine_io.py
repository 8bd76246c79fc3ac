"""The cases of engine.io-protocol's own test-suite (v4), each told again with aiohttp.

They run against one chat with the times of that suite (300 and 200 ms); those in which time plays no part also through
the front door, where every request of a session may reach another instance.
"""

import json
import socket
from typing import Any, Callable
from urllib.parse import urlsplit

import pytest
import requests

from engine import SEPARATOR, Answer, Engine, by_hand
from stack import Stack
from waiting import until

UNKNOWN_SESSION = {"code": 1, "message": "Session ID unknown"}


@pytest.fixture(params=["one chat", "front door"])
def base(request: pytest.FixtureRequest, stack: Stack) -> str:
    return stack.base if request.param == "front door" else stack.chat_bases[0]


def invalid(namespace: str) -> str:
    """What a namespace is answered that does not exist: our server has no echo."""
    return f'44/{namespace},{{"message":"Invalid namespace"}}'


# Handshake, polling.


def test_polling_should_successfully_open_a_session(hasty_chat: str) -> None:
    async def test(engine: Engine) -> None:
        answer = await engine.ask("GET", {})
        assert answer.status == 200 and answer.text[0] == "0"
        assert answer.type.lower().replace(" ", "") == "text/plain;charset=utf-8"
        opened = json.loads(answer.text[1:])
        assert set(opened) == {"sid", "upgrades", "pingInterval", "pingTimeout", "maxPayload"}
        assert isinstance(opened["sid"], str) and opened["upgrades"] == ["websocket"]
        assert (opened["pingInterval"], opened["pingTimeout"], opened["maxPayload"]) == (300, 200, 1_000_000)

    by_hand(hasty_chat, test)


@pytest.mark.parametrize("query", [{}, {"EIO": "abc"}, {"EIO": "3"}, {"EIO": ""}])
def test_polling_should_fail_with_an_invalid_EIO(base: str, query: dict[str, str]) -> None:
    async def test(engine: Engine) -> None:
        answer = await engine.ask("GET", {"transport": "polling", **query}, whole=True)
        assert answer.error == {"code": 5, "message": "Unsupported protocol version"}

    by_hand(base, test)


@pytest.mark.parametrize("query", [{}, {"transport": "abc"}, {"transport": ""}])
def test_polling_should_fail_with_an_invalid_transport(base: str, query: dict[str, str]) -> None:
    async def test(engine: Engine) -> None:
        answer = await engine.ask("GET", {"EIO": "4", **query}, whole=True)
        assert answer.error == {"code": 0, "message": "Transport unknown"}

    by_hand(base, test)


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_polling_should_fail_with_an_invalid_request_method(base: str, method: str) -> None:
    async def test(engine: Engine) -> None:
        assert (await engine.ask(method, {}, "")).error == {"code": 2, "message": "Bad handshake method"}

    by_hand(base, test)


@pytest.mark.parametrize(
    "sid", ["abc", "chat-1.0.abc", "chat-2.1.abc", "nobody.0.abc", "chat-1.999.abc", ".0.a", "a b.0.c"])
def test_polling_should_fail_with_an_unknown_session(base: str, sid: str) -> None:
    async def test(engine: Engine) -> None:
        assert (await engine.ask("GET", {"sid": sid})).error == UNKNOWN_SESSION
        assert (await engine.ask("POST", {"sid": sid}, "2")).error == UNKNOWN_SESSION
        assert await engine.refused_socket({"EIO": "4", "transport": "websocket", "sid": sid}) == 400

    by_hand(base, test)


# Handshake, WebSocket.


def test_websocket_should_successfully_open_a_session(hasty_chat: str) -> None:
    async def test(engine: Engine) -> None:
        _, opened = await engine.opened_socket()
        assert set(opened) == {"sid", "upgrades", "pingInterval", "pingTimeout", "maxPayload"}
        assert isinstance(opened["sid"], str) and opened["upgrades"] == []
        assert (opened["pingInterval"], opened["pingTimeout"], opened["maxPayload"]) == (300, 200, 1_000_000)

    by_hand(hasty_chat, test)


@pytest.mark.parametrize("query", [{"transport": "websocket"}, {"transport": "websocket", "EIO": "abc"}])
def test_websocket_should_fail_with_an_invalid_EIO(base: str, query: dict[str, str]) -> None:
    async def test(engine: Engine) -> None:
        assert await engine.refused_socket(query) == 400

    by_hand(base, test)


@pytest.mark.parametrize("query", [{"EIO": "4"}, {"EIO": "4", "transport": "abc"}])
def test_websocket_should_fail_with_an_invalid_transport(base: str, query: dict[str, str]) -> None:
    async def test(engine: Engine) -> None:
        assert await engine.refused_socket(query) == 400

    by_hand(base, test)


# Messages, polling.


def test_polling_should_send_and_receive_one_text_packet(base: str) -> None:
    async def test(engine: Engine) -> None:
        session = await engine.open()
        await session.said("40/random,")
        assert (await session.poll()).text == invalid("random")

    by_hand(base, test)


def test_polling_should_send_and_receive_several_text_packets(base: str) -> None:
    async def test(engine: Engine) -> None:
        session = await engine.open()
        await session.said(SEPARATOR.join(["40/one,", "40/two,", "40/drei €,"]))
        assert (await session.packets()) == [invalid("one"), invalid("two"), invalid("drei €")]

    by_hand(base, test)


def test_polling_should_take_text_and_binary_packets(base: str, token: str) -> None:
    async def test(engine: Engine) -> None:
        session = await engine.connected(token)
        await session.said(SEPARATOR.join(['451-7["baz",{"_placeholder":true,"num":0}]', "bAQIDBA=="]))
        assert (await session.packets())[-1].startswith("437[")

    by_hand(base, test)


@pytest.mark.parametrize("body", ["abc", "", "8", "4", f"40/a,{SEPARATOR}", "b@@", "0{}"])
def test_polling_should_close_the_session_upon_an_invalid_packet(base: str, body: str) -> None:
    async def test(engine: Engine) -> None:
        session = await engine.open()
        answer = await session.post(body)
        # An empty message is a packet of Engine.IO and none of Socket.IO, which closes, too.
        assert answer.status == (200 if body == "4" else 400), answer
        polled = await session.poll()
        assert polled.status == 400 or polled.text == "1", polled
        assert (await session.poll()).error == UNKNOWN_SESSION

    by_hand(base, test)


def test_polling_should_close_the_session_upon_duplicate_polls(base: str) -> None:
    async def test(engine: Engine) -> None:
        session = await engine.open()
        first, second = await session.begin_poll(), await session.begin_poll()
        answers: list[Answer] = [await first, await second]
        # Which of the two came first is the network's affair.
        assert sorted((each.status, each.text if each.status == 200 else "") for each in answers) == [
            (200, "1"), (400, ""),
        ]
        assert (await session.poll()).error == UNKNOWN_SESSION

    by_hand(base, test)


def test_polling_should_refuse_more_than_it_said_it_takes(base: str) -> None:
    async def test(engine: Engine) -> None:
        session = await engine.open()
        await session.said("40/" + "a" * 100 + ",")
        answer = await session.post("4" + "a" * session.handshake["maxPayload"])
        assert answer.status == 413, answer.status

    by_hand(base, test)


def test_a_post_that_is_refused_is_read_to_its_end(stack: Stack) -> None:
    """A proxy that is still sending would meet a closed connection, and not see the answer."""
    base = stack.chat_bases[0]
    opened = requests.get(f"{base}/socket.io/?EIO=4&transport=polling", timeout=10)
    path = f"/socket.io/?EIO=4&transport=polling&sid={json.loads(opened.text[1:])['sid']}"
    with socket.create_connection(("127.0.0.1", urlsplit(base).port), timeout=10) as client:
        client.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {3 << 20}\r\n\r\n".encode())
        answer = client.recv(1000)
        assert answer.startswith(b"HTTP/1.1 413 ") and b"connection: close" not in answer.lower()
        client.sendall(b"a" * (3 << 20) + b"GET /_health HTTP/1.1\r\nHost: x\r\n\r\n")
        until(lambda: b"HTTP/1.1 204 " in client.recv(1000), "the connection serves on")


# Messages, WebSocket.


def test_websocket_should_send_and_receive_a_text_packet(base: str) -> None:
    async def test(engine: Engine) -> None:
        socket, _ = await engine.opened_socket()
        await socket.send("40/random,")
        assert await socket.next() == invalid("random")

    by_hand(base, test)


def test_websocket_should_take_a_binary_packet(base: str, token: str) -> None:
    async def test(engine: Engine) -> None:
        socket = await engine.connected_socket(token)
        await socket.send('451-7["baz",{"_placeholder":true,"num":0}]')
        await socket.send(b"\x01\x02\x03\x04")
        answer = await socket.next()
        assert isinstance(answer, str) and answer.startswith("437["), answer

    by_hand(base, test)


@pytest.mark.parametrize("packet", ["abc", "", "8", b"\x01"])
def test_websocket_should_close_the_session_upon_an_invalid_packet(base: str, packet: Any) -> None:
    async def test(engine: Engine) -> None:
        socket, _ = await engine.opened_socket()
        await socket.send(packet)
        assert await socket.closed() == []

    by_hand(base, test)


# Heartbeat.


def test_polling_should_send_ping_and_take_pong_three_times(pinging_chat: str) -> None:
    async def test(engine: Engine) -> None:
        session = await engine.open()
        for _ in range(3):
            assert (await session.poll()).text == "2"
            await session.said("3")

    by_hand(pinging_chat, test)


def test_polling_should_close_the_session_upon_ping_timeout(hasty_chat: str) -> None:
    async def test(engine: Engine) -> None:
        session = await engine.open()
        # The ping; as no pong comes the next poll is told of the end. Who is too late for either finds no session.
        told = []
        while (answer := await session.poll()).status == 200:
            told.append(answer.text)
        assert told in (["2", "1"], ["2"], ["1"], []), told
        assert answer.error == UNKNOWN_SESSION

    by_hand(hasty_chat, test)


def test_websocket_should_send_ping_and_take_pong_three_times(pinging_chat: str) -> None:
    async def test(engine: Engine) -> None:
        socket, _ = await engine.opened_socket()
        for _ in range(3):
            assert await socket.next() == "2"
            await socket.send("3")

    by_hand(pinging_chat, test)


def test_websocket_should_close_the_session_upon_ping_timeout(hasty_chat: str) -> None:
    async def test(engine: Engine) -> None:
        socket, _ = await engine.opened_socket()
        assert await socket.closed() == ["2"]

    by_hand(hasty_chat, test)


# Close.


def test_polling_should_close_the_session(base: str) -> None:
    async def test(engine: Engine) -> None:
        session = await engine.open()
        pending = await session.begin_poll()
        await session.said("1")
        answer = await pending
        assert (answer.status, answer.text) == (200, "6"), answer
        assert (await session.poll()).error == UNKNOWN_SESSION

    by_hand(base, test)


def test_websocket_should_close_the_session(base: str) -> None:
    async def test(engine: Engine) -> None:
        socket, _ = await engine.opened_socket()
        await socket.send("1")
        assert await socket.closed() == []

    by_hand(base, test)


# Upgrade.


def upgraded(test: Callable) -> Callable:
    """A test of a session that has gone over to a WebSocket."""

    async def run(engine: Engine) -> None:
        session = await engine.open()
        pending = await session.begin_poll()
        socket = await session.socket()
        await socket.send("2probe")
        assert await socket.next() == "3probe"
        assert (await pending).text == "6"
        await socket.send("5")
        await socket.send("40/random,")
        assert await socket.next() == invalid("random")
        await test(session, socket)

    return run


def test_should_successfully_upgrade_from_polling_to_websocket(base: str) -> None:
    async def test(session: Any, socket: Any) -> None:
        await socket.send("40/" + "a" * 100 + ",")
        assert await socket.next() == invalid("a" * 100)

    by_hand(base, upgraded(test))


def test_should_ignore_http_requests_with_the_same_sid_after_upgrade(base: str) -> None:
    async def test(session: Any, socket: Any) -> None:
        assert (await session.poll()).status == 400
        assert (await session.post("40/late,")).status == 400
        await socket.send("40/still,")
        assert await socket.next() == invalid("still")

    by_hand(base, upgraded(test))


def test_should_ignore_a_websocket_with_the_same_sid_after_upgrade(base: str) -> None:
    async def test(session: Any, socket: Any) -> None:
        second = await session.socket()
        assert await second.closed() == []
        await socket.send("40/still,")
        assert await socket.next() == invalid("still")

    by_hand(base, upgraded(test))


def test_a_probe_that_ends_leaves_the_session_to_polling(base: str) -> None:
    async def test(engine: Engine) -> None:
        session = await engine.open()
        socket = await session.socket()
        await socket.send("2probe")
        assert await socket.next() == "3probe"
        await socket.raw.close()
        await session.said("40/random,")
        # A poll may find the end of the trial before anything else.
        packets: list[str] = []
        while invalid("random") not in packets:
            packets += await session.packets()
        assert set(packets) <= {"6", invalid("random")}

    by_hand(base, test)
