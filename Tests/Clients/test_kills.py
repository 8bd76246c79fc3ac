"""Any process may be killed at any moment; what was acknowledged is there afterwards."""

import signal
import threading
from typing import Callable, Iterator

import pytest
import requests

from chat import Chat
from chatstack import Cluster
from inbox import Inbox
from people import Person, new_word
from stack import Stack
from waiting import until

FRESH_SECONDS_MAX = 180  # For a lease to run out and the item to be taken up by the next worker.


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A PostgreSQL of these tests' own, as it is killed too."""
    own = Cluster()
    yield own
    own.remove()


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, cluster: Cluster) -> Iterator[Stack]:
    """Instead of the stack that the other tests share."""
    running = Stack(tmp_path_factory.mktemp("stack"), cluster.url)
    try:
        running.start()
        yield running
    finally:
        running.stop()


class Load:
    """Publishes postings from several threads until it is told to stop; remembers what was acknowledged."""

    THREADS = 4

    def __init__(self, representative: Person):
        self.representative = representative
        self.acknowledged: list[int] = []
        self.refused: list[int] = []
        self.ending = threading.Event()
        self.threads = [threading.Thread(target=self.work, daemon=True) for _ in range(self.THREADS)]

    def work(self) -> None:
        headers = {"Authorization": f"Bearer {self.representative.jwt}"}
        body = {"data": {"name": f"Engineer {new_word()}", "company": self.representative.company}}
        while not self.ending.is_set():
            try:
                url = f"{self.representative.base}/api/jobs"
                answer = requests.post(url, json=body, headers=headers, timeout=20)
            except requests.RequestException:
                continue  # Not acknowledged, so nothing was promised.
            if answer.status_code == 200:
                self.acknowledged.append(answer.json()["id"])
            else:
                self.refused.append(answer.status_code)

    def __enter__(self) -> "Load":
        for thread in self.threads:
            thread.start()
        self.wait_for_more()
        return self

    def __exit__(self, *exception: object) -> None:
        self.ending.set()
        for thread in self.threads:
            thread.join(30)

    def wait_for_more(self) -> None:
        before = len(self.acknowledged)
        until(lambda: len(self.acknowledged) >= before + 20, "more is acknowledged", 180)


@pytest.fixture
def representative(person: Callable[[str], Person]) -> Person:
    somebody = person("rep")
    somebody.create_company(f"Company {new_word()}")
    return somebody


def missing(stack: Stack, postings: list[int]) -> str:
    listed = ",".join(map(str, postings))
    return stack.sql(
        f"SELECT coalesce(string_agg(id::text, ','), '') FROM unnest('{{{listed}}}'::bigint[]) id "
        "WHERE id NOT IN (SELECT id FROM job_postings)"
    )


def test_a_killed_gateway_loses_nothing_it_acknowledged(stack: Stack, representative: Person) -> None:
    with Load(representative) as load:
        for gateway in stack.gateways:
            gateway.kill()
            gateway.restart()
        load.wait_for_more()
    assert missing(stack, load.acknowledged) == ""
    assert set(load.refused) <= {502, 503}, load.refused


def test_a_killed_front_door_loses_nothing_that_was_acknowledged(stack: Stack, representative: Person) -> None:
    with Load(representative) as load:
        stack.proxy.kill()
        stack.proxy.restart()
        load.wait_for_more()
    assert missing(stack, load.acknowledged) == ""


def test_a_killed_postgres_means_503_for_a_while_and_loses_nothing(
    stack: Stack, representative: Person, cluster: Cluster, accepted: Callable, chat: Callable[..., Chat]
) -> None:
    them = accepted()
    talking = chat(them.applicant, 0)
    talking.say(them.room, "before", "before")
    talking.wait("ack", id="before")
    with Load(representative) as load:
        cluster.crash(signal.SIGKILL)

        def told() -> bool:
            url = f"{stack.base}/api/jobs/search?q=engineer"
            answer = requests.get(url, headers=dict(representative.http.headers), timeout=20)
            return answer.status_code == 503 and int(answer.headers["Retry-After"]) > 0

        until(told, "the gateway says that it cannot")
        cluster.start()
        load.wait_for_more()
    assert missing(stack, load.acknowledged) == ""
    assert set(load.refused) <= {503}, load.refused

    # The chats are back by themselves too, on whichever connection.
    for process in (*stack.gateways, *stack.chats, *stack.workers):
        process.wait_ready()
    again = chat(them.applicant, 0)
    other = chat(them.representative, 1)
    again.say(them.room, "after", "after")
    seq = again.wait("ack", id="after")["seq"]
    assert other.wait("message", room=them.room, seq=seq)["body"] == "after"


