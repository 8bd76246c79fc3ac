"""Everything wrong gets a clear 4xx in one shape, and changes nothing."""

import gzip
import json
import socket
import sys
from pathlib import Path
from typing import Any, Callable, Iterator
from urllib.parse import urlsplit

import pytest

from chat import Chat
from people import Person, new_word
from stack import Stack
from waiting import until

TABLES = ("users", "companies", "job_postings", "applications", "application_events", "media", "rooms", "messages")
NAMES = {
    400: {"ValidationError", "ApplicationError", "BadRequestError"},
    401: {"UnauthorizedError"},
    403: {"ForbiddenError"},
    404: {"NotFoundError"},
    405: {"MethodNotAllowedError"},
    413: {"PayloadTooLargeError"},
    415: {"UnsupportedMediaTypeError"},
}
LATER = 9_000_000_000_000  # An id that nothing has.


@pytest.fixture
def unchanged(stack: Stack) -> Iterator[None]:
    """Nothing was added or taken away while the test ran; what it needs, it makes in other fixtures."""

    def counts() -> str:
        return stack.sql("SELECT " + ", ".join(f"(SELECT count(*) FROM {table})" for table in TABLES))

    before = counts()
    yield
    assert counts() == before, TABLES


@pytest.fixture(scope="module")
def representative(stack: Stack) -> Person:
    somebody = Person.register(stack.base, "rep")
    somebody.create_company(f"Company {new_word()}")
    somebody.publish("Engineer")
    return somebody


@pytest.fixture(scope="module")
def ada(stack: Stack) -> Person:
    return Person.register(stack.base, "ada")


def raw(stack: Stack, sent: bytes) -> tuple[int, bytes]:
    """Bytes as they are to the gateway itself; the status of its answer and all that it said until it closed."""
    address = urlsplit(stack.gateway_urls[0])
    with socket.create_connection((address.hostname, address.port), timeout=15) as peer:
        peer.sendall(sent)
        peer.shutdown(socket.SHUT_WR)
        answer = b""
        while chunk := peer.recv(65536):
            answer += chunk
    return (int(answer.split()[1]) if answer else 0), answer


HEAD = b"Host: localhost\r\nConnection: close\r\n"
JSON = b"Content-Type: application/json\r\n"
POST = b"POST /api/auth/local HTTP/1.1\r\n" + HEAD


