"""Traces of the real processes, decoded by OpenTelemetry's own definitions."""

import os
import re
import secrets
import time
from typing import Callable, Iterator

import pytest
import requests

from chat import Chat
from collector import Collector, Received
from people import Person, new_word
from stack import ROOT, Process, Stack, free_ports
from waiting import until

ANSWER_SECONDS_MAX = 9  # A collector that says nothing is waited for for longer than that.
SETTINGS = {
    "OTEL_BSP_SCHEDULE_DELAY": "50",
    "OTEL_EXPORTER_OTLP_HEADERS": "x-key=open%20sesame",
    "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test",
}


class TracedStack(Stack):
    """A gateway, two chats and a worker that send their spans to a collector, and a mail catcher; no front door."""

    def __init__(self, folder, server_url: str, collector: Collector, **more: str):
        super().__init__(folder, server_url)
        self.processes = [self.mail, self.gateways[0], *self.chats, self.workers[0]]
        for process in self.processes[1:]:
            process.environment.update(SETTINGS, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, **more)
        # The mail server's address is told, and those of clients are not.
        worker = self.workers[0].environment
        worker["MARTLET_SMTP_URL"] = worker["MARTLET_SMTP_URL"].replace("127.0.0.1", "localhost")

    def start(self) -> None:
        self.create_database()
        for process in self.processes:
            process.start()
        for process in self.processes:
            process.wait_ready()


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    running = Collector()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory, collector: Collector) -> Iterator[TracedStack]:
    running = TracedStack(tmp_path_factory.mktemp("traced"), os.environ["MARTLET_TEST_DATABASE_URL"], collector)
    try:
        running.start()
        yield running
    finally:
        running.stop()
    collector.check()


@pytest.fixture
def person(traced: TracedStack) -> Callable[[str], Person]:
    return lambda name: Person.register(traced.gateway_urls[0], name)


def new_parent() -> tuple[str, str]:
    """A caller's traceparent, and the trace in it."""
    trace = secrets.token_hex(16)
    return f"00-{trace}-{secrets.token_hex(8)}-01", trace


def family(collector: Collector, trace: str) -> dict[str, Received]:
    return {span.id: span for span in collector.spans if span.trace == trace}


def test_a_request_is_one_trace_with_its_statements(
    traced: TracedStack, collector: Collector, person: Callable[[str], Person]
) -> None:
    ada = person("ada")
    parent, trace = new_parent()
    ada.ask("GET", "/api/users/me?populate=role", 200, headers={"traceparent": parent, "tracestate": "a=1"})
    request = collector.one("GET /api/users/me", trace=trace)
    assert request.parent == parent.split("-")[2] and request.kind == "server" and not request.is_error
    assert request.service == "martlet-gateway"
    assert request.attributes == {
        "http.request.method": "GET", "url.scheme": "http", "http.route": "/api/users/me",
        "url.path": "/api/users/me", "http.response.status_code": 200,
    }
    until(lambda: len(family(collector, trace)) > 1, "its statements come")
    for span in family(collector, trace).values():
        assert span is request or (span.parent == request.id and span.kind == "client"), span
        assert span is request or span.attributes["db.system.name"] == "postgresql"
        assert request.began <= span.began and span.ended <= request.ended
    assert collector.headers[0]["x-key"] == "open sesame"


def test_a_client_out_in_the_world_does_not_choose_the_trace(traced: TracedStack, collector: Collector) -> None:
    parent, trace = new_parent()
    headers = {"traceparent": parent, "X-Forwarded-For": "203.0.113.7"}
    requests.get(traced.gateway_urls[0] + "/api/jobs/999999", headers=headers, timeout=10)
    linked = until(lambda: [span for span in collector.spans if span.links == [trace]], "the request is linked")
    assert linked[0].trace != trace and linked[0].parent == "" and family(collector, trace) == {}
    assert linked[0].attributes["http.response.status_code"] == 404 and not linked[0].is_error


