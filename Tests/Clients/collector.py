"""A receiver of OTLP/HTTP traces: decodes strictly by OpenTelemetry's own definitions, and can misbehave."""

import base64
import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from waiting import until

IDS = {"traceId": 32, "spanId": 16, "parentSpanId": 16}


def bytes_of_ids(value: Any) -> Any:
    """OTLP's JSON has ids in hexadecimal where protobuf's has base64: the one difference between the two."""
    if isinstance(value, list):
        return [bytes_of_ids(each) for each in value]
    if not isinstance(value, dict):
        return value
    for name, length in IDS.items():
        if name in value:
            assert re.fullmatch(f"[0-9a-f]{{{length}}}", value[name]), value
    return {
        name: base64.b64encode(bytes.fromhex(each)).decode() if name in IDS else bytes_of_ids(each)
        for name, each in value.items()
    }


class Received:
    """A span with what a test asks of it."""

    def __init__(self, span: Span, service: str):
        self.service = service
        self.name = span.name
        self.kind = Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_").lower()
        self.trace, self.id, self.parent = span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex()
        self.began, self.ended = span.start_time_unix_nano, span.end_time_unix_nano
        self.is_error = span.status.code == 2
        self.links = [link.trace_id.hex() for link in span.links]
        self.attributes = {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes}
        assert any(span.trace_id) and any(span.span_id) and span.name and self.kind != "unspecified", span
        assert 0 < self.began <= self.ended < self.began + 600 * 10**9, span

    def __repr__(self) -> str:
        return f"{self.service}: {self.name} ({self.kind}) {self.trace[:6]}/{self.id[:4]} < {self.parent[:4]}"


class Collector:
    """Listens until `stop`. `answer` is what it says: a status, headers and a body, or None to say nothing."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.times: list[float] = []
        self.headers: list[dict[str, str]] = []
        self.spans: list[Received] = []
        self.faults: list[str] = []
        self.answer: tuple[int, dict[str, str], bytes] | None = (200, {}, b"{}")
        self.released = threading.Event()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                # Before anybody is told that this came, and changes the answer for what comes next.
                answer = owner.answer
                owner.receive(self.path, dict(self.headers), body, answer)
                if answer is None:
                    owner.released.wait(60)
                    return
                status, headers, content = answer
                self.send_response(status)
                for name, value in {"Content-Length": str(len(content)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def receive(
        self, path: str, headers: dict[str, str], body: bytes, answer: tuple[int, dict[str, str], bytes] | None
    ) -> None:
        self.times.append(time.monotonic())
        self.bodies.append(body)
        self.headers.append(headers)
        try:
            assert path == "/v1/traces" and headers["Content-Type"] == "application/json", (path, headers)
            request = json_format.ParseDict(bytes_of_ids(json.loads(body)), ExportTraceServiceRequest())
            if not answer or answer[0] != 200:
                return
            for resource in request.resource_spans:
                known = {each.key: each.value.string_value for each in resource.resource.attributes}
                assert known["service.namespace"] == "martlet" and known["service.instance.id"], known
                for scope in resource.scope_spans:
                    self.spans += [Received(span, known["service.name"]) for span in scope.spans]
        except Exception as fault:  # Of a thread of its own: the test is told by `check`.
            self.faults.append(repr(fault))

    def find(self, name: str, **wanted: Any) -> list[Received]:
        """Spans of this name with these attributes of `Received`."""
        return [
            span for span in list(self.spans)
            if span.name == name and all(getattr(span, key) == value for key, value in wanted.items())
        ]

    def one(self, name: str, **wanted: Any) -> Received:
        return until(lambda: self.find(name, **wanted), f"a span {name} {wanted} comes")[0]

    def check(self) -> None:
        assert self.faults == []

    def stop(self) -> None:
        self.released.set()
        self.server.shutdown()
        self.server.server_close()