@pytest.mark.parametrize(
    ("sent", "statuses"),
    [
        (b"GARBAGE\r\n\r\n", {400}),
        (b"GET /api/jobs HTTP/1.1\r\nConnection: close\r\n\r\n", {400}),
        (b"GET /api/jobs HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", {400}),
        (b"GET /api/jobs HTTP/1.1\r\n" + HEAD + b"X: a\r\n b\r\n\r\n", {400}),
        (b"GET /api/jobs HTTP/1.1\r\n" + HEAD + b"X: " + b"a" * 70_000 + b"\r\n\r\n", {400, 431}),
        (b"GET /api/jobs HTTP/1.1\r\n" + HEAD + b"".join(b"X%d: a\r\n" % n for n in range(300)) + b"\r\n", {400, 431}),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n" + HEAD + b"\r\n", {400, 414, 431}),
        (POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n12", {400}),
        (POST + b"Content-Length: -1\r\n\r\n", {400}),
        (POST + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", {400}),
        (POST + JSON + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", {400}),
        (b"POST /api/auth/local HTTP/1.0\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", {400}),
        (b"GET /api/jobs/%00 HTTP/1.1\r\n" + HEAD + b"\r\n", {400}),
        (b"GET /api/jobs/%ff%fe HTTP/1.1\r\n" + HEAD + b"\r\n", {400}),
        (b"GET /uploads/../../etc/passwd HTTP/1.1\r\n" + HEAD + b"\r\n", {400, 404}),
        (b"GET /uploads/..%2f..%2fetc%2fpasswd HTTP/1.1\r\n" + HEAD + b"\r\n", {400, 404}),
    ],
    ids=[
        "no request", "no host", "two hosts", "folded head", "long head", "many heads", "long target", "two lengths",
        "negative length", "length and chunks", "bad chunk", "chunks in 1.0", "NUL in path", "no UTF-8 in path",
        "dots in path", "escaped dots in path",
    ],
)
def test_malformed_requests_are_refused(stack: Stack, unchanged: None, sent: bytes, statuses: set[int]) -> None:
    status, answer = raw(stack, sent)
    assert status in statuses, answer[:500]
    assert answer.count(b"HTTP/1.1 ") == 1, "what follows a refused head is not read as a request"


def json_error(answer: Any, status: int) -> dict[str, Any]:
    assert answer.status_code == status, answer.text[:1000]
    error = answer.json()["error"]
    assert error["name"] in NAMES[status] and error["status"] == status and error["message"], error
    assert "SELECT" not in answer.text and "postgres" not in answer.text.lower()
    return error


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'"text"', b"{\"identifier\":\"a\"", b"\xff\xfe{}", b'{"identifier":"\\ud800"}',
     b'{"identifier":1,"password":2}', b'{"identifier":["a"],"password":{}}', b"[" * 20_000],
    ids=["empty", "cut", "array", "null", "string", "cut in the middle", "no UTF-8", "half a surrogate", "numbers",
         "wrong types", "deep"],
)
def test_bodies_that_are_no_login_are_refused(stack: Stack, ada: Person, unchanged: None, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    answer = ada.http.post(f"{stack.base}/api/auth/local", data=body, headers=headers, timeout=10)
    json_error(answer, 400)


def test_a_body_that_is_too_large_is_refused_early(stack: Stack, ada: Person, unchanged: None) -> None:
    body = json.dumps({"identifier": "a" * (8 * 1024 * 1024), "password": "b"})
    headers = {"Content-Type": "application/json"}
    for _ in range(20):  # Each time: a proxy that is cut off while it still sends would say 503 now and then.
        answer = ada.http.post(f"{stack.base}/api/auth/local", data=body, headers=headers, timeout=10)
        json_error(answer, 413)


def test_a_compressed_body_is_refused_with_what_is_taken(stack: Stack, ada: Person, unchanged: None) -> None:
    body = gzip.compress(json.dumps({"identifier": "a", "password": "b"}).encode())
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    for url in (stack.base, stack.gateway_urls[0]):
        answer = ada.http.post(f"{url}/api/auth/local", data=body, headers=headers, timeout=10)
        json_error(answer, 415)
        assert answer.headers["Accept-Encoding"] == "identity"


GOOD_PERSON = {"username": "newcomer", "email": "newcomer@example.org", "password": "long enough"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("username", None), ("username", "ab"), ("username", "a" * 51), ("username", 7), ("username", "a\u0000b"),
        ("username", "a@b.example"), ("email", None), ("email", "no"), ("email", "a@b"), ("email", ["a@b.org"]),
        ("email", "a@" + "b" * 300 + ".org"), ("password", None), ("password", "short"), ("password", "p" * 2000),
        ("password", {}),
        ("first_name", "f" * 256), ("first_name", 3.5), ("last_name", False), ("phone_number", "\u0007"),
    ],
)
def test_every_field_of_a_registration_is_checked(stack: Stack, unchanged: None, field: str, value: Any) -> None:
    body = {**GOOD_PERSON, field: value}
    answer = Person(stack.base, "", "", "").http.post(f"{stack.base}/api/auth/local/register", json=body, timeout=10)
    error = json_error(answer, 400)
    assert field in json.dumps(error), "the answer names the field"


def test_a_name_or_address_in_use_is_refused(stack: Stack, ada: Person, unchanged: None) -> None:
    for clash in ({"username": ada.username}, {"username": ada.username.upper()}, {"email": ada.email.upper()}):
        body = {**GOOD_PERSON, **clash}
        json_error(ada.http.post(f"{stack.base}/api/auth/local/register", json=body, timeout=10), 400)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", None), ("name", ""), ("name", "n" * 256), ("name", 1), ("name", "a\u0000"), ("description", 5),
        ("description", "d" * 100_001), ("type", []), ("environment", {"a": 1}), ("salary", "much"),
        ("salary", {"min": -1, "currency": "EUR", "period": "year"}),
        ("salary", {"min": 2, "max": 1, "currency": "EUR", "period": "year"}),
        ("salary", {"min": 1, "currency": "euro", "period": "year"}),
        ("salary", {"min": 1, "currency": "EUR", "period": "aeon"}),
        ("apply_url", "javascript:alert(1)"), ("skills", ["s"] * 51), ("skills", [1]), ("skills", "swift"),
        ("status", "golden"), ("valid_through", "tomorrow"), ("lat", 91), ("lat", 10),
    ],
)
def test_every_field_of_a_posting_is_checked(
    stack: Stack, representative: Person, unchanged: None, field: str, value: Any
) -> None:
    body = {"name": "Engineer", "description": "", "type": "", "environment": ""}
    body = {**body, "company": representative.company, field: value}
    json_error(representative.http.post(f"{stack.base}/api/jobs", json={"data": body}, timeout=10), 400)