def test_a_posting_is_one_trace_from_its_publication_to_the_mail(
    traced: TracedStack, collector: Collector, person: Callable[[str], Person]
) -> None:
    ada, representative = person("ada"), person("rep")
    word = new_word()
    ada.ask("POST", "/api/alerts", 201, json={"data": {"name": "Engineers", "q": word, "cadence": "instant"}})
    representative.create_company(f"Company {word}")
    parent, trace = new_parent()
    representative.http.headers["traceparent"] = parent
    representative.publish(f"Swift {word} engineer")

    posted = collector.one("POST /api/jobs", trace=trace)
    matched = collector.one("process match_alerts", trace=trace)
    mailed = collector.one("process send_mail", trace=trace)
    assert matched.parent == posted.id and matched.kind == "consumer" and matched.service == "martlet-worker"
    assert mailed.parent == matched.id and mailed.attributes["messaging.destination.name"] == "send_mail"
    until(lambda: any(span.parent == matched.id and span.kind == "client" for span in collector.spans), "statements")
    sent = collector.one("SMTP send", trace=trace)
    # There are attempts without one where the mail server came up after the worker.
    attempt = collector.one("process send_mail", id=sent.parent)
    assert attempt.parent == matched.id and sent.kind == "client" and not attempt.is_error and not sent.is_error
    port = int(traced.workers[0].environment["MARTLET_SMTP_URL"].rpartition(":")[2])
    assert sent.attributes == {
        "network.protocol.name": "smtp", "server.address": "localhost", "server.port": port}


def test_an_upload_is_one_trace_with_its_processing(
    traced: TracedStack, collector: Collector, person: Callable[[str], Person]
) -> None:
    ada, representative = person("ada"), person("rep")
    representative.create_company(f"Company {new_word()}")
    posting = representative.publish(f"Engineer {new_word()}")["id"]
    parent, trace = new_parent()
    ada.http.headers["traceparent"] = parent
    ada.apply(posting)
    applied = collector.one("POST /api/applications", trace=trace)
    assert collector.one("process process_upload", trace=trace).parent == applied.id
    names = {span.name for span in family(collector, trace).values() if span.parent == applied.id}
    assert "COMMIT" in names, names


def talk(traced: TracedStack, person: Callable[[str], Person]) -> tuple[Chat, Chat, int]:
    """Two people of one room, each on a chat of their own."""
    ada, bob = person("ada"), person("bob")
    room = int(traced.sql("INSERT INTO rooms DEFAULT VALUES RETURNING id"))
    traced.sql(f"INSERT INTO room_members (room_id, user_id) VALUES ({room}, {ada.id}), ({room}, {bob.id})")
    one, two = (Chat.hello(url, who.jwt) for url, who in zip(traced.chat_urls, (ada, bob)))
    return one, two, room


def test_a_message_is_one_trace_from_its_sender_to_the_other_instance(
    traced: TracedStack, collector: Collector, person: Callable[[str], Person]
) -> None:
    one, two, room = talk(traced, person)
    before = {span.id for span in collector.find("send room")}
    one.say(room, "a", "hush")
    assert two.wait("message", room=room)["body"] == "hush"
    sent = until(lambda: [s for s in collector.find("send room") if s.id not in before], "the send is told")[0]
    assert sent.kind == "producer" and sent.attributes["martlet.message.outcome"] == "sent" and sent.parent == ""
    delivered = until(
        lambda: len(found := collector.find("deliver room", trace=sent.trace)) == 2 and found, "both deliver")
    assert all(span.parent == sent.id and span.kind == "consumer" for span in delivered)
    stored = collector.one("UPDATE rooms", trace=sent.trace)
    assert stored.parent == sent.id
    one.close()
    two.close()


def test_an_upgrade_is_a_request_too(
    traced: TracedStack, collector: Collector, person: Callable[[str], Person]
) -> None:
    Chat.hello(traced.chat_urls[0], person("ada").jwt).close()
    upgrade = collector.one("GET /chat", service="martlet-chat")
    assert upgrade.attributes["http.response.status_code"] == 101


