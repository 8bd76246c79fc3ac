"""The commands of a page in docs/operations, as they stand there.

    .local/venv/bin/python Tests/Clients/runbook.py deployment.md build     one step, with the environment as it is
"""

import os
import re
import subprocess
import sys
from pathlib import Path

from stack import ROOT

STEP_SECONDS_MAX = 240  # A roll takes two minutes.
IMAGES_SECONDS_MAX = 1200  # The limit is six minutes on two cores that nobody else uses.


class Runbook:
    """A page's blocks of shell that begin with `# step: NAME`."""

    def __init__(self, page: str):
        text = (ROOT / "docs/operations" / page).read_text()
        blocks = re.findall(r"^```sh\n# step: ([a-z-]+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        self.steps = dict(blocks)
        assert len(self.steps) == len(blocks) > 0, "each step has a name of its own"
        self.done: list[str] = []

    def run(self, step: str, user: str | None = None, seconds: int = STEP_SECONDS_MAX, **variables: str) -> str:
        """What the step printed. `user`: whose it is, when we are root."""
        command = ["bash", "-euo", "pipefail", "-c", self.steps[step]]
        if user and os.geteuid() == 0:
            command = ["runuser", "-u", user, "--", *command]
        done = subprocess.run(
            command, env={**os.environ, **variables}, cwd=Path("/") if user else ROOT, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=seconds)
        assert done.returncode == 0, f"{step}: status {done.returncode}\n{done.stdout}\n{done.stderr}"
        self.done.append(step)
        return done.stdout.strip()


if __name__ == "__main__":
    try:
        print(Runbook(sys.argv[1]).run(sys.argv[2], seconds=IMAGES_SECONDS_MAX))
    except AssertionError as error:
        sys.exit(f"{sys.argv[1]}: {error}")
