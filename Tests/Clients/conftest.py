"""Fixtures: one stack of real processes for the whole run, and new people for each test."""

import os
import shutil
from pathlib import Path
from typing import Iterator

import pytest

from stack import ROOT, Stack

SHARED = ROOT.parent / "shared"


def pytest_configure(config: pytest.Config) -> None:
    for program in ("martlet", "martlet-gateway", "martlet-chat", "martlet-worker"):
        if not (ROOT / ".build/debug" / program).exists():
            raise pytest.UsageError(f".build/debug/{program} is missing: run make test, or swift build")
    if not os.environ.get("MARTLET_TEST_DATABASE_URL"):
        raise pytest.UsageError("MARTLET_TEST_DATABASE_URL is not set: run make test, or ops/scripts/postgres start")
    for program in ("caddy", "psql"):
        if not shutil.which(program):
            raise pytest.UsageError(f"{program} is missing: run ops/scripts/packages test")


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    running = Stack(tmp_path_factory.mktemp("stack"), os.environ["MARTLET_TEST_DATABASE_URL"])
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A failed test shows the ends of all logs: the reason is usually in another process."""
    report = (yield).get_result()
    stack = getattr(item, "funcargs", {}).get("stack")
    if report.failed and stack:
        report.sections.append(("logs of the processes", stack.logs()))
