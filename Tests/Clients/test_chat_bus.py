"""What the chat costs the database it shares: NOTIFY holds nobody up, an idle chat writes nothing, and the number of
channels is the same for one room and for thousands."""

import asyncio
import re
from typing import Iterator

import pytest

from chatstack import ChatStack, chat_stack
from crowd import Crowd
from waiting import until

SEED = 20261203
LOOKS = 200
IDLE_SECONDS = 5
CHANNELS_MAX = 4
ROOMS = 5_000

# The most transactions that were seen to wait for the lock by which NOTIFY serialises commits (heavyweight, on database
# 0: async.c, PreCommit_Notify), of so many looks.
WAITERS = f"""
CREATE TEMP TABLE seen (waiting integer);
DO $$ BEGIN
  FOR look IN 1..{LOOKS} LOOP
    INSERT INTO seen SELECT count(*) FROM pg_locks
    WHERE locktype = 'object' AND classid = 'pg_database'::regclass AND objid = 0 AND NOT granted;
    PERFORM pg_sleep(0.01);
  END LOOP;
END $$;
SELECT max(waiting) FROM seen
"""

@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatStack]:
    with chat_stack(tmp_path_factory.mktemp("bus")) as running:
        yield running


def test_an_idle_chat_writes_nothing(stack: ChatStack) -> None:
    async def idle() -> None:
        async with Crowd(stack, 30, 1, 5, SEED):
            # The server's own background work after what was written before may still write some.
            await asyncio.to_thread(until, lambda: wal(stack) == 0, f"{IDLE_SECONDS} s pass without a byte of WAL", 90)

    asyncio.run(idle())


def wal(stack: ChatStack) -> int:
    """Bytes of WAL that came within the time."""
    before = stack.sql("SELECT pg_current_wal_insert_lsn()")
    stack.sql(f"SELECT pg_sleep({IDLE_SECONDS})")
    return int(stack.sql(f"SELECT pg_current_wal_insert_lsn() - '{before}'::pg_lsn"))


def test_notify_makes_no_queue_of_commits(stack: ChatStack) -> None:
    async def load() -> None:
        async with Crowd(stack, 60, 30, 10, SEED + 1) as crowd:
            crowd.write(200)
            await crowd.more()
            waiting = int(await asyncio.to_thread(stack.sql, WAITERS))
            await crowd.settle()
            # A process commits one batch at a time, so whoever waits, waits for the other chats at most.
            assert waiting < len(stack.chats)

    asyncio.run(load())


def test_channels_are_few_whatever_the_rooms(stack: ChatStack) -> None:
    async def listen() -> None:
        async with Crowd(stack, 10, 1, ROOMS // 10, SEED + 2, rooms_each=50):
            listening = await asyncio.to_thread(
                stack.sql, "SELECT query FROM pg_stat_activity WHERE application_name = 'martlet/listen'")
            statements = listening.splitlines()
            assert len(statements) == len(stack.chats)
            for statement in statements:
                assert 1 <= len(re.findall("LISTEN", statement)) <= CHANNELS_MAX, statement

    asyncio.run(listen())


def test_ten_thousand_rows_of_one_transaction_wake_nobody_by_themselves(stack: ChatStack) -> None:
    """Whoever writes them may wake, once: see `RoomsTests` for a batch of sends."""
    room = stack.rooms([[account.id for account in stack.accounts(100)]])[0]
    listen = "LISTEN martlet_chat; LISTEN martlet_work; LISTEN martlet_session; "
    rows = (
        f"INSERT INTO messages (room_id, seq, sender_id, kind, body) SELECT {room}, n, 0, 'system', 'x' "
        "FROM generate_series(1, 10000) n; "
        f"UPDATE rooms SET last_seq = 10000 WHERE id = {room}; "
        f"UPDATE room_members SET last_read_seq = 1 WHERE room_id = {room}; "
        f"INSERT INTO room_changes (room_ids) SELECT ARRAY[{room}] FROM generate_series(1, 10000); "
        "INSERT INTO work_items (kind, payload, run_at) SELECT 'none', '{}', now() + interval '1 day' "
        "FROM generate_series(1, 10000)"
    )
    assert "notification" not in stack.sql(listen + rows)
    assert stack.sql(listen + "NOTIFY martlet_work; NOTIFY martlet_work").count("notification") == 1


def test_nothing_in_the_schema_notifies(stack: ChatStack) -> None:
    """No trigger, so that whoever changes ten thousand rows wakes once or not at all."""
    functions = "SELECT proname FROM pg_proc WHERE prosrc ILIKE '%notify%' AND pronamespace = 'public'::regnamespace"
    assert stack.sql(functions) == ""
