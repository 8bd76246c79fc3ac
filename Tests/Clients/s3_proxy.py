"""A proxy before an S3: it writes down what passes, can answer for it, and can be away."""

import hashlib
import re
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Callable
from urllib.parse import urlsplit

import requests

from stack import free_ports

FORWARD_SECONDS_MAX = 60


@dataclass
class Passed:
    method: str
    target: str  # As it stood in the request's line.
    headers: dict[str, str]
    sha256: str  # Of the body.


class Proxy:
    """Requests reach the S3 with the `Host` they came with: it is signed."""

    def __init__(self, upstream: str):
        self.upstream = upstream
        self.passed: list[Passed] = []
        # Given method and target; a status to answer with instead of asking, or None.
        self.refuse: Callable[[str, str], int | None] = lambda method, target: None
        self.server: ThreadingHTTPServer | None = None
        (self.port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self.port}"
        self.back()

    def back(self) -> None:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                proxy.answer(self)

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer

            def log_message(self, *_: object) -> None:
                """Nothing: the tests look at `passed`."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False

            def handle_error(self, *_: object) -> None:
                """A client that leaves is what some tests are about."""

        self.server = Server(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def away(self) -> None:
        """Nobody listens any more, as on a machine whose server has ended."""
        assert self.server
        self.server.shutdown()
        self.server.server_close()
        self.server = None

    def answer(self, asked: BaseHTTPRequestHandler) -> None:
        if not self.server:  # A kept connection of before.
            asked.close_connection = True
            asked.connection.close()
            return
        body = asked.rfile.read(int(asked.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in asked.headers.items()}
        self.passed.append(Passed(asked.command, asked.path, headers, hashlib.sha256(body).hexdigest()))
        status = self.refuse(asked.command, asked.path)
        if status:
            self.send(asked, status, {}, b"<Error><Code>SlowDown</Code></Error>")
            return
        # Sent as it came: `requests` would mend the target's spelling, and the signature is about that.
        url = urlsplit(self.upstream)
        prepared = requests.Request(asked.command, f"{self.upstream}/", data=body, headers=headers).prepare()
        prepared.url = f"http://{url.netloc}{asked.path}"
        with requests.Session() as session:
            session.trust_env = False
            got = session.send(prepared, timeout=FORWARD_SECONDS_MAX, stream=True, allow_redirects=False)
            content = b"" if asked.command == "HEAD" else got.raw.read(decode_content=False)
        # moto begins every upload in parts in 2010, and a sweep would end those that are under way.
        now = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
        content = re.sub(rb"(?<=<Initiated>)[^<]*", now.encode(), content)
        kept = {k: v for k, v in got.headers.items() if k.lower() not in ("connection", "transfer-encoding", "date")}
        self.send(asked, got.status_code, kept, content)

    @staticmethod
    def send(asked: BaseHTTPRequestHandler, status: int, headers: dict[str, str], content: bytes) -> None:
        asked.send_response(status)
        for name, value in headers.items():
            if name.lower() != "content-length" or asked.command == "HEAD":
                asked.send_header(name, value)
        if asked.command != "HEAD":
            asked.send_header("Content-Length", str(len(content)))
        asked.end_headers()
        if asked.command != "HEAD":
            asked.wfile.write(content)
