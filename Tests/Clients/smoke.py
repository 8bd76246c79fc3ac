"""Walks the main path of a deployment, does to it what docs/operations tells, under load, and counts. Run by
ops/scripts/smoke.

    .local/venv/bin/python Tests/Clients/smoke.py --base http://127.0.0.1:8480 --mail 172.17.0.1:8482

The deployment is the Compose project of the environment. Mail is caught at the address of --mail.
"""

import argparse
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable

import requests
from aiosmtpd.controller import Controller

import smoke_steps as steps
from chat import Chat
from inbox import Inbox
from people import Person, new_word
from smoke_load import Asker, Listener, Request, Speaker
from smoke_steps import SERVICES, Pages, containers, docker, started
from stack import ROOT
from waiting import until

CALM_SECONDS = 10  # What is normal is measured for as long.
AWAY_SECONDS = 2  # How long a killed container stays away.
# After a kill what had a body is lost on its way to the dead one, until the front door has looked again.
KILL_SECONDS_MAX = 5
BACK_SECONDS_MAX = 10  # Of the services, once there is a PostgreSQL or a door again.
STOP_SECONDS_MAX = 10  # From SIGTERM to the end of a service.
# In a roll the 99th percentile may be three times the calm one. Beneath this it is not looked at: on two cores a roll
# that starts and ends ten containers shares them with the load, and three times the few milliseconds of a calm minute
# would measure the engine. It is what nobody notices.
P99_MS_MIN = 150
ROOMS = 3
REQUESTS_SHOWN = 10
SCALE = {"gateway": 2, "chat": 3, "worker": 2}  # The page's.