def test_a_failure_is_an_error_and_its_log_names_the_trace(
    traced: TracedStack, collector: Collector, person: Callable[[str], Person]
) -> None:
    traced.sql("ALTER TABLE companies RENAME TO companies_away")
    try:
        parent, trace = new_parent()
        ada = person("ada")
        answer = ada.http.get(
            traced.gateway_urls[0] + "/api/companies/me", headers={"traceparent": parent}, timeout=10)
    finally:
        traced.sql("ALTER TABLE companies_away RENAME TO companies")
    assert answer.status_code == 500
    request = collector.one("GET /api/companies/me", trace=trace)
    assert request.is_error and request.attributes["error.type"] == "500"
    failed = until(
        lambda: [s for s in family(collector, trace).values() if s.parent == request.id and s.is_error], "a statement")
    assert failed[0].attributes["db.response.status_code"] == "42P01"
    log = traced.gateways[0].log.read_text()
    assert f'"trace_id":"{trace}","span_id":"{request.id}"' in log


def test_nothing_personal_leaves_the_house(
    traced: TracedStack, collector: Collector, person: Callable[[str], Person]
) -> None:
    ada = person("ada")
    base, secret = traced.gateway_urls[0], secrets.token_hex(8)
    ada.http.get(f"{base}/api/jobs/search?q={secret}", headers={"User-Agent": secret}, timeout=10)
    ada.http.get(f"{base}/unsubscribe/{secret}?token={secret}", timeout=10)
    ada.http.get(f"{base}/nothing/{ada.email}", timeout=10)
    ada.http.get(f"{base}/uploads/{secret}.pdf?t={secret}", timeout=10)
    one, two, room = talk(traced, person)
    one.say(room, secret, f"my number is {secret}")
    two.wait("message", room=room)
    one.close()
    two.close()
    seen = len(collector.bodies)
    ada.get("/api/users/me")
    until(lambda: len(collector.bodies) > seen, "the rest has been sent")
    sent = b"".join(collector.bodies).decode()
    for word in (secret, ada.username, ada.email, ada.password, ada.jwt, "@example.org", "Bearer", "python-requests",
                 "127.0.0.1", "populate", "?"):
        assert word not in sent, word
    assert not re.search(r"eyJ[A-Za-z0-9_-]{10}", sent), "a token"
    collector.check()


def metric(process: Process, name: str) -> int:
    page = requests.get(process.ready.replace("/readyz", "/metrics"), timeout=10).text
    return sum(int(line.split()[-1]) for line in page.splitlines() if line.startswith(name))


def outcome(word: str) -> str:
    return f'martlet_trace_spans_total{{outcome="{word}"}}'


@pytest.fixture
def lone(traced: TracedStack, tmp_path) -> Iterator[tuple[Collector, Callable[..., tuple[Process, str]]]]:
    """A collector of its own, and chats that send to it: what they answer shows that it harms nobody."""
    collector, made = Collector(), []

    def make(**more: str) -> tuple[Process, str]:
        settings = {**SETTINGS, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, **more}
        process, base = traced.extra_chat(f"lone-{secrets.token_hex(3)}", settings)
        made.append(process)
        process.restart()
        return process, base

    yield collector, make
    collector.answer = collector.answer or (503, {}, b"")
    collector.released.set()
    for process in made:
        if process.child and process.child.poll() is None:
            process.stop()
    collector.stop()


def ask(base: str, count: int) -> float:
    """Asks so often what costs nothing; the longest that an answer took."""
    slowest = 0.0
    for _ in range(count):
        began = time.monotonic()
        assert requests.get(f"{base}/nowhere", timeout=90).status_code == 404
        slowest = max(slowest, time.monotonic() - began)
    return slowest


def test_a_collector_that_says_nothing_costs_spans_and_nothing_else(lone) -> None:
    collector, make = lone
    collector.answer = None
    chat, base = make(OTEL_BSP_MAX_QUEUE_SIZE="20", OTEL_BSP_MAX_EXPORT_BATCH_SIZE="10")
    ask(base, 1)
    until(lambda: collector.bodies, "it has been asked")
    assert ask(base, 60) < ANSWER_SECONDS_MAX
    until(lambda: metric(chat, outcome("dropped")) > 0, "what finds no room is dropped")
    assert metric(chat, "martlet_trace_spans_waiting ") == 20
    assert chat.stop() == 0


