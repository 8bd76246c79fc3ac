"""Other queues, with work that does nothing: puts items in, takes them all out again, and says how long that took.

    queue_peers.py pgqueuer|procrastinate DATABASE-URL COUNT BATCH
"""

import asyncio
import json
import sys
import time
from datetime import timedelta

PUT_IN = 1000  # Items of one statement.
POOL = 20  # Of procrastinate: it takes items one by one, so more connections and tasks are its way to batches.


async def pgqueuer(url: str, count: int, batch: int) -> float:
    import asyncpg
    from pgqueuer import PgQueuer
    from pgqueuer.db import AsyncpgDriver
    from pgqueuer.queries import Queries
    from pgqueuer.types import QueueExecutionMode

    connection = await asyncpg.connect(url)
    queries = Queries(AsyncpgDriver(connection))
    await queries.install()
    for _ in range(0, count, PUT_IN):
        await queries.enqueue(["nothing"] * PUT_IN, [None] * PUT_IN, [0] * PUT_IN)
    queue = PgQueuer(AsyncpgDriver(connection))
    done = 0

    @queue.entrypoint("nothing")
    async def nothing(_: object) -> None:
        nonlocal done
        done += 1

    begun = time.monotonic()
    await queue.run(batch_size=batch, mode=QueueExecutionMode.drain, dequeue_timeout=timedelta(seconds=1))
    taken = time.monotonic() - begun
    if done != count:
        raise SystemExit(f"pgqueuer did {done} of {count} items.")
    await connection.close()
    return taken


async def procrastinate(url: str, count: int, batch: int) -> float:
    import procrastinate as queue

    app = queue.App(connector=queue.PsycopgConnector(conninfo=url, min_size=POOL, max_size=POOL))
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        done = 0

        @app.task(name="nothing")
        async def nothing() -> None:
            nonlocal done
            done += 1

        for _ in range(0, count, PUT_IN):
            await nothing.batch_defer_async(*[{}] * PUT_IN)
        begun = time.monotonic()
        await app.run_worker_async(
            concurrency=batch, wait=False, install_signal_handlers=False, delete_jobs="successful"
        )
        taken = time.monotonic() - begun
    if done != count:
        raise SystemExit(f"procrastinate did {done} of {count} items.")
    return taken


if __name__ == "__main__":
    _, name, url, count, batch = sys.argv
    run = {"pgqueuer": pgqueuer, "procrastinate": procrastinate}[name]
    print(json.dumps({"seconds": asyncio.run(run(url, int(count), int(batch)))}))