@pytest.mark.parametrize(
    "query",
    ["q=" + "x" * 401, "lat=91&lng=0&radius=5", "lat=1", "radius=-1&lat=1&lng=1", "limit=ten",
     "cursor=!!", "salary=-1", "company=x", "q=%00", "q=%ff", "lat=nan&lng=0&radius=1",
     "place=Berlin&lat=1&lng=1&radius=1"],
)
def test_every_word_of_a_search_is_checked(stack: Stack, ada: Person, query: str) -> None:
    json_error(ada.http.get(f"{stack.base}/api/jobs/search?{query}", timeout=10), 400)


def test_strangers_need_an_account_and_find_nothing_of_others(
    stack: Stack, ada: Person, representative: Person, unchanged: None
) -> None:
    nobody = Person(stack.base, "", "", "")
    posting = representative.posting
    for method, path in [
        ("GET", "/api/users/me"), ("POST", "/api/jobs"), ("GET", "/api/jobs/mine"), ("POST", "/api/applications"),
        ("GET", "/api/applications/mine"), ("GET", "/api/rooms"), ("POST", "/api/alerts"), ("POST", "/api/companies"),
        ("PUT", f"/api/jobs/{posting}"), ("DELETE", f"/api/jobs/{posting}"),
    ]:
        json_error(nobody.http.request(method, stack.base + path, timeout=10), 401)
    for token in ("", "x", "a.b.c", representative.jwt[:-4] + "AAAA", representative.jwt + "A"):
        headers = {"Authorization": f"Bearer {token}"}
        json_error(nobody.http.get(f"{stack.base}/api/users/me", headers=headers, timeout=10), 401)

    # Other people's things are not there.
    ada.ask("PUT", f"/api/jobs/{posting}", 404, json={"data": {"name": "Mine"}})
    ada.ask("DELETE", f"/api/jobs/{posting}", 404)
    for path in ("/api/jobs/x", f"/api/jobs/{LATER}", f"/api/applications/{LATER}", f"/api/rooms/{LATER}/messages",
                 f"/api/alerts/{LATER}", "/api/companies/-1", "/api/nothing", f"/api/jobs/{10 ** 30}"):
        json_error(ada.http.get(stack.base + path, timeout=10), 404)
    json_error(ada.http.request("PATCH", f"{stack.base}/api/jobs", timeout=10), 405)


def test_somebody_without_a_company_publishes_nothing_for_another(
    stack: Stack, ada: Person, representative: Person, unchanged: None
) -> None:
    # The company that clients send is never trusted: a posting is of the company that its author represents.
    body = {"data": {"name": "Engineer", "company": representative.company}}
    json_error(ada.http.post(f"{stack.base}/api/jobs", json=body, timeout=10), 403)


PART = b'--Boundary-1\r\nContent-Disposition: form-data; name="job"\r\n\r\n%d\r\n'
FILE = (
    b'--Boundary-1\r\nContent-Disposition: form-data; name="cv"; filename="a.pdf"\r\n'
    b"Content-Type: application/pdf\r\n\r\n"
)