@pytest.mark.parametrize("answer", [(500, {}, b"oops"), (400, {}, b"{}"), (302, {"Location": "http://x/"}, b"")])
def test_a_collector_that_refuses_is_not_asked_again(lone, answer) -> None:
    collector, make = lone
    collector.answer = answer
    chat, base = make()
    ask(base, 3)
    until(lambda: metric(chat, outcome("failed")) >= 3, "they are counted")
    collector.answer = (200, {}, b"\x00 not JSON")
    ask(base, 2)
    until(lambda: metric(chat, outcome("exported")) >= 2, "the next are taken, whatever the answer says")
    assert "traces are exported again" in chat.log.read_text()
    assert len(collector.find("GET")) == metric(chat, outcome("exported"))
    collector.check()


def test_a_collector_that_has_no_time_is_asked_when_it_says(lone) -> None:
    collector, make = lone
    collector.answer = (429, {"Retry-After": "1"}, b"")
    chat, base = make()
    ask(base, 1)
    until(lambda: len(collector.bodies) == 1, "it has been asked")
    collector.answer = (200, {}, b'{"partialSuccess":{"rejectedSpans":"1"}}')
    until(lambda: len(collector.bodies) == 2, "it is asked again")
    assert collector.times[1] - collector.times[0] > 0.9 and collector.bodies[0] == collector.bodies[1]
    until(lambda: metric(chat, outcome("rejected")) == 1, "what it rejects is counted")
    assert metric(chat, outcome("failed")) == 0


def test_no_collector_at_all_is_told_once(lone) -> None:
    collector, make = lone
    collector.stop()
    chat, base = make()
    assert ask(base, 20) < ANSWER_SECONDS_MAX
    until(lambda: "traces are not exported" in chat.log.read_text(), "the log says so")
    assert chat.stop() == 0
    assert chat.log.read_text().count("traces are not exported") == 1


def test_spans_that_wait_are_sent_at_the_end(lone) -> None:
    collector, make = lone
    chat, base = make(OTEL_BSP_SCHEDULE_DELAY="60000", OTEL_SERVICE_NAME="other")
    ask(base, 5)
    assert collector.spans == []
    assert chat.stop() == 0
    assert len(collector.find("GET", service="other")) == 5
    collector.check()


def test_the_receiver_of_the_documentation_shows_traces(traced: TracedStack, tmp_path) -> None:
    (port,) = free_ports(1)
    url, shown = f"http://127.0.0.1:{port}", tmp_path / "trace-catcher.log"
    command = [str(ROOT / "ops/scripts/trace-catcher"), "--http", f"127.0.0.1:{port}", "--quiet", "0.2"]
    catcher = Process("trace-catcher", command, {}, url, tmp_path)
    chat, base = traced.extra_chat("caught", {**SETTINGS, "OTEL_EXPORTER_OTLP_ENDPOINT": url})
    catcher.start()
    try:
        until(lambda: shown.exists() and "Traces are taken" in shown.read_text(), "it listens")
        chat.restart()
        ask(base, 1)
        until(lambda: re.search(r"ms  GET  \[martlet-chat\]\n", shown.read_text()), "the request is shown")
    finally:
        chat.stop()
        catcher.kill()


def test_a_share_of_traces_is_recorded(lone) -> None:
    collector, make = lone
    chat, base = make(OTEL_TRACES_SAMPLER="traceidratio", OTEL_TRACES_SAMPLER_ARG="0.5")
    for number in range(40):
        # The decision is the trace's: the lower half of its id.
        low = "0" * 16 if number % 2 else "f" * 16
        parent = f"00-{secrets.token_hex(8)}{low}-{secrets.token_hex(8)}-01"
        requests.get(f"{base}/nowhere", headers={"traceparent": parent}, timeout=10)
    assert chat.stop() == 0
    assert len(collector.find("GET")) == 20 and all(span.trace.endswith("0" * 16) for span in collector.spans)


def test_wrong_settings_are_told_together(traced: TracedStack) -> None:
    process, _ = traced.extra_chat("wrong", {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318", "OTEL_TRACES_SAMPLER": "sometimes",
        "OTEL_EXPORTER_OTLP_HEADERS": "hush", "MARTLET_CHAT_SENDS_PER_SECOND": "none",
    })
    process.start()
    assert process.child.wait(90) == 78
    told = process.log.read_text()
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_TRACES_SAMPLER", "OTEL_EXPORTER_OTLP_HEADERS",
                 "MARTLET_CHAT_SENDS_PER_SECOND"):
        assert name in told, told
    assert "hush" not in told
