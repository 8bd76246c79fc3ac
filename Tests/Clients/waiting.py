"""Waiting for what another process does: always with a deadline, never for a fixed time."""

import time
from typing import Callable, TypeVar

T = TypeVar("T")

WAIT_SECONDS_MAX = 30  # Generous: two cores are shared with the services and PostgreSQL.
LOOK_SECONDS = 0.05  # Between two looks.


def until(look: Callable[[], T], what: str, seconds: float = WAIT_SECONDS_MAX) -> T:
    """Looks again and again until `look` returns something true, and returns that; fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {seconds} seconds")
        time.sleep(LOOK_SECONDS)
