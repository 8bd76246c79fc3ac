"""Who is online is the same for everybody, whatever becomes of the instances."""

import signal
from contextlib import contextmanager
from typing import Callable, Iterator

from chat import Chat
from conftest import Accepted
from stack import Process, Stack
from waiting import until

# Two looks of 2 s, or a lease of 5 s before them; the rest is for a machine that is busy with other things.
GONE_SECONDS_MAX = 90


@contextmanager
def instance(stack: Stack, name: str, **settings: str) -> Iterator[tuple[Process, str]]:
    """A chat that may be killed, and where it is greeted."""
    process, base = stack.extra_chat(name, settings)
    process.restart()
    try:
        yield process, f"ws{base[4:]}/chat"
    finally:
        process.kill()


def watch(chat: Callable[..., Chat], people: Accepted) -> Chat:
    """The representative, who watches the room and sees nobody else."""
    watching = chat(people.representative, 0)
    watching.send({"type": "join", "room": people.room})
    assert watching.wait("joined")["online"] == [people.representative.id]
    return watching


def names(stack: Stack) -> list[str]:
    return stack.sql("SELECT name FROM chat_instances ORDER BY name").split()


def test_users_of_a_killed_instance_go_offline_and_its_row_with_them(
    stack: Stack, chat: Callable[..., Chat], accepted: Callable[[], Accepted]
) -> None:
    people = accepted()
    applicant = people.applicant.id
    watching = watch(chat, people)
    with instance(stack, "doomed") as (process, url):
        connected = Chat.hello(url, people.applicant.jwt)
        watching.wait("presence", user=applicant, online=True)
        assert connected.ready["instance"] in names(stack)
        process.kill()
        watching.wait("presence", GONE_SECONDS_MAX, user=applicant, online=False)
        assert "doomed" not in names(stack)
        # Whoever comes back is seen on the instance that there is now.
        chat(people.applicant, 1)
        watching.wait("presence", user=applicant, online=True)


def test_an_instance_that_stands_still_comes_back_with_its_users(
    stack: Stack, chat: Callable[..., Chat], accepted: Callable[[], Accepted]
) -> None:
    people = accepted()
    applicant = people.applicant.id
    watching = watch(chat, people)
    # Nothing listens, so what tells that it lives is its lease.
    with instance(stack, "sleeper", MARTLET_NOTIFY="off") as (process, url):
        connected = Chat.hello(url, people.applicant.jwt)
        watching.wait("presence", user=applicant, online=True)
        assert process.child
        process.child.send_signal(signal.SIGSTOP)
        watching.wait("presence", GONE_SECONDS_MAX, user=applicant, online=False)
        process.child.send_signal(signal.SIGCONT)
        watching.wait("presence", user=applicant, online=True)
        connected.close()
        watching.wait("presence", user=applicant, online=False)


def test_an_instance_that_ends_takes_its_users_along_unless_they_are_elsewhere(
    stack: Stack, chat: Callable[..., Chat], accepted: Callable[[], Accepted]
) -> None:
    people = accepted()
    applicant = people.applicant.id
    watching = watch(chat, people)
    with instance(stack, "leaver") as (process, url):
        connected = Chat.hello(url, people.applicant.jwt)
        watching.wait("presence", user=applicant, online=True)
        elsewhere = chat(people.applicant, 1)
        until(lambda: stack.sql(f"SELECT count(*) FROM chat_presence WHERE user_id = {applicant}") == "2", "two rows")
        assert process.stop() == 0
        assert connected.closed() == 1012
        assert "leaver" not in names(stack)
        watching.send({"type": "join", "room": people.room})
        assert watching.wait("joined")["online"] == sorted([applicant, people.representative.id])
        assert not [frame for frame in watching.frames if frame["type"] == "presence"]
        elsewhere.close()
        watching.wait("presence", user=applicant, online=False)
