"""A front end of another origin, by the lines of docs/operations/proxies.md in Caddy's configuration."""

import re
from pathlib import Path

import requests

from test_proxies import PAGE, Deaf, Witness, door, serving

OURS, THEIRS = "https://jobs.example.org", "https://evil.example"
ALLOWED = "Access-Control-Allow-Origin"


def test_pages_of_the_named_origin_are_let_in_and_others_are_not(tmp_path: Path) -> None:
    (lines,) = re.findall(r"^```caddy\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    with serving(Witness) as here, serving(Deaf) as deaf, door("caddy", tmp_path, [here], [deaf], lines) as base:
        def ask(method: str, path: str, origin: str | None, **more: str) -> requests.Response:
            headers = {name.replace("_", "-"): value for name, value in more.items()}
            headers |= {"Origin": origin} if origin else {}
            body = b"x" if method == "POST" else None
            return requests.request(method, base + path, headers=headers, timeout=10, data=body)

        question = {"Access_Control_Request_Method": "PUT", "Access_Control_Request_Headers": "authorization"}
        asked = ask("OPTIONS", "/api/jobs/1", OURS, **question)
        assert (asked.status_code, asked.headers[ALLOWED], asked.content) == (204, OURS, b"")
        assert "PUT" in asked.headers["Access-Control-Allow-Methods"]
        assert "Authorization" in asked.headers["Access-Control-Allow-Headers"]
        # What the service answers, and what the door does when it is away: a page must be able to read why.
        for method, path, status in (("GET", "/api/jobs", 200), ("POST", "/chat", 503)):
            ours = ask(method, path, OURS)
            assert (ours.status_code, ours.headers[ALLOWED]) == (status, OURS)
            for origin in (THEIRS, f"{OURS}.evil.example", "null", None):
                theirs = ask(method, path, origin)
                assert theirs.status_code == status and ALLOWED not in theirs.headers
                assert "Origin" in theirs.headers["Vary"]
        # The question of others goes to the service, which knows no such thing.
        assert ALLOWED not in ask("OPTIONS", "/api/jobs/1", THEIRS, **question).headers
        # Socket.IO does it by itself.
        assert ALLOWED not in ask("POST", "/socket.io/", OURS).headers
