"""README's tour, typed as it stands there."""

import re
import subprocess
import sys

from inbox import Inbox, text
from stack import ROOT, Stack

TOUR_SECONDS_MAX = 120


def blocks() -> list[str]:
    tour = (ROOT / "README.md").read_text().partition("## A tour of five minutes")[2].partition("\n## ")[0]
    return re.findall(r"```sh\n(.*?)```", tour, re.DOTALL)


def typed(stack: Stack) -> str:
    """The blocks as one script, each after a line with its number; bash stops where a command fails."""
    script = "set -e\n" + "".join(f"echo '== {number}'\n{block}" for number, block in enumerate(blocks()))
    assert "base=http://localhost:8080\n" in script and "-m pip install" in script
    script = script.replace("http://localhost:8080\n", f"{stack.base}\n")
    script = re.sub(r".*-m pip install.*\n", "", script)  # Among the tests' own libraries.
    script = script.replace(".local/venv/bin/python", sys.executable)
    done = subprocess.run(
        ["bash", "-c", script], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=TOUR_SECONDS_MAX)
    assert done.returncode == 0 and done.stderr == "", done.stdout + done.stderr
    return done.stdout


def test_the_tour_goes_as_it_is_written(stack: Stack) -> None:
    _, functions, search, register, alert, publish, apply, accept, talk, strapi = re.split(r"== \d+\n", typed(stack))
    assert (functions, register) == ("", "") and '"data": [' in search
    assert '"state":"active"' in alert and publish == "Ornithologist\n"
    assert '"kind":"initiated"' in apply and accept == "accepted\n" and talk.count("ops/scripts/chat ey") == 2
    assert strapi.startswith("/uploads/placeholder_logo.png\n") and "'ok': True" in strapi

    mail = Inbox(stack.mail_folder, "@example.org").wait("Ornithologist at Martin & Daughters")
    lines = text(mail).splitlines()
    assert lines[-2].startswith("You get this mail because") and lines[-1].startswith("End this alert: http")
