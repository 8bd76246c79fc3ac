"""The cases of socket.io-protocol's own test-suite (v5) against what our server can show, and what the Swift client
sends (contracts/02 §4), byte by byte."""

import json
from typing import Any

import pytest

from engine import SEPARATOR, Engine, Socket, by_hand
from stack import Stack
from test_engine_io import UNKNOWN_SESSION


@pytest.fixture(params=["one chat", "front door"])
def base(request: pytest.FixtureRequest, stack: Stack) -> str:
    return stack.base if request.param == "front door" else stack.chat_bases[0]


async def connect(socket: Socket, packet: str) -> dict[str, Any]:
    await socket.send(packet)
    answer = await socket.next()
    assert isinstance(answer, str) and answer.startswith("40{"), answer
    return json.loads(answer[2:])


# Connecting.


def test_should_allow_connection_to_the_root_namespace(base: str, token: str) -> None:
    async def test(engine: Engine) -> None:
        socket, opened = await engine.opened_socket()
        answer = await connect(socket, "40" + json.dumps({"token": token}))
        assert set(answer) == {"sid"} and isinstance(answer["sid"], str) and answer["sid"] != opened["sid"]

    by_hand(base, test)


def test_should_allow_connection_with_more_in_the_payload(base: str, token: str) -> None:
    async def test(engine: Engine) -> None:
        socket, _ = await engine.opened_socket()
        await connect(socket, "40" + json.dumps({"more": [1, {"a": None}], "token": token, "€": "/"}))

    by_hand(base, test)


@pytest.mark.parametrize("payload", ["", "{}", '{"token":"x"}', '{"token":7}', '{"token":null}'])
def test_should_refuse_a_connection_without_a_good_token(base: str, payload: str) -> None:
    async def test(engine: Engine) -> None:
        socket, _ = await engine.opened_socket()
        await socket.send("40" + payload)
        assert await socket.next() == '44{"message":"Not authorized"}'

    by_hand(base, test)


@pytest.mark.parametrize("packet", ["40/random,", "40/random", '40/random,{"token":"x"}'])
def test_should_disallow_connection_to_an_unknown_namespace(base: str, packet: str) -> None:
    async def test(engine: Engine) -> None:
        socket, _ = await engine.opened_socket()
        await socket.send(packet)
        assert await socket.next() == '44/random,{"message":"Invalid namespace"}'

    by_hand(base, test)


@pytest.mark.parametrize("packet", ["4abc", "40[]", '40"x"', "40{", '42["early"]', "41", "48", "4"])
def test_should_disallow_connection_with_an_invalid_handshake(base: str, packet: str) -> None:
    async def test(engine: Engine) -> None:
        socket, _ = await engine.opened_socket()
        await socket.send(packet)
        assert await socket.closed() == []

    by_hand(base, test)


def test_should_close_the_connection_if_no_handshake_is_received(hasty_chat: str) -> None:
    async def test(engine: Engine) -> None:
        socket, _ = await engine.opened_socket()
        frames: list[str] = []
        while (frame := await socket.raw.receive(30)).type == frame.type.TEXT:
            frames.append(frame.data)
            await socket.send("3")
        assert set(frames) <= {"2"}

    by_hand(hasty_chat, test)


# Disconnecting.


def test_should_disconnect_from_the_root_namespace_and_then_only_ping(pinging_chat: str, token: str) -> None:
    async def test(engine: Engine) -> None:
        socket = await engine.connected_socket(token)
        await socket.send("41")
        assert await socket.next() == "2"

    by_hand(pinging_chat, test)


def test_should_let_a_client_come_back_to_the_namespace_it_left(base: str, token: str) -> None:
    async def test(engine: Engine) -> None:
        socket, _ = await engine.opened_socket()
        first = await connect(socket, "40" + json.dumps({"token": token}))
        await socket.send("41")
        await socket.send("40" + json.dumps({"token": token}))
        frames: list[Any] = []
        while not any(frame.startswith("40") for frame in frames):
            frames.append(await socket.next())
        assert json.loads(frames[-1][2:])["sid"] != first["sid"]

    by_hand(base, test)


# Messages.


def test_should_acknowledge_an_event(base: str, token: str) -> None:
    async def test(engine: Engine) -> None:
        socket = await engine.connected_socket(token)
        await socket.send('4256["join_room",{"room":"no_such_room"}]')
        assert await socket.next() == '4356[{"error":"Not your room."}]'
        await socket.send('42123456789012["exit_room",{"room":"no_such_room"}]')
        assert await socket.next() == '43123456789012[{"ok":true}]'

    by_hand(base, test)


def test_should_acknowledge_a_binary_event_by_saying_no(base: str, token: str) -> None:
    async def test(engine: Engine) -> None:
        socket = await engine.connected_socket(token)
        placeholders = '{"_placeholder":true,"num":0},{"a":{"_placeholder":true,"num":1}}'
        await socket.send(f'452-789["send_message",{placeholders}]')
        await socket.send(b"\x01\x02\x03")
        await socket.send(b"")
        answer = await socket.next()
        assert isinstance(answer, str) and answer.startswith('43789[{"error":'), answer
        await socket.send('427["exit_room",{"room":"a_1_b"}]')
        assert await socket.next() == '437[{"ok":true}]'

    by_hand(base, test)


