"""What is done to a deployment before and between loads: the steps of docs/operations, and lies told to it."""

import json
import os
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import requests

from clamd import EICAR
from images import png
from inbox import Inbox, text
from people import Person
from runbook import Runbook
from stack import ROOT
from waiting import until

PROJECT = os.environ.get("COMPOSE_PROJECT_NAME", "martlet")
SIGNATURES = Path(os.environ.get("MARTLET_SIGNATURES", ROOT / ".local/smoke/signatures"))
CLAMD = "tcp://clamav:3310"
SERVICES = ("gateway", "chat", "worker")
UP_SECONDS = 30  # To be; up to twice that is told only, as a machine may do other things besides.
IMAGE_MB_MAX = {"service": 200, "worker": 500}
LIE, LIE_ADDRESS = "evil.example", "198.51.100."
LIES = {
    "Host": LIE, "X-Forwarded-Host": LIE, "X-Forwarded-For": f"{LIE_ADDRESS}1, {LIE_ADDRESS}2",
    "X-Real-IP": f"{LIE_ADDRESS}3", "Forwarded": f"for={LIE_ADDRESS}4;host={LIE};proto=https",
    "X-Forwarded-Proto": "https",
}
# These differ between two answers whoever asks.
OWN_HEADERS = {"date", "x-request-id"}
ACCOUNT_REQUESTS_PER_MINUTE = 10  # README's default, of each gateway.


def docker(*arguments: str) -> str:
    # By a shell, as `docker` may be one's own function.
    command = ["bash", "-c", 'docker "$@"', "docker", *arguments]
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"docker {' '.join(arguments)}: {done.stderr}"
    return done.stdout.strip()


def containers(*services: str) -> list[str]:
    return docker("compose", "ps", "-q", *services).split()


def started(*services: str) -> list[str]:
    """Containers with the time of their start: the same list later means that none was started again."""
    return sorted(docker("inspect", "-f", "{{.Id}} {{.State.StartedAt}}", *containers(*services)).splitlines())


def refused_server(name: str) -> str:
    """What a PostgreSQL says that does not start, because it must not."""
    command = ["bash", "-c", f"docker compose run --rm --no-deps {name} 2>&1"]
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, f"{name} started, or failed otherwise: {done.stdout}"
    return done.stdout


class Pages:
    """The pages' steps, told as they are done."""

    def __init__(self) -> None:
        self.books = {name: Runbook(f"{name}.md") for name in ("deployment", "backup", "failover")}

    def run(self, page: str, step: str, **variables: str) -> tuple[str, float]:
        """What it printed, and how many seconds it took."""
        began = time.monotonic()
        said = self.books[page].run(step, **variables)
        return said, time.monotonic() - began

    def all_done(self) -> None:
        """Every step of the pages was run; those of failover.md for other machines are run by test_failover.py."""
        left = {(page, step) for page, book in self.books.items() for step in book.steps if step not in book.done}
        left = {(page, step) for page, step in left if page != "failover" or step.startswith("compose-")}
        # These are what the first ones are, and ops/scripts/smoke has run those.
        left -= {("deployment", each) for each in ("secrets", "build")}
        assert not left, f"not run: {left}"


def sizes() -> None:
    """Of the two images of the services, which a machine fetches again with every version."""
    for name, most in IMAGE_MB_MAX.items():
        size = int(docker("image", "inspect", "-f", "{{.Size}}", f"martlet-{name}:{os.environ['MARTLET_VERSION']}"))
        print(f"  martlet-{name} has {size / 1e6:.0f} MB (at most: {most})", flush=True)
        assert size <= most * 1e6, f"the image of {name} has grown too large"


def begin(pages: Pages) -> None:
    """One of each, from nothing."""
    _, seconds = pages.run("deployment", "up")
    print(f"  up and healthy in {seconds:.0f} s (to be: {UP_SECONDS})", flush=True)
    assert seconds <= 2 * UP_SECONDS, "it took too long to come up"
    said, _ = pages.run("deployment", "secrets-again")
    assert said == "", "what is there stays as it is"


def lose_and_restore(pages: Pages, person: Person, cv: str) -> None:
    """Saves, loses the volumes, and brings everything back by the page."""
    picture = png(30, 20)
    files = [("files", ("a.png", picture, "image/png"))]
    kept = person.ask("POST", "/api/upload", 200, files=files)[0]["id"]
    until(lambda: "state" not in person.get(f"/api/upload/files/{kept}"), "the worker has looked at the picture")
    wanted = (person.get("/api/applications/mine"), person.rooms(), requests.get(person.base + cv, timeout=10).content)
    pages.run("backup", "compose-backup", NAME="smoke")
    said, _ = pages.run("backup", "compose-verify", NAME="smoke")
    pages.run("backup", "compose-fetch", NAME="smoke")
    # As a new machine is: no volumes, but for the file that was fetched.
    docker("compose", "--progress", "quiet", "down", "-v")
    # As in `.env` from now on: what is uploaded waits for clamd.
    os.environ["MARTLET_CLAMD"] = CLAMD
    began = time.monotonic()
    for step in ("compose-bring", "compose-restore", "compose-up"):
        pages.run("backup", step, NAME="smoke")
    (ROOT / "smoke.tar").unlink()
    person.sign_in()
    now = (person.get("/api/applications/mine"), person.rooms(), requests.get(person.base + cv, timeout=10).content)
    assert now == wanted and b"%PDF" in now[2], "something is missing after the restore"
    url = person.get(f"/api/upload/files/{kept}")["url"]
    assert person.http.get(person.base + url, timeout=10).content, "the picture is there"
    print(f"  saved, lost, and restored in {time.monotonic() - began:.0f} s; {said.splitlines()[-1]}", flush=True)


