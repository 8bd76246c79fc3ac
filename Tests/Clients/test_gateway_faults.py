"""What the gateway does when its surroundings fail. A gateway of these tests' own, behind a relay to PostgreSQL."""

import os
import socket
import subprocess
import time
import uuid
from pathlib import Path
from typing import Iterator
from urllib.parse import urlsplit

import pytest
import requests

from pdf import curriculum_vitae
from relay import Relay
from stack import ROOT, Process, Stack, free_ports
from waiting import until

# The gateway gives up on a silent server within 5 seconds, and on its end within 10; the rest is for a busy machine.
ANSWER_SECONDS_MAX = 40
EXIT_SECONDS_MAX = 50
PASSWORD = "correct horse battery"


class Gateway:
    def __init__(self, stack: Stack, folder: Path):
        url = urlsplit(stack.database_url)
        self.relay = Relay(url.hostname or "127.0.0.1", url.port or 5432)
        port, admin = free_ports(2)
        self.port = port
        self.base = f"http://127.0.0.1:{port}"
        self.admin = f"http://127.0.0.1:{admin}"
        # The workers', who look into what is uploaded before it is answered.
        self.store = Path(stack.environment["MARTLET_STORE"])
        person = f"{url.username or 'postgres'}:{url.password or ''}"
        environment = {
            **stack.environment,
            "MARTLET_DATABASE_URL": f"postgres://{person}@127.0.0.1:{self.relay.port}{url.path}?sslmode=disable",
            "MARTLET_HTTP_ADDRESS": f"127.0.0.1:{port}",
            "MARTLET_ADMIN_ADDRESS": f"127.0.0.1:{admin}",
            "MARTLET_REGISTRATIONS_PER_MINUTE": "10000",
        }
        program = str(stack.binaries / "martlet-gateway")
        self.process = Process("gateway-faults", [program], environment, f"{self.admin}/readyz", folder)

    def register(self) -> requests.Response:
        name = "p" + uuid.uuid4().hex[:12]
        body = {"username": name, "email": f"{name}@example.org", "password": PASSWORD}
        return requests.post(f"{self.base}/api/auth/local/register", json=body, timeout=90)

    def get(self, path: str) -> requests.Response:
        return requests.get(self.base + path, timeout=90)

    def send(self, data: bytes) -> bytes:
        """Bytes as they are, the sending side closed after them; the whole answer."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=ANSWER_SECONDS_MAX) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            while piece := connection.recv(65536):
                answer += piece
            return answer


@pytest.fixture
def gateway(stack: Stack, tmp_path: Path) -> Iterator[Gateway]:
    own = Gateway(stack, tmp_path)
    try:
        yield own
    finally:
        if own.process.child and own.process.child.poll() is None:
            own.process.kill()
        own.relay.close()


def is_unavailable(answer: requests.Response) -> bool:
    error = answer.json()["error"]
    return answer.status_code == error["status"] == 503 and int(answer.headers["Retry-After"]) > 0


def test_a_silent_database_is_answered_for_and_comes_back(gateway: Gateway) -> None:
    gateway.process.restart()
    token = gateway.register().json()["jwt"]
    gateway.relay.silent()
    for ask in (lambda: gateway.get("/api/jobs"), gateway.register):
        begin = time.monotonic()
        assert is_unavailable(ask())
        assert time.monotonic() - begin < ANSWER_SECONDS_MAX
    gateway.relay.back()
    until(lambda: gateway.get("/api/jobs").status_code == 200, "postings are served again", ANSWER_SECONDS_MAX)
    headers = {"Authorization": f"Bearer {token}"}
    me = f"{gateway.base}/api/users/me"
    until(lambda: requests.get(me, headers=headers, timeout=90).status_code == 200, "the token is good again", 20)


def test_it_starts_without_its_database_and_stops_without_it(gateway: Gateway) -> None:
    gateway.relay.away()
    gateway.process.start()

    def lives() -> bool:
        try:
            return requests.get(f"{gateway.admin}/livez", timeout=10).status_code == 200
        except requests.RequestException:
            return False

    until(lives, "the gateway lives", ANSWER_SECONDS_MAX)
    assert requests.get(f"{gateway.admin}/readyz", timeout=30).status_code == 503
    assert is_unavailable(gateway.get("/api/jobs"))
    gateway.relay.back()
    gateway.process.wait_ready()
    assert gateway.get("/api/jobs").status_code == 200
    gateway.relay.away()
    begin = time.monotonic()
    assert gateway.process.stop() == 0
    assert time.monotonic() - begin < EXIT_SECONDS_MAX


def test_what_was_acknowledged_survives_a_kill(stack: Stack, gateway: Gateway) -> None:
    gateway.process.restart()
    acknowledged = [gateway.register().json()["user"]["username"] for _ in range(5)]
    gateway.process.kill()
    gateway.process.restart()
    names = ",".join(f"'{name}'" for name in acknowledged)
    assert stack.sql(f"SELECT count(*) FROM users WHERE username IN ({names})") == str(len(acknowledged))


def test_what_is_no_request_is_refused_in_the_shape_of_every_error(gateway: Gateway) -> None:
    gateway.process.restart()
    for request in (
        b"\x16\x03\x01\x02\x00\r\n\r\n",
        b"GET /api/jobs HTTP/1.1\r\n\r\n",
        b"GET /api/jobs/%00 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /api/jobs/%ff HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /uploads/%2e%2e/x HTTP/1.1\r\nHost: a\r\n\r\n",
        b"BREW /api/jobs HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
        b"POST /api/auth/local HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ):
        answer = gateway.send(request)
        assert b'{"data":null,"error":{"status":' in answer, request[:60]
        assert answer.split(b" ", 2)[1] in (b"400", b"414", b"501"), request[:60]


def test_an_upload_that_is_cut_off_leaves_nothing_in_the_store(gateway: Gateway) -> None:
    gateway.process.restart()
    token = gateway.register().json()["jwt"]
    body = (
        b'--B\r\nContent-Disposition: form-data; name="files"; filename="a.pdf"\r\n\r\n'
        + curriculum_vitae("swift " * 200)
        + b"\r\n--B--\r\n"
    )
    head = (
        f"POST /api/upload HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: multipart/form-data; boundary=B\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode()
    files = lambda: {path for path in gateway.store.rglob("*") if path.is_file()}  # noqa: E731
    before = files()
    for cut in (0, 10, 90, 1000, len(body) - 3):
        assert gateway.send(head + body[:cut]).startswith(b"HTTP/1.1 400 ")
    until(lambda: files() <= before, "the store has nothing new", ANSWER_SECONDS_MAX)
    assert gateway.send(head + body).startswith(b"HTTP/1.1 200 ")
    assert files() - before


def test_every_mistake_of_the_configuration_is_told_at_once(stack: Stack) -> None:
    wrong = {
        "MARTLET_DATABASE_URL": "mysql://someone:hidden-word@host",
        "MARTLET_SECRET": "short",
        "MARTLET_STORE": "/proc/nothing",
        "MARTLET_HTTP_ADDRESS": "localhost:99999",
        "MARTLET_LOOPS": "0",
        "MARTLET_NOTIFY": "perhaps",
        "MARTLET_TRUSTED_PROXIES": "everyone",
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MARTLET_")}
    program = str(stack.binaries / "martlet-gateway")
    done = subprocess.run([program], env={**kept, **wrong}, cwd=ROOT, capture_output=True, text=True, timeout=90)
    assert done.returncode == 78
    for name in wrong:
        assert f"- {name}" in done.stderr
    assert "hidden-word" not in done.stdout + done.stderr
