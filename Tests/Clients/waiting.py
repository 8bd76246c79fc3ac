"""Waiting for what another process does: always with a deadline, never for a fixed time."""

import time
from typing import Callable, TypeVar

T = TypeVar("T")

# Generous, as all that wait is: two slow cores may be shared with the services, PostgreSQL and other tests.
WAIT_SECONDS_MAX = 90
# Of what is promised within a second, and does not happen at all where it fails: sessions that end, tokens that are
# refused. A test cannot tell a service that is late from a machine that is.
AT_ONCE_SECONDS_MAX = 20
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
