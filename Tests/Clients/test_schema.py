"""Services beside a schema that is older or newer than they are, as in a rolling upgrade."""

import re
from pathlib import Path
from typing import Iterator

import pytest
import requests

from lone_site import LoneSite
from people import Person
from stack import ROOT, Process, Stack, free_ports
from waiting import until

NEWEST = sorted(path.name for path in (ROOT / "migrations").glob("*.sql"))[-1][:14]


@pytest.fixture
def site(stack: Stack, tmp_path: Path) -> Iterator[LoneSite]:
    site = LoneSite(stack, tmp_path, "schema", {})
    site.start()
    yield site
    site.stop()


@pytest.fixture
def services(site: LoneSite, tmp_path: Path) -> Iterator[list[Process]]:
    port, admin = free_ports(2)
    environment = {
        **site.environment, "MARTLET_HTTP_ADDRESS": f"127.0.0.1:{port}", "MARTLET_ADMIN_ADDRESS": f"127.0.0.1:{admin}",
        "MARTLET_INSTANCE": "schema"}
    program = str(site.stack.binaries / "martlet-chat")
    chat = Process("schema-chat", [program], environment, f"http://127.0.0.1:{admin}/readyz", tmp_path)
    chat.restart()
    yield [site.gateway, site.worker, chat]
    chat.stop()


def schema_line(process: Process) -> tuple[int, str]:
    answer = requests.get(process.ready, timeout=10)
    return answer.status_code, next((line for line in answer.text.splitlines() if line.startswith("schema: ")), "")


def test_a_newer_schema_is_told_and_served(site: LoneSite, services: list[Process]) -> None:
    assert [schema_line(each) for each in services] == [(200, "")] * 3
    site.stack.sql("INSERT INTO schema_migrations VALUES ('29990101000000')", site.database)
    for each in services:
        each.stop()
        each.restart()
        status, line = schema_line(each)
        assert status == 200 and f"newer than this program (29990101000000, it knows {NEWEST})" in line, line
    assert Person.register(site.base, "late").jwt


def test_a_service_beside_an_older_schema_is_ready_as_soon_as_it_is_migrated(
    site: LoneSite, services: list[Process]
) -> None:
    for each in services:
        each.stop()
    assert site.martlet("migrate", "down").returncode == 0
    for each in services:
        each.start()
    older = r"schema: the schema is older than this program \(\d{14}, it needs "
    told = re.compile(rf"{older}{NEWEST}\): run martlet migrate")
    for each in services:
        def says() -> bool:
            try:
                status, line = schema_line(each)
            except requests.RequestException:
                return False
            return status == 503 and told.fullmatch(line) is not None

        until(says, f"{each.name} says that the schema is older")
    assert site.martlet("migrate").returncode == 0
    for each in services:
        each.wait_ready()
        assert schema_line(each) == (200, "")
