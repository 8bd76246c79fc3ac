"""The same answer as the gateway's GET /api/jobs/:id, in FastAPI on uvicorn and asyncpg: what many would write."""

import os
from contextlib import asynccontextmanager
from typing import AsyncIterator

import asyncpg
from fastapi import FastAPI, HTTPException

QUERY = open(os.environ["BENCH_QUERY_FILE"]).read()


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    app.state.pool = await asyncpg.create_pool(os.environ["BENCH_DATABASE_URL"], min_size=8, max_size=8)
    yield
    await app.state.pool.close()


app = FastAPI(lifespan=lifespan)


@app.get("/api/jobs/{posting}")
async def posting_by_id(posting: int) -> dict:
    row = await app.state.pool.fetchrow(QUERY, posting)
    if row is None:
        raise HTTPException(404)
    return {"data": {"id": posting, "attributes": {key: plain(value) for key, value in row.items()}}, "meta": {}}


def plain(value: object) -> object:
    """What JSON has no word for, bytea in hex."""
    return value.hex() if isinstance(value, bytes) else value