class Mails:
    """Keeps what is sent, as the mail catcher does."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.count = 0
        self.lock = threading.Lock()

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802, the library's name
        with self.lock:
            self.count += 1
            partial = self.folder / f".{self.count:06d}.eml"
            partial.write_bytes(envelope.content)
            partial.rename(self.folder / f"{self.count:06d}.eml")
        return "250 Kept."


class Smoke:
    def __init__(self, base: str, mails: Path, pages: Pages):
        self.base = base
        self.mails = mails
        self.pages = pages
        self.chat_url = f"ws{base[4:]}/chat"
        self.askers: list[Asker] = []
        self.listeners: list[Listener] = []
        self.speakers: list[Speaker] = []

    def acceptance(self, representative: Person) -> tuple[Person, int, str]:
        """Somebody whose application has been accepted, the room of it, and the address of their CV."""
        applicant = Person.register(self.base, "ada")
        posting = representative.publish(f"Engineer {new_word()}")
        application = applicant.apply(posting["id"])
        url = applicant.application(application["id"])["cv"]["url"]

        def looked_at() -> bool:
            return requests.get(self.base + url, timeout=10).status_code == 200

        until(looked_at, "the worker has looked at the CV")
        representative.decide(application["id"], "accepted")
        room = next(each["id"] for each in applicant.rooms())
        return applicant, room, url

    def alert(self, representative: Person) -> None:
        """A fitting posting is mailed."""
        somebody, word = Person.register(self.base, "ivy"), new_word()
        wanted = {"name": "Engineers", "q": f"{word} engineer", "cadence": "instant"}
        somebody.ask("POST", "/api/alerts", 201, json={"data": wanted})
        representative.publish(f"Engineer {word}")
        Inbox(self.mails, somebody.email).wait(f"Engineer {word}")

    def walk(self) -> tuple[Person, Person, str]:
        """The main path, through the published port."""
        representative = Person.register(self.base, "rep")
        representative.create_company(f"Company {new_word()}")
        self.alert(representative)
        applicant, room, cv = self.acceptance(representative)
        one, two = (Chat.hello(self.chat_url, each.jwt) for each in (applicant, representative))
        one.say(room, "hello", "Hello, company!")
        assert two.wait("message", room=room, seq=one.wait("ack", id="hello")["seq"])["body"] == "Hello, company!"
        one.close()
        two.close()
        return representative, applicant, cv

    def load(self, representative: Person) -> None:
        """Begins to ask, to change and to talk."""
        posting = representative.publish("Steady engineer")["id"]
        change = f"{self.base}/api/jobs/{posting}"

        def get(path: str) -> Asker:
            return Asker(requests.Session(), lambda _: ("GET", self.base + path, {}))

        def put(number: int) -> tuple[str, str, dict]:
            return "PUT", change, {"json": {"data": {"name": f"Steady engineer {number}"}}}

        self.askers = [get(f"/api/jobs/{posting}"), get("/api/jobs"), get("/api/jobs/search?q=engineer")]
        self.askers.append(Asker(representative.http, put))
        for _ in range(ROOMS):
            applicant, room, _ = self.acceptance(representative)
            self.speakers.append(Speaker(self.chat_url, applicant, room))
            self.listeners.append(Listener(self.chat_url, representative, room))
        for each in (*self.listeners, *self.askers):
            each.start()
        for listener in self.listeners:
            until(lambda listener=listener: listener.last > 0, "the listener has been greeted")
        for speaker in self.speakers:
            speaker.start()

    def requests_since(self, began: float) -> list[Request]:
        return sorted(
            (each for asker in self.askers for each in list(asker.requests) if each.began >= began),
            key=lambda each: each.began)

    def calm(self) -> list[Request]:
        began = time.monotonic()
        time.sleep(CALM_SECONDS)
        calm = self.requests_since(began)
        failed = [each for each in calm if each.failure]
        print(f"  calm: {len(calm)} requests, {len(failed)} failed, p99 {p99(calm):.0f} ms", flush=True)
        assert not failed, failed[:REQUESTS_SHOWN]
        return calm

    def kill(self, service: str) -> None:
        """SIGKILL to one of its containers. What can be tried again is; the rest fails for a moment at most."""
        container = containers(service)[0]
        began = time.monotonic()
        docker("kill", container)
        time.sleep(AWAY_SECONDS)
        docker("start", container)

        def is_well() -> bool:
            return docker("inspect", "-f", "{{.State.Health.Status}}", container) == "healthy"

        until(is_well, f"the {service} is back", 60)
        time.sleep(1)
        asked = self.requests_since(began)
        failed = [each for each in asked if each.failure]
        late = [each for each in failed if each.method == "GET" or each.began - began > KILL_SECONDS_MAX]
        print(f"  {service} killed and back: {len(asked)} requests, {len(failed)} failed", flush=True)
        assert not late, "\n".join(f"{each}" for each in late[:REQUESTS_SHOWN])

    def away(self, what: str, disturb: Callable[[], Any], allowed: str) -> None:
        """There is one of it, and it is taken away by `disturb`, which ends when there is one again. Requests fail
        meanwhile, by what is allowed, and then no more; messages too; and no service is started again for it."""
        before = started(*SERVICES)
        began = time.monotonic()
        disturb()
        there = time.monotonic()
        said = [len(each.said) for each in self.speakers]

        def works() -> bool:
            asked = [[each for each in list(asker.requests) if each.began > there] for asker in self.askers]
            return all(each and not each[-1].failure for each in asked) and all(
                len(speaker.said) > count for speaker, count in zip(self.speakers, said))

        until(works, f"everything works again after {what}")
        back = time.monotonic() - there
        time.sleep(2)
        asked = self.requests_since(began)
        failed = [each for each in asked if each.failure]
        print(
            f"  {what}: away for {there - began:.1f} s, all well {back:.1f} s later: {len(asked)} requests, "
            f"{len(failed)} failed", flush=True)
        strange = [each for each in failed if not re.match(allowed, each.failure)]
        late = [each for each in failed if each.began > there + back]
        assert not strange and not late, "\n".join(f"{each}" for each in (strange + late)[:REQUESTS_SHOWN])
        assert back <= BACK_SECONDS_MAX, "it took too long"
        assert started(*SERVICES) == before, "a service was started again"

    def disturb_the_door(self) -> None:
        def kill() -> None:
            (door,) = containers("proxy")
            docker("kill", door)
            time.sleep(AWAY_SECONDS)
            docker("start", door)

        gone = "ConnectionError|ReadTimeout|503|ChunkedEncodingError"
        self.away("the front door killed", kill, gone)
        self.away("the front door replaced", lambda: self.pages.run("deployment", "proxy"), gone)

    def fail_over(self) -> None:
        """The standby takes the place of the server that is killed, and the other way round."""
        run = self.pages.run
        self.away("PostgreSQL replaced", lambda: run("deployment", "postgres"), "503")
        _, seconds = run("failover", "compose-standby")
        run("failover", "compose-wait")
        until(lambda: run("failover", "compose-look")[0] == "standby streaming sync", "the primary waits for it")
        print(f"  the standby is there after {seconds:.0f} s", flush=True)
        run("deployment", "pooler")
        self.away("PostgreSQL killed, the standby promoted", lambda: run("failover", "compose-promote"), "503")
        run("failover", "compose-pooler", MARTLET_POOLER_SERVER="standby")
        assert run("failover", "compose-look-again")[0] == "f"
        assert "and so nobody else may" in steps.refused_server("postgres"), "two servers would take writes"
        run("failover", "compose-retire")
        run("failover", "compose-again")
        psql = ("psql", "-XAtqU", "martlet", "-c", "SELECT pg_is_in_recovery()")
        assert docker("compose", "exec", "-T", "postgres", *psql) == "t", "the old one is no standby"

    def roll(self, calm: list[Request]) -> None:
        """Replaces every container of every service by one of another version and with another setting: behind the
        pooler."""
        self.pages.run("deployment", "build-again")
        steps.new_version()
        began = time.monotonic()
        pooled = {"MARTLET_DATABASE_POOLER": "transaction", "MARTLET_DATABASE_WAY": "pooler_url"}
        said, seconds = self.pages.run("deployment", "roll", **pooled)
        time.sleep(1)
        asked = self.requests_since(began)
        failed = [each for each in asked if each.failure]
        ended = [float(each) for each in re.findall(r"ended with 0 after ([0-9.]+) s", said)]
        print(
            f"  rolled in {seconds:.0f} s: {len(asked)} requests, {len(failed)} failed, p99 {p99(asked):.0f} ms "
            f"(calm: {p99(calm):.0f} ms); {len(ended)} ended, each in {max(ended):.1f} s at most "
            f"(to be: {STOP_SECONDS_MAX})", flush=True)
        assert not failed, "\n".join(f"{each.began - began:.1f} s: {each}" for each in failed[:REQUESTS_SHOWN])
        assert p99(asked) <= max(3 * p99(calm), P99_MS_MIN), "the roll was felt"
        assert len(ended) == sum(SCALE.values()) + len(SCALE), said
        assert max(ended) <= STOP_SECONDS_MAX, "one took too long to end"
        for container in containers(*SERVICES):
            settings = docker("inspect", "-f", "{{.Config.Env}}", container)
            for setting in ("MARTLET_DATABASE_POOLER=transaction", "MARTLET_SMOKE=next"):
                assert setting in settings, "an old one is left"

    def settle(self) -> None:
        """Ends the load, and holds what was acknowledged against what was heard and what is kept."""
        for each in (*self.speakers, *self.askers):
            each.end()
        said = sum(len(each.said) for each in self.speakers)
        for speaker, listener in zip(self.speakers, self.listeners):
            last = f"word {len(speaker.said) - 1}"
            until(lambda: listener.broken or last in listener.heard.bodies[-3:], "the last word has been heard")
            listener.end()
            heard = [body for body in listener.heard.bodies if body.startswith("word ")]
            # A word that was being said when all ended may have been heard, and was not acknowledged.
            assert heard[:len(speaker.said)] == speaker.said and len(heard) <= len(speaker.said) + 1, "lost or doubled"
            assert listener.heard.seqs == list(range(listener.heard.seqs[0], listener.heard.seqs[-1] + 1)), "a gap"
        connections = sum(each.connections for each in (*self.speakers, *self.listeners))
        print(f"  {said} messages, each heard once and in order, over {connections} connections", flush=True)


def p99(asked: list[Request]) -> float:
    """In milliseconds."""
    times = sorted(each.seconds for each in asked)
    return 1000 * times[min(len(times) - 1, int(len(times) * 0.99))]


def run(base: str, mails: Path) -> None:
    pages = Pages()
    smoke = Smoke(base, mails, pages)
    steps.sizes()
    print("From nothing, and from a backup", flush=True)
    steps.begin(pages)
    _, applicant, cv = smoke.walk()
    steps.lose_and_restore(pages, applicant, cv)
    _, seconds = pages.run("deployment", "scale")
    print(f"  scaled in {seconds:.0f} s", flush=True)
    print("Walking the main path, and beside it", flush=True)
    steps.scan(pages, base)
    steps.check(pages)
    representative, *_ = smoke.walk()
    steps.lies(base, mails)
    steps.observe(pages, SCALE)
    print("Under load", flush=True)
    smoke.load(representative)
    calm = smoke.calm()
    for service in ("worker", "chat", "gateway"):
        smoke.kill(service)
    smoke.disturb_the_door()
    smoke.fail_over()
    smoke.roll(calm)
    # The workers that have come do what those that went did.
    smoke.alert(representative)
    smoke.settle()
    until(lambda: steps.sees(SCALE), "Prometheus has found those that came", 60)
    pages.all_done()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--base", required=True)
    parser.add_argument("--mail", required=True, help="HOST:PORT to catch mail at")
    arguments = parser.parse_args()
    # The deployment is on this machine; a proxy in the environment would be asked for it all the same.
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1,localhost"
    host, _, port = arguments.mail.rpartition(":")
    mails = ROOT / ".local/smoke/mail"
    mails.mkdir(parents=True, exist_ok=True)
    for old in mails.iterdir():
        old.unlink()
    catcher = Controller(Mails(mails), hostname=host, port=int(port))
    catcher.start()
    began = time.monotonic()
    try:
        run(arguments.base, mails)
    except (AssertionError, subprocess.TimeoutExpired) as error:
        sys.exit(f"smoke: {error}")
    finally:
        catcher.stop()
        print(f"  {time.monotonic() - began:.0f} s in all", flush=True)


if __name__ == "__main__":
    main()