def check(pages: Pages) -> None:
    said, _ = pages.run("deployment", "check")
    assert "failed" not in said, said


def lies(base: str, mails: Path) -> None:
    """Nothing that a client says of itself changes an answer, a limit, a mail or a line in a log."""
    person = Person.register(base, "eve")
    for path in ("/api/users/me?populate=profile", "/api/jobs", "/openapi.json", "/api/nothing", "/chat"):
        honest, lying = (person.http.get(base + path, headers=more, timeout=10) for more in ({}, LIES))
        assert (lying.status_code, lying.content) == (honest.status_code, honest.content), path
        kept = [{k: v for k, v in each.headers.items() if k.lower() not in OWN_HEADERS} for each in (honest, lying)]
        assert kept[0] == kept[1], path

    forgot = f"{base}/api/auth/forgot-password"
    assert requests.post(forgot, json={"email": person.email}, headers=LIES, timeout=10).status_code == 200
    mail = Inbox(mails, person.email).wait("password")
    assert base in text(mail) and LIE not in mail.as_string(), mail.as_string()

    count = ACCOUNT_REQUESTS_PER_MINUTE * len(containers("gateway")) + 1
    for number in range(count):
        more = LIES | {"X-Forwarded-For": f"{LIE_ADDRESS}{number}", "X-Real-IP": f"{LIE_ADDRESS}{number}"}
        answer = requests.post(forgot, json={"email": f"nobody{number}@example.org"}, headers=more, timeout=10)
    assert answer.status_code == 429, "another address each time, and still one and the same"
    assert requests.post(forgot, json={"email": "nobody@example.org"}, timeout=10).status_code == 429

    logs = docker("compose", "logs", "--no-color", "proxy", *SERVICES)
    assert len(logs) > 0 and LIE not in logs and LIE_ADDRESS not in logs, "the logs believe it"
    open_ports = re.findall(r"0\.0\.0\.0:\d+->\d+", docker("compose", "ps", "--format", "{{.Ports}}"))
    assert len(open_ports) == 2, f"only the door is open: {open_ports}"
    print(f"  lies changed nothing: {count} addresses were one", flush=True)


def scan(pages: Pages, base: str) -> None:
    """The profile `scan` with a signature of our own: EICAR's test file is refused, and what is clean is taken."""
    SIGNATURES.mkdir(parents=True, exist_ok=True)
    SIGNATURES.chmod(0o755)
    (SIGNATURES / "martlet.ndb").write_text(f"Martlet.Eicar:0:*:{EICAR.hex()}\n")
    _, seconds = pages.run("deployment", "clamav")
    person = Person.register(base, "mallory")
    files = [("files", ("cv.txt", EICAR, "text/plain"))]

    def refused() -> bool:
        answer = person.http.post(f"{base}/api/upload?kind=cv", files=files, timeout=60)
        if answer.status_code == 200:
            return False  # Pending: the worker has not noticed yet that clamd is there.
        assert answer.status_code == 400, answer.text
        return "A virus scan found something harmful" in answer.json()["error"]["message"]

    until(refused, "EICAR's file is refused", 60)
    assert person.ask("POST", "/api/upload", 200, files=[("files", ("a.png", png(10, 10), "image/png"))])
    print(f"  clamd is up in {seconds:.0f} s and refuses EICAR's file", flush=True)


def new_version() -> None:
    """Images under the same names that say so, as `git pull` and a build would have made them."""
    for name in ("service", "worker"):
        image = f"martlet-{name}:{os.environ['MARTLET_VERSION']}"
        text = f"FROM {image}\nENV MARTLET_SMOKE=next\n"
        command = ["bash", "-c", 'docker build -q -t "$1" -', "docker", image]
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr


def prometheus(path: str, **parameters: str) -> Any:
    port = os.environ["MARTLET_PROMETHEUS_PORT"]
    answer = requests.get(f"http://127.0.0.1:{port}/api/v1/{path}", params=parameters, timeout=10).json()
    assert answer["status"] == "success", answer
    return answer["data"]


def sees(wanted: dict[str, int]) -> bool:
    """How many containers of each service answer Prometheus, and no other is expected to."""
    def counts(query: str) -> dict[str, int]:
        return {each["metric"]["job"]: int(each["value"][1]) for each in prometheus("query", query=query)["result"]}

    return counts("sum by (job) (up)") == wanted == counts("count by (job) (up)")


def observe(pages: Pages, wanted: dict[str, int]) -> None:
    _, seconds = pages.run("deployment", "prometheus")
    until(lambda: sees(wanted), "Prometheus sees all containers", 90)
    rules = [rule["name"] for group in prometheus("rules")["groups"] for rule in group["rules"]]
    assert "MartletDown" in rules and len(rules) > 20, rules
    print(f"  Prometheus is up in {seconds:.0f} s and sees {json.dumps(wanted)}, with {len(rules)} rules", flush=True)