@pytest.mark.parametrize(
    "body",
    [
        b"", PART, PART + FILE, PART + FILE + b"%%PDF-1.4 cut", FILE + b"%%PDF\r\n--Boundary-1--\r\n",
        PART + b"--Boundary-1--\r\n", PART.replace(b"%d", b"x") + FILE + b"%%PDF\r\n--Boundary-1--\r\n",
        b"--Other\r\n\r\n", PART + b"--Boundary-1\r\n" + b"X: " + b"a" * 40_000 + b"\r\n\r\n",
    ],
    ids=["empty", "cut after a part", "cut before the file", "cut in the file", "no posting", "no file", "no number",
         "other boundary", "long part head"],
)
def test_an_upload_that_is_cut_or_lacks_a_part_is_refused(
    stack: Stack, ada: Person, representative: Person, unchanged: None, body: bytes
) -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=Boundary-1"}
    sent = body % representative.posting if b"%d" in body else body.replace(b"%%", b"%")
    answer = ada.http.post(f"{stack.base}/api/applications", data=sent, headers=headers, timeout=15)
    json_error(answer, 400)


def test_a_connection_that_breaks_in_an_upload_leaves_nothing(
    stack: Stack, ada: Person, representative: Person, unchanged: None
) -> None:
    body = PART % representative.posting + FILE + b"%PDF-1.4 and no more"
    head = (
        f"POST /api/applications HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ada.jwt}\r\n"
        f"Content-Type: multipart/form-data; boundary=Boundary-1\r\nContent-Length: {len(body) + 1000}\r\n\r\n"
    )
    raw(stack, head.encode() + body)


def test_a_cv_that_is_none_is_told_and_the_application_stands(
    stack: Stack, ada: Person, representative: Person
) -> None:
    posting = representative.publish(f"Engineer {new_word()}")["id"]
    application = ada.apply(posting, Path(sys.executable).read_bytes()[:100_000])

    def outcome() -> str:
        return stack.sql(
            "SELECT state, coalesce(rejection_message, '') FROM media JOIN applications ON cv_media_id = media.id "
            f"WHERE applications.id = {application['id']} AND state <> 'pending'"
        )

    state, reason = until(outcome, "the CV has been looked at").split("\t")
    assert state == "rejected" and reason
    assert ada.application(application["id"])["status"] == "initiated"
    history = ada.get(f"/api/applications/{application['id']}/history")
    assert "cv_rejected" in json.dumps(history) and reason in json.dumps(history)


def test_an_expired_posting_takes_no_applications_and_is_gone(
    stack: Stack, ada: Person, representative: Person
) -> None:
    word = new_word()
    posting = representative.publish(f"Engineer {word}")["id"]
    assert len(ada.search(word)) == 1
    stack.sql(
        f"UPDATE job_postings SET valid_through = now() WHERE id = {posting}; SELECT index_posting({posting})"
    )
    ada.apply(posting, status=410)
    assert ada.search(word) == []
    closed = representative.publish(f"Engineer {word}", status="closed")
    ada.apply(closed["id"], status=410)
    ada.apply(LATER, status=404)


@pytest.mark.parametrize(
    "frame",
    ["", "{", "[]", "null", '{"type":"dance"}', '{"type":7}', '{"type":"send"}',
     '{"type":"send","room":"x","id":"a","body":"b"}', '{"type":"send","room":1,"id":"","body":"b"}',
     '{"type":"history","room":1,"limit":-1}', "[" * 30_000],
    ids=["empty", "cut", "array", "null", "unknown", "number", "bare", "room", "no id", "limit", "deep"],
)
def test_frames_that_are_no_words_of_the_chat_are_answered_or_end_the_connection(
    chat: Callable[..., Chat], ada: Person, unchanged: None, frame: str
) -> None:
    peer = chat(ada, 0)
    peer.socket.send(frame)
    assert peer.refusal() in ("invalid", "forbidden", 1003, 1007, 1008, 4400)
    assert chat(ada, 0).ready["user"] == ada.id, "others are served on"


def test_a_message_that_is_too_long_is_refused(
    stack: Stack, accepted: Callable, chat: Callable[..., Chat]
) -> None:
    them = accepted()
    peer = chat(them.applicant, 0)
    peer.say(them.room, "long", "x" * 70_000)
    assert peer.refusal() in ("invalid", 1009)
    peer = chat(them.applicant, 0)
    peer.say(them.room, "nul", "a\u0000b")
    assert peer.refusal() == "invalid"
    peer.say(them.room, "fine", "a b")
    assert peer.wait("ack", id="fine")["seq"] > 0
