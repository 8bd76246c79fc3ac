"""Three chats and their PostgreSQL are killed, paused and cut off from each other while people write: nothing is lost,
doubled or reordered, and every member's log equals the table."""

import asyncio
import signal
from typing import Iterator

import pytest

from chatstack import ChatStack, chat_stack
from crowd import Crowd, restarted

SEED = 20261202
MEMBERS, WRITERS, ROOMS = 60, 30, 10
SENDS_PER_SECOND = 100
ROUNDS = 100
GAP_SECONDS_MAX = 5.0  # Where a listener does not come back it has no end.
PATIENCE_SECONDS = 1.5
PAUSED_SENDS = 600  # Acknowledged by the others while one is paused: about six seconds.

# Ends every listening connection and waits until each instance has a new one, so many times.
END_LISTENERS = """
DO $$
DECLARE there integer;
BEGIN
  FOR turn IN 1..{rounds} LOOP
    PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'martlet/listen';
    LOOP
      PERFORM pg_sleep(0.01);
      PERFORM pg_stat_clear_snapshot();
      SELECT count(*) INTO there FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = 'martlet/listen' AND state = 'idle';
      EXIT WHEN there >= {instances};
    END LOOP;
  END LOOP;
END $$
"""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatStack]:
    with chat_stack(tmp_path_factory.mktemp("faults")) as running:
        yield running


def test_killed_chats_lose_nothing_under_load(stack: ChatStack) -> None:
    async def kill() -> None:
        async with Crowd(stack, MEMBERS, WRITERS, ROOMS, SEED) as crowd:
            crowd.write(SENDS_PER_SECOND)
            await crowd.more()
            for process in stack.chats:
                process.kill()
                await crowd.more()
                await restarted(process)
            await crowd.more()
            await crowd.settle()
            assert all(member.connections > 1 for member in crowd.members), "each was on one of them"

    asyncio.run(kill())


def test_listeners_that_are_ended_a_hundred_times_cost_moments_only(stack: ChatStack) -> None:
    async def end() -> None:
        async with Crowd(stack, MEMBERS, WRITERS, ROOMS, SEED + 1) as crowd:
            crowd.write(SENDS_PER_SECOND)
            await crowd.more()
            statement = END_LISTENERS.format(rounds=ROUNDS, instances=len(stack.chats))
            await asyncio.to_thread(stack.sql, statement)
            await crowd.more()
            await crowd.settle()
            assert [member.connections for member in crowd.members] == [1] * MEMBERS
            # A writer's acknowledgement needs no listener, so it tells what this machine takes for the rest.
            gap = max(crowd.heard_after) - max(crowd.acknowledged_after)
            assert gap < GAP_SECONDS_MAX, (max(crowd.heard_after), max(crowd.acknowledged_after))

    asyncio.run(end())


def test_a_crashed_postgres_loses_nothing_that_was_acknowledged(stack: ChatStack) -> None:
    async def crash() -> None:
        async with Crowd(stack, MEMBERS, WRITERS, ROOMS, SEED + 2) as crowd:
            crowd.write(SENDS_PER_SECOND)
            for _ in range(2):
                await crowd.more()
                stack.cluster.crash()
                await asyncio.to_thread(stack.cluster.start)
            await crowd.more()
            await crowd.settle()

    asyncio.run(crash())


def test_a_paused_chat_holds_nobody_up_and_goes_on(stack: ChatStack) -> None:
    async def pause() -> None:
        async with Crowd(stack, MEMBERS, WRITERS, ROOMS, SEED + 3) as crowd:
            crowd.write(SENDS_PER_SECOND)
            crowd.patience_seconds = PATIENCE_SECONDS
            await crowd.more()
            child = stack.chats[1].child
            assert child
            child.send_signal(signal.SIGSTOP)
            try:
                await crowd.more(PAUSED_SENDS)
            finally:
                child.send_signal(signal.SIGCONT)
            await crowd.more()
            await crowd.settle()
            # Whoever only listens waited, and has all of it on the old connection.
            assert any(member.connections == 1 for member in crowd.members[WRITERS:])

    asyncio.run(pause())