def test_a_killed_chat_loses_no_acknowledged_message_and_makes_none_twice(
    stack: Stack, accepted: Callable, chat: Callable[..., Chat]
) -> None:
    them = accepted()
    room = them.room
    one, other = chat(them.applicant, 0), chat(them.representative, 1)
    start = one.ready["rooms"][0]["last_seq"]
    sent = {f"k{number}": f"word {number}" for number in range(50)}  # Fewer than one person may send at once.
    acknowledged: dict[str, int] = {}
    for number, (client_id, body) in enumerate(sent.items()):
        try:
            one.say(room, client_id, body)
            if number % 5 == 4:
                acknowledged[f"k{number}"] = one.wait("ack", id=f"k{number}")["seq"]
        except Exception:  # Killed in the middle: what was not acknowledged was not promised.
            break
        if number == 22:
            stack.chats[0].kill()
    assert acknowledged

    # As a good client does: reconnect, by the front door to the chat that is left, and say all again by the same ids.
    back = chat(them.applicant, None, {room: start})
    for client_id, body in sent.items():
        back.say(room, client_id, body)
    seqs = {client_id: back.wait("ack", id=client_id)["seq"] for client_id in sent}
    for client_id, seq in acknowledged.items():
        assert seqs[client_id] == seq, "acknowledged, so it is there under its number"
    assert sorted(seqs.values()) == list(range(start + 1, start + 1 + len(sent))), "no gap, and nothing twice"
    heard = {frame["seq"]: frame["body"] for frame in other.messages(room, len(sent))}
    assert [heard[seqs[client_id]] for client_id in sent] == list(sent.values())
    stack.chats[0].restart()


def test_a_killed_worker_leaves_its_items_to_the_next(
    stack: Stack, representative: Person, person: Callable[[str], Person], inbox: Callable[[Person], Inbox]
) -> None:
    ada = person("ada")
    word = new_word()
    ada.ask("POST", "/api/alerts", 201, json={"data": {"name": "Work", "q": word, "cadence": "instant"}})
    applications = []
    for number in range(5):
        posting = representative.publish(f"Engineer {word} number {number}")["id"]
        applications.append(ada.apply(posting)["id"])
        if number == 2:
            stack.workers[0].kill()
    # The dead worker's leases run out; sixty seconds of waiting would prove no more than this.
    stack.sql("UPDATE work_items SET leased_until = now() WHERE leased_until > now()")
    stack.workers[0].restart()

    def pending() -> int:
        listed = ",".join(map(str, applications))
        return int(stack.sql(
            "SELECT count(*) FROM media JOIN applications ON cv_media_id = media.id "
            f"WHERE state <> 'ready' AND applications.id IN ({listed})"
        ))

    until(lambda: pending() == 0, "every CV has been read", FRESH_SECONDS_MAX)
    mails = inbox(ada)

    def told() -> set[int]:
        return {number for number in range(5) for mail in mails.mails() if f"number {number}" in str(mail)}

    until(lambda: told() == set(range(5)), "every posting has been told of", FRESH_SECONDS_MAX)
    # A mail whose sending was cut off may come again, but then it is the same mail.
    subjects = {(str(mail["Message-ID"]), str(mail["Subject"])) for mail in mails.mails()}
    assert len({message_id for message_id, _ in subjects}) == len({subject for _, subject in subjects})


def test_mail_waits_for_a_mail_server_that_is_away(
    stack: Stack, representative: Person, person: Callable[[str], Person], inbox: Callable[[Person], Inbox]
) -> None:
    ada = person("ada")
    word = new_word()
    ada.ask("POST", "/api/alerts", 201, json={"data": {"name": "Work", "q": word, "cadence": "instant"}})
    stack.mail.kill()
    representative.publish(f"Engineer {word}")

    def tried() -> str:
        return stack.sql("SELECT 1 FROM work_items WHERE postponed > 0 AND kind LIKE '%mail%' LIMIT 1")

    until(tried, "the worker has tried in vain")
    stack.mail.restart()
    until(lambda: len(inbox(ada).mails()) == 1, "the mail comes when the server is back", FRESH_SECONDS_MAX)
