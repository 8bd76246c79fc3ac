"""All four services behind pgbouncer in transaction mode: the whole path and the chat, with LISTEN past the pooler and
with no LISTEN at all. And a pooler of which the configuration does not know."""

import os
import subprocess
from pathlib import Path
from typing import Callable, Iterator

import pytest

from chat import Chat
from conftest import Accepted
from stack import ROOT, Pooler, Stack
from waiting import until

# The whole path once more: pytest takes them for tests of this module, so with its stack.
from test_whole_path import (  # noqa: F401
    test_a_fitting_posting_is_mailed_once_and_one_click_ends_it,
    test_a_posting_is_found_while_it_is_published,
    test_a_refresh_token_works_once_and_its_second_use_ends_the_family,
    test_an_account_lives_from_registration_to_log_out,
    test_an_application_goes_from_cv_to_acceptance,
    test_somebody_who_was_away_gets_what_was_said_in_order,
    test_the_chat_lets_in_who_may_and_nobody_else,
    test_two_people_talk_across_two_chat_processes,
)

POOLER_MET = "A connection pooler stands before PostgreSQL: set MARTLET_DATABASE_POOLER=transaction"


@pytest.fixture(scope="module")
def pooler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pooler]:
    running = Pooler(tmp_path_factory.mktemp("pooler"), os.environ["MARTLET_TEST_DATABASE_URL"])
    running.restart()
    yield running
    running.stop()


@pytest.fixture(scope="module", params=[True, False], ids=["listening past it", "without LISTEN"])
def stack(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, pooler: Pooler
) -> Iterator[Stack]:
    """Instead of the stack that the other tests share."""
    url = os.environ["MARTLET_TEST_DATABASE_URL"]
    running = Stack(tmp_path_factory.mktemp("stack"), url, pooler, listens=request.param)
    try:
        running.start()
        yield running
    finally:
        running.stop()


def through(stack: Stack, pooler: Pooler) -> list[str]:
    """The applications that are connected to the stack's database past the pooler."""
    return stack.sql(
        "SELECT DISTINCT application_name FROM pg_stat_activity WHERE datname = current_database() "
        f"AND application_name <> 'psql' AND pid NOT IN (SELECT pid FROM pg_stat_activity WHERE client_port IN "
        f"({server_ports(pooler)})) ORDER BY 1"
    ).splitlines()


def server_ports(pooler: Pooler) -> str:
    """The ports of the pooler's own connections to the server, from its console."""
    done = subprocess.run(
        ["psql", "-X", "-A", "-t", "-F", "\t", pooler.url("pgbouncer"), "-c", "SHOW SERVERS"],
        capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # type, user, database, state, addr, port, local_addr, local_port, …
    ports = [line.split("\t")[7] for line in done.stdout.splitlines()]
    return ",".join(ports) or "0"


def test_only_listening_goes_past_the_pooler(stack: Stack, pooler: Pooler, accepted: Callable[[], Accepted]) -> None:
    accepted()
    listens = stack.environment.get("MARTLET_NOTIFY") != "off"
    until(lambda: through(stack, pooler) == (["martlet/listen"] if listens else []), "nothing but LISTEN is direct")


def test_everything_is_well_says_the_check(stack: Stack) -> None:
    assert "failed" not in stack.martlet("check")


def test_many_sends_and_their_order(
    stack: Stack, accepted: Callable[[], Accepted], chat: Callable[..., Chat]
) -> None:
    them = accepted()
    one, other = chat(them.applicant, 0), chat(them.representative, 1)
    for number in range(50):
        one.say(them.room, f"m{number}", f"message {number} 👋" * (1 + number % 3 * 40))
    seqs = [one.wait("ack", id=f"m{number}")["seq"] for number in range(50)]
    assert seqs == list(range(seqs[0], seqs[0] + 50))
    assert [frame["seq"] for frame in other.messages(them.room, 50)] == seqs


@pytest.mark.parametrize("more", [{}, {"ignore_startup_parameters": "options"}], ids=["refuses", "drops"])
def test_a_pooler_that_nobody_told_of_is_told_of_in_a_sentence(tmp_path: Path, more: dict[str, str]) -> None:
    url = os.environ["MARTLET_TEST_DATABASE_URL"]
    plain = Stack(tmp_path, url)
    plain.database += "_unaware"
    plain.sql(f"CREATE DATABASE {plain.database}", "postgres")
    unknown = Pooler(tmp_path, url, **more)
    unknown.restart()
    environment = {"MARTLET_DATABASE_URL": unknown.url(plain.database), "MARTLET_NOTIFY": "off"}
    plain.environment.update(environment)
    try:
        assert POOLER_MET in plain.martlet("check", succeeds=False)
        assert POOLER_MET in plain.martlet("migrate", succeeds=False)
        for process in (plain.gateways[0], plain.workers[0], plain.extra_chat("unaware", {})[0]):
            process.environment.update(environment)
            process.start()
            try:
                until(lambda: POOLER_MET in process.tail(), f"{process.name} says so")
            finally:
                process.kill()
    finally:
        unknown.stop()
        plain.sql(f"DROP DATABASE {plain.database} WITH (FORCE)", "postgres")


@pytest.mark.parametrize("program", ["martlet-gateway", "martlet-chat", "martlet-worker", "martlet"])
def test_a_pooler_without_another_way_needs_a_decision(tmp_path: Path, program: str) -> None:
    plain = Stack(tmp_path, os.environ["MARTLET_TEST_DATABASE_URL"])
    environment = {**os.environ, **plain.environment, "MARTLET_DATABASE_POOLER": "transaction"}
    command = [str(plain.binaries / program), *(["migrate"] if program == "martlet" else [])]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=90)
    assert done.returncode == 78 and "MARTLET_DATABASE_DIRECT_URL" in done.stderr, done