MALFORMED = [
    "4abc", "48[]", "42{}", "42", "42[]", '42[7.5,"x"]', '42abc["x"]', '42["x"', '42["connect"]', '451["x"]',
    '45-["x"]', '4599-["x"]', '451-["x",{"_placeholder":true,"num":1}]', "43[]", "43abc[]", "437{}", "46[]",
    "41{}", '42/elsewhere,["x"]', '42' + "9" * 120 + '["x"]', '42["x",' + "[" * 100 + "]" * 100 + "]",
]


@pytest.mark.parametrize("packet", MALFORMED)
def test_should_close_the_connection_upon_a_malformed_packet(stack: Stack, token: str, packet: str) -> None:
    async def test(engine: Engine) -> None:
        socket = await engine.connected_socket(token)
        await socket.send(packet)
        assert await socket.closed() == []

    by_hand(stack.chat_bases[0], test)


@pytest.mark.parametrize("frames", [[b"\x01"], ['451-["x",{"_placeholder":true,"num":0}]', '42["y"]']])
def test_should_close_the_connection_upon_attachments_out_of_place(stack: Stack, token: str, frames: list) -> None:
    async def test(engine: Engine) -> None:
        socket = await engine.connected_socket(token)
        for frame in frames:
            await socket.send(frame)
        assert await socket.closed() == []

    by_hand(stack.chat_bases[0], test)


# What socket.io-client-swift 16 sends.

SWIFT = {"Content-Type": "text/plain; charset=UTF-8"}


class Swift:
    """A session as that client asks for it; the parameters in its order."""

    def __init__(self, engine: Engine, sid: str):
        self.engine = engine
        self.sid = sid
        self.packets: list[str] = []

    @classmethod
    async def open(cls, engine: Engine) -> "Swift":
        answer = await engine.ask("GET", {"transport": "polling", "b64": "1", "EIO": "4"}, whole=True)
        assert answer.status == 200 and answer.text[0] == "0"
        return cls(engine, json.loads(answer.text[1:])["sid"])

    async def ask(self, method: str, body: str | None = None) -> str:
        query = {"transport": "polling", "b64": "1", "EIO": "4", "sid": self.sid}
        answer = await self.engine.ask(method, query, body, whole=True, headers=SWIFT if body else None)
        assert answer.status == 200, answer
        return answer.text

    async def post(self, *packets: str) -> None:
        assert await self.ask("POST", SEPARATOR.join(packets)) == "ok"

    async def next(self, start: str) -> str:
        """The next packet that begins so; those before it are passed over."""
        while True:
            while self.packets:
                packet = self.packets.pop(0)
                if packet.startswith(start):
                    return packet
            self.packets = (await self.ask("GET")).split(SEPARATOR)


def test_the_swift_client_connects_by_polling_and_leaves(base: str, token: str) -> None:
    async def test(engine: Engine) -> None:
        swift = await Swift.open(engine)
        escaped = json.dumps({"token": token}).replace("/", "\\/").replace(" ", "")
        await swift.post(f"40/,{escaped}")
        assert "sid" in json.loads((await swift.next("40"))[2:])
        name, argument = json.loads((await swift.next("42"))[2:])
        assert name == "messages" and json.loads(argument) == {"payload": []}
        await swift.post('42["join_room",{"room":"a_1\\/2_b"}]', "3")
        assert (await swift.next("42")).startswith('42["room_error"')
        await swift.post("41/,", "1")
        answer = await engine.ask("GET", {"sid": swift.sid})
        # The answer to a poll that may have been under way, or none any more.
        assert answer.text == "6" or answer.error == UNKNOWN_SESSION

    by_hand(base, test)


def test_the_swift_client_connects_without_a_payload_and_is_refused(base: str) -> None:
    async def test(engine: Engine) -> None:
        swift = await Swift.open(engine)
        await swift.post("40/,")
        assert await swift.next("") == '44{"message":"Not authorized"}'

    by_hand(base, test)


def test_the_swift_client_upgrades_while_it_goes_on_polling(base: str, token: str) -> None:
    async def test(engine: Engine) -> None:
        swift = await Swift.open(engine)
        # It opens the WebSocket beside its next poll, and probes while the CONNECT is on its way.
        offer = "permessage-deflate; client_max_window_bits; server_max_window_bits=15"
        url = engine.url({"transport": "websocket", "EIO": "4", "sid": swift.sid})
        socket = Socket(await engine.http.ws_connect(url, headers={"Sec-WebSocket-Extensions": offer}))
        await socket.send("2probe")
        await swift.post("40/," + json.dumps({"token": token}))
        assert await socket.next() == "3probe"
        # It says 5 when its poll has ended; whatever came by it counts.
        packets = (await swift.ask("GET")).split(SEPARATOR)
        await socket.send("5")
        while not any(packet.startswith("42") for packet in packets):
            frame = await socket.next()
            assert isinstance(frame, str)
            packets.append(frame)
        assert [packet[:2] for packet in packets if packet != "6"] == ["40", "42"], packets
        await socket.send("41/,")
        await socket.send("1")
        await socket.closed()

    by_hand(base, test)


def test_the_swift_client_of_version_two_is_told_that_it_is_too_old(base: str) -> None:
    async def test(engine: Engine) -> None:
        answer = await engine.ask("GET", {"transport": "polling", "b64": "1", "EIO": "3"}, whole=True)
        assert answer.error == {"code": 5, "message": "Unsupported protocol version"}

    by_hand(base, test)
