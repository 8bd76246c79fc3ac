"""The front doors of docs/operations/proxies.md, as the page has them, before real services and before a witness.

Caddy stands before the services in all other tests, and here before the witness."""

import json
import os
import re
import shutil
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Callable, Iterator
from urllib.parse import urlsplit

import pytest
import requests
import yaml

from chat import Chat
from conftest import Accepted
from people import Person, new_word
from stack import ROOT, Process, Stack, free_ports
from talker import Talker
from waiting import until

PAGE = ROOT / "docs/operations/proxies.md"
WITNESS_SECONDS_MAX = 60
CROWD = 100  # Requests that are under way at once.
BODY_BYTES_MAX = 52 << 20  # The doors'.
GATEWAYS, CHATS = ("10.0.0.11", "10.0.0.12"), ("10.0.0.21", "10.0.0.22")
NGINX = """
pid {folder}/nginx.pid;
error_log stderr warn;
daemon off;
events {{}}
http {{
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{text}
}}
"""


def configuration(kind: str, front: int, gateways: list[str], chats: list[str]) -> str:
    """The page's block, with the addresses of this machine instead of its examples'."""
    (text,) = re.findall(rf"^```{kind}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    for example, real in zip((*GATEWAYS, *CHATS), (*gateways, *chats)):
        assert text.count(f"{example}:8080") == 1
        text = text.replace(f"{example}:8080", real)
    return re.sub(r"(listen |bind :)80\b", rf"\g<1>{front}", text).replace(f"bind :{front}", f"bind 127.0.0.1:{front}")


@contextmanager
def door(kind: str, folder: Path, gateways: list[str], chats: list[str], more: str = "") -> Iterator[str]:
    """A proxy that runs, Caddy with more in its site; its base URL."""
    (front,) = free_ports(1)
    path = folder / f"{kind}.conf"
    if kind == "caddy":
        text = (ROOT / "ops/Caddyfile").read_text()
        bind = "\tbind {$MARTLET_BIND:0.0.0.0}\n"
        assert text.count(bind) == 1
        path.write_text(text.replace(bind, bind + more))
    else:
        text = configuration(kind, front, gateways, chats)
        path.write_text(NGINX.format(folder=folder, text=text) if kind == "nginx" else text)
    arguments = {
        "nginx": ["-c", str(path), "-e", "stderr"],
        "haproxy": ["-db", "-f", str(path)],
        "caddy": ["run", "--config", str(path), "--adapter", "caddyfile"],
    }
    environment = {
        "MARTLET_SITE": f":{front}", "MARTLET_BIND": "127.0.0.1",
        "MARTLET_GATEWAYS": " ".join(gateways), "MARTLET_CHATS": " ".join(chats),
        "XDG_CONFIG_HOME": str(folder), "XDG_DATA_HOME": str(folder),
    }
    program = shutil.which(kind, path=f"{os.environ['PATH']}:/usr/sbin") or kind
    base = f"http://127.0.0.1:{front}"
    process = Process(kind, [program, *arguments[kind]], environment, f"{base}/openapi.json", folder)
    process.restart()
    try:
        yield base
    finally:
        process.kill()


@pytest.fixture(scope="module", params=["nginx", "haproxy"])
def base(request: pytest.FixtureRequest, stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Before the stack's services."""

    def places(urls: list[str]) -> list[str]:
        return [urlsplit(url).netloc for url in urls]

    folder = tmp_path_factory.mktemp(request.param)
    with door(request.param, folder, places(stack.gateway_urls), places(stack.chat_bases)) as base:
        yield base


def test_the_api_and_uploads_go_through(base: str) -> None:
    representative, ada = Person.register(base, "rep"), Person.register(base, "ada")
    representative.create_company(f"Company {new_word()}")
    posting = representative.publish(f"Engineer {new_word()}")["id"]
    application = ada.apply(posting)
    url = base + ada.application(application["id"])["cv"]["url"]
    until(lambda: requests.get(url, timeout=10).status_code == 200, "the CV is served")
    # A body that is too big is refused by the gateway itself, which says so, and not by the door.
    much = {"files": ("much.png", b"\x89PNG" + bytes(40 << 20), "image/png")}
    refused = ada.http.post(f"{base}/api/upload", files=much, timeout=30)
    assert refused.status_code == 413 and refused.json()["error"]["status"] == 413, refused.text[:200]
    # And so by a chat, while the door still sends.
    opened = requests.get(f"{base}/socket.io/?EIO=4&transport=polling", timeout=10).text[1:]
    poll = f"{base}/socket.io/?EIO=4&transport=polling&sid={json.loads(opened)['sid']}"
    assert requests.post(poll, b"4" + bytes(4 << 20), timeout=30).status_code == 413


def test_native_chat_goes_through(base: str, accepted: Callable[[], Accepted]) -> None:
    them = accepted()
    url = f"ws{base[4:]}/chat"
    one, two = Chat.hello(url, them.applicant.jwt), Chat.hello(url, them.representative.jwt)
    one.say(them.room, "x", "Hello by another door")
    seq = one.wait("ack", id="x")["seq"]
    assert two.wait("message", room=them.room, seq=seq)["body"] == "Hello by another door"
    one.close()
    two.close()


@pytest.mark.parametrize("transports", [["polling"], ["websocket"], None], ids=["polling", "websocket", "upgrade"])
def test_socket_io_goes_through_without_stickiness(
    base: str, accepted: Callable[[], Accepted], transports: list[str] | None
) -> None:
    them = accepted()
    talkers = [Talker(each.jwt) for each in (them.applicant, them.representative)]
    try:
        for talker in talkers:
            talker.connect(base, transports)
        first, second = talkers
        room = first.rooms(lambda rooms: len(rooms) == 1)[0]["room"]
        first.join(room)
        second.join(room)
        first.say(room, "Hello by Socket.IO")
        assert second.texts(room, until="Hello by Socket.IO")[-1]["text"] == "Hello by Socket.IO"
        assert first.transport == ("polling" if transports == ["polling"] else "websocket")
    finally:
        for talker in talkers:
            talker.close()


def test_a_lie_about_host_and_address_changes_no_answer(base: str, person: Callable[[str], Person]) -> None:
    ada = person("ada")
    lies = dict.fromkeys(("Host", "X-Forwarded-Host"), "evil.example")
    lies |= {"X-Real-IP": "6.6.6.6", "Forwarded": "for=6.6.6.6"}
    for path in ("/api/users/me?populate=profile", "/api/jobs", "/openapi.json"):
        honest = ada.http.get(base + path, timeout=10)
        lying = ada.http.get(base + path, headers=lies, timeout=10)
        assert (lying.status_code, lying.content) == (honest.status_code, honest.content)


class Witness(BaseHTTPRequestHandler):
    """A service that tells what it was sent, and when the first of a body came."""

    protocol_version = "HTTP/1.1"
    body_began = threading.Event()
    answer_began = threading.Event()
    together = threading.Barrier(CROWD)
    connections = 0

    def setup(self) -> None:
        Witness.connections += 1
        super().setup()

    def do_GET(self) -> None:  # noqa: N802, the library's name
        if self.path == "/api/slowly":
            self.send_response(200)
            self.send_header("Content-Length", "8")
            self.end_headers()
            self.wfile.write(b"half")
            self.answer_began.wait(WITNESS_SECONDS_MAX)
            self.wfile.write(b"half")
            return
        if self.path == "/api/together":
            self.together.wait(WITNESS_SECONDS_MAX)
        names = ("X-Forwarded-For", "X-Real-IP", "Forwarded")
        told = "" if self.path == "/_health" else " ".join(str(self.headers.get_all(name)) for name in names)
        self.send_response(200 if told else 204)
        if told:
            self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told.encode())

    def do_POST(self) -> None:  # noqa: N802, the library's name
        if self.headers["Transfer-Encoding"]:
            self.body_began.set()
            while self.rfile.read(1 << 16):
                pass
            self.close_connection = True  # It was cut off.
            return
        first = self.rfile.read(min(4, int(self.headers["Content-Length"])))
        self.body_began.set()
        self.rfile.read(int(self.headers["Content-Length"]) - len(first))
        self.do_GET()

    def log_message(self, *arguments: object) -> None:
        pass


class Deaf(BaseHTTPRequestHandler):
    """A service that is well and ends whenever it is asked for anything, without an answer, as if it were killed."""

    protocol_version = "HTTP/1.1"
    methods: list[str] = []

    def do_GET(self) -> None:  # noqa: N802, the library's name
        if self.path == "/_health":
            self.send_response(204)
            self.end_headers()
        else:
            self.methods.append(self.command)
            self.close_connection = True

    do_POST = do_GET  # noqa: N815, the library's name

    def log_message(self, *arguments: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = CROWD  # A crowd knocks at once.


@contextmanager
def serving(kind: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = Server(("127.0.0.1", 0), kind)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("kind", ["nginx", "haproxy", "caddy"])
def test_what_was_sent_to_one_that_ended_is_tried_again_only_if_it_may_be(kind: str, tmp_path: Path) -> None:
    Deaf.methods = []
    with serving(Witness) as here, serving(Deaf) as deaf, door(kind, tmp_path, [here, deaf], [here, deaf]) as base:
        def asked(method: str) -> list[int]:
            answers = [requests.request(method, f"{base}/api/jobs", timeout=10).status_code for _ in range(6)]
            until(lambda: requests.get(f"{base}/api/jobs", timeout=10).status_code == 200, "it is well")
            return answers

        assert asked("GET") == [200] * 6 and "GET" in Deaf.methods
        Deaf.methods = []
        # nginx keeps away from one that failed for a while.
        posted = asked("POST") + (asked("POST") if kind == "nginx" else [])
        lost = len([status for status in posted if status != 200])
        assert Deaf.methods.count("POST") == lost, "nothing is done twice"
        assert lost > 0 or kind == "nginx"


@pytest.mark.parametrize("kind", ["nginx", "haproxy", "caddy"])
def test_the_door_passes_answers_on_as_they_come_and_keeps_connections(kind: str, tmp_path: Path) -> None:
    with serving(Witness) as here, door(kind, tmp_path, [here] * 2, [here] * 2) as base, requests.Session() as http:
        Witness.answer_began.clear()
        with http.get(f"{base}/api/slowly", stream=True, timeout=WITNESS_SECONDS_MAX) as answer:
            pieces = answer.iter_content(4)
            assert next(pieces) == b"half"  # While the service waits for us to have it.
            Witness.answer_began.set()
            assert next(pieces) == b"half"
        # Its own looks come over connections of their own, one a second at most of each of four.
        Witness.connections, began = 0, time.monotonic()
        for _ in range(60):
            assert http.get(f"{base}/api/jobs", timeout=10).status_code == 200
        looks = 4 * (time.monotonic() - began + 1)
        assert Witness.connections <= looks + 6


@pytest.mark.parametrize("kind", ["nginx", "haproxy", "caddy"])
def test_the_door_keeps_as_many_connections_as_it_needed_at_once(kind: str, tmp_path: Path) -> None:
    Witness.together.reset()
    crowd = ThreadPoolExecutor(CROWD)
    with crowd, serving(Witness) as here, door(kind, tmp_path, [here] * 2, [here] * 2) as base:
        def ask(http: requests.Session) -> int:
            return http.get(f"{base}/api/together", timeout=WITNESS_SECONDS_MAX).status_code

        people = [requests.Session() for _ in range(CROWD)]
        assert set(crowd.map(ask, people)) == {200}
        Witness.connections, began = 0, time.monotonic()
        for _ in range(3):
            assert set(crowd.map(ask, people)) == {200}
        # Its own looks, as above. Were none kept, there would be three hundred.
        assert Witness.connections <= 4 * (time.monotonic() - began + 1) + CROWD / 2


@pytest.mark.parametrize("kind", ["nginx", "haproxy", "caddy"])
def test_the_door_writes_forwarded_headers_anew_streams_bodies_and_passes_a_dead_one_by(
    kind: str, tmp_path: Path
) -> None:
    dead = [f"127.0.0.1:{port}" for port in free_ports(2)]
    with serving(Witness) as here, door(kind, tmp_path, [here, dead[0]], [here, dead[1]]) as base:
        lies = {"X-Forwarded-For": "6.6.6.6, 7.7.7.7", "X-Real-IP": "6.6.6.6", "Forwarded": "for=6.6.6.6"}
        for path in ("/api/jobs", "/chat", "/socket.io/") * 2:
            told = requests.get(base + path, headers=lies, timeout=10)
            assert told.text == "['127.0.0.1'] None None"
        # The second half is sent when the service has the first: a door that gathers the body waits for ever.
        Witness.body_began.clear()
        with socket.create_connection(("127.0.0.1", urlsplit(base).port), timeout=WITNESS_SECONDS_MAX) as client:
            client.sendall(b"POST /api/upload HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\nhalf")
            assert Witness.body_began.wait(WITNESS_SECONDS_MAX), "the body was held back"
            client.sendall(b"half")
            assert client.recv(100).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("kind", ["nginx", "haproxy", "caddy"])
def test_the_door_refuses_bodies_that_are_larger_than_any_service_takes(kind: str, tmp_path: Path) -> None:
    sources = [ROOT / f"Sources/GatewayApp/{name}.swift" for name in ("UploadRoutes", "FormReader")]
    files, beside = (re.findall(r"let (?:overheadB|b)ytesMax = (\d+) << 20", each.read_text()) for each in sources)
    assert int(files[0]) + int(beside[0]) < BODY_BYTES_MAX >> 20, "the services take as much"
    with serving(Witness) as here, door(kind, tmp_path, [here] * 2, [here] * 2) as base:
        def refused(head: str, pieces: list[bytes]) -> None:
            with socket.create_connection(("127.0.0.1", urlsplit(base).port), timeout=WITNESS_SECONDS_MAX) as client:
                client.sendall(f"POST /api/upload HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n".encode())
                for piece in pieces:
                    client.sendall(piece)
                said = b""
                while b"\r\n\r\n" not in said or not said.endswith(b"}}}"):
                    more = client.recv(1 << 16)
                    assert more, said
                    said += more
            status, _, body = said.decode().partition("\r\n\r\n")
            assert status.startswith("HTTP/1.1 413 ") and "application/json" in status, status
            error = {"status": 413, "name": "PayloadTooLargeError", "message": "The request body is too large."}
            assert json.loads(body) == {"data": None, "error": {**error, "details": {}}}

        Witness.body_began.clear()
        refused(f"Content-Length: {BODY_BYTES_MAX + 1}", [])
        assert not Witness.body_began.is_set(), "a service was asked"
        if kind != "haproxy":
            chunk = b"100000\r\n" + bytes(1 << 20) + b"\r\n"
            refused("Transfer-Encoding: chunked", [chunk] * (BODY_BYTES_MAX >> 20) + [b"1\r\nx\r\n0\r\n\r\n"])
            assert Witness.body_began.is_set(), "it was gathered"
        taken = requests.post(f"{base}/api/upload", bytes(BODY_BYTES_MAX), timeout=WITNESS_SECONDS_MAX)
        assert taken.status_code == 200, taken.text


def test_a_body_that_broke_on_its_way_is_the_clients_fault_and_a_service_that_is_away_is_not(tmp_path: Path) -> None:
    chunked, trailers = "Transfer-Encoding: chunked\r\n\r\n", "".join(f"X-{n}: {'a' * 1000}\r\n" for n in range(8))
    broken = [f"{chunked}{rest}" for rest in (
        "zz\r\nhello\r\n", "-5\r\nhello\r\n", f"{'f' * 17}\r\nhello\r\n", f"5;{'a' * 8000}\r\nhello\r\n",
        "5\nhello\n0\n\n", "5\r\nhelloXX\r\n", f"0\r\n{trailers}\r\n", "0\r\nno colon\r\n\r\n",
    )]
    cut = [f"{chunked}50\r\nhello", f"{chunked}5\r\nhello\r\n", "Content-Length: 50\r\n\r\nhello"]
    sound = "Content-Length: 5\r\n\r\nhello"

    def status(base: str, path: str, body: str) -> int:
        with socket.create_connection(("127.0.0.1", urlsplit(base).port), timeout=WITNESS_SECONDS_MAX) as client:
            client.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\n{body}".encode())
            if body in cut:
                client.shutdown(socket.SHUT_WR)
            answer = HTTPResponse(client)
            answer.begin()
            said = json.loads(answer.read()) if answer.status != 200 else {"error": {"status": 200}}
            assert said["error"]["status"] == answer.status
            return answer.status

    (dead,) = free_ports(1)
    with serving(Witness) as here, serving(Deaf) as deaf:
        for away in (deaf, f"127.0.0.1:{dead}"):
            with door("caddy", tmp_path, [here], [away]) as base:
                assert [status(base, "/api/jobs", each) for each in broken + cut] == [400] * 11
                assert (status(base, "/api/jobs", sound), status(base, "/chat", sound)) == (200, 503)
                assert away == deaf or status(base, "/chat", broken[0]) == 503


def test_traefiks_files_hold_together() -> None:
    """It is not run: what they name is there, and the times are what the services need."""
    blocks = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    static, dynamic = (yaml.safe_load(block) for block in blocks)
    http = dynamic["http"]
    for router in http["routers"].values():
        assert router["service"] in http["services"] and set(router["middlewares"]) == set(http["middlewares"])
    for name, places in {"gateways": GATEWAYS, "chats": CHATS}.items():
        balancer = http["services"][name]["loadBalancer"]
        assert [each["url"] for each in balancer["servers"]] == [f"http://{place}:8080" for place in places]
        assert balancer["healthCheck"]["path"] == "/_health" and "sticky" not in balancer
    assert static["serversTransport"]["forwardingTimeouts"]["idleConnTimeout"] == "50s"
    assert "accessLog" not in static and "forwardedHeaders" not in static["entryPoints"]["web"]
