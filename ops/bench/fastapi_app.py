"""The same answers as the gateway's, in FastAPI on uvicorn and asyncpg: what many would write."""

import os
import time
from contextlib import asynccontextmanager
from typing import AsyncIterator

import asyncpg
from fastapi import FastAPI, HTTPException

QUERY = open(os.environ["BENCH_QUERY_FILE"]).read()


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    app.state.pool = await asyncpg.create_pool(os.environ["BENCH_DATABASE_URL"], min_size=8, max_size=8)
    app.state.counted_until, app.state.total = 0.0, 0
    yield
    await app.state.pool.close()


app = FastAPI(lifespan=lifespan)


@app.get("/_health", status_code=204)
async def health() -> None:
    """What the front door asks those behind it."""


@app.get("/api/jobs/{posting}")
async def posting_by_id(posting: int) -> dict:
    row = await app.state.pool.fetchrow(QUERY, posting)
    if row is None:
        raise HTTPException(404)
    return {"data": {"id": posting, "attributes": {key: plain(value) for key, value in row.items()}}, "meta": {}}


PAGE = """
    SELECT p.id, p.title AS name, p.description, p.description AS description_html, p.employment_type AS type,
           p.environment, p.state, p.place, p.remote, p.lat, p.lng,
           p.salary_min, p.salary_max, p.salary_currency, p.salary_period, p.skills, p.apply_url,
           p.published_at, p.valid_through, p.created_at AS "createdAt", p.updated_at AS "updatedAt",
           c.id AS company_id, c.name AS company_name, c.email, c.phone, c.address, c.category, c.bio, c.website,
           c.created_at AS company_created_at, c.updated_at AS company_updated_at,
           l.hash AS logo_hash, l.ext AS logo_ext
    FROM job_postings p JOIN companies c ON c.id = p.company_id LEFT JOIN media l ON l.id = c.logo_media_id
    WHERE p.state = 'published' AND (p.valid_through IS NULL OR p.valid_through > now())
    ORDER BY p.id DESC LIMIT 25
"""
COUNT = """
    SELECT count(*) FROM job_postings WHERE state = 'published' AND (valid_through IS NULL OR valid_through > now())
"""
POSTING = ("name", "description", "description_html", "type", "environment", "state", "place", "remote", "lat", "lng",
           "salary_min", "salary_max", "salary_currency", "salary_period", "skills", "apply_url",
           "published_at", "valid_through", "createdAt", "updatedAt")
COMPANY = ("email", "phone", "address", "category", "bio", "website")
FORMATS = ("thumbnail", "small", "medium", "large")


@app.get("/api/jobs")
async def postings() -> dict:
    """25 postings with company and logo. A total that is a second old will do, as it does for the gateway."""
    rows = await app.state.pool.fetch(PAGE)
    now = time.monotonic()
    if now >= app.state.counted_until:
        app.state.counted_until = now + 1
        app.state.total = await app.state.pool.fetchval(COUNT)
    pagination = {"page": 1, "pageSize": 25, "pageCount": -(-app.state.total // 25), "total": app.state.total}
    return {"data": [entry(row) for row in rows], "meta": {"pagination": pagination}}


def entry(row: asyncpg.Record) -> dict:
    url = f"/uploads/{row['logo_hash']}{row['logo_ext']}" if row["logo_hash"] else "/uploads/placeholder_logo.png"
    logo = {"name": "logo", "url": url, "formats": {name: {"url": url} for name in FORMATS}}
    company = {key: row[key] for key in COMPANY}
    company |= {"name": row["company_name"], "createdAt": row["company_created_at"]}
    company |= {"updatedAt": row["company_updated_at"], "logo": {"data": {"id": 0, "attributes": logo}}}
    attributes = {key: row[key] for key in POSTING}
    attributes["company"] = {"data": {"id": row["company_id"], "attributes": company}}
    return {"id": row["id"], "attributes": attributes}


def plain(value: object) -> object:
    """What JSON has no word for, bytea in hex."""
    return value.hex() if isinstance(value, bytes) else value
