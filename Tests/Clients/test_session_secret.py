"""The session secret is changed as docs/operations/deployment.md says it, while people are signed in."""

import os
import re
import subprocess
from pathlib import Path
from typing import Iterator

import pytest
import requests

from images import png
from lone_site import LoneSite
from people import Person
from stack import ROOT, Stack

PAGE = (ROOT / "docs/operations/deployment.md").read_text()
STEPS = dict(re.findall(r"^```sh\n# secret: (\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """As a deployment has them."""
    folder = tmp_path / "secrets"
    subprocess.run([str(ROOT / "ops/scripts/secrets"), str(folder)], check=True, stdout=subprocess.DEVNULL)
    return folder


@pytest.fixture
def site(stack: Stack, tmp_path: Path, secrets: Path) -> Iterator[LoneSite]:
    site = LoneSite(
        stack, tmp_path, "secret", {
            "MARTLET_STORE": str(tmp_path / "store"),
            "MARTLET_SECRET_FILE": str(secrets / "session"),
            "MARTLET_SECRET_FORMER_FILE": str(secrets / "session_former"),
        })
    try:
        site.start()
        yield site
    finally:
        site.stop()


def test_nobody_signs_in_again_while_the_secret_is_changed_and_whoever_has_not_must_when_it_is_gone(
    site: LoneSite, secrets: Path
) -> None:
    def roll(step: str) -> None:
        subprocess.run(
            ["bash", "-euo", "pipefail", "-c", STEPS[step]], env={**os.environ, "MARTLET_SECRETS": str(secrets)},
            cwd=ROOT, check=True)
        for process in (site.gateway, site.worker):
            assert process.stop() == 0
            process.restart()

    def status(somebody: Person) -> int:
        return somebody.http.get(f"{site.base}/api/users/me", timeout=10).status_code

    assert list(STEPS) == ["another", "change", "forget"]
    first = (secrets / "session").read_text()
    before = Person.register(site.base, "before")
    address = site.base + site.upload(before, "a.png", png(20, 20), "image/png")["url"]
    roll("another")
    second = (secrets / "session_former").read_text()
    assert (secrets / "session").read_text() == first and len(second) == 64 and second != first
    between = Person.register(site.base, "between")
    roll("change")
    assert (secrets / "session").read_text() == second and (secrets / "session_former").read_text() == first
    after = Person.register(site.base, "after")
    assert [status(each) for each in (before, between, after)] == [200, 200, 200]
    assert requests.get(address, timeout=10).status_code == 200
    # Those that are not rolled yet take what the others sign already.
    settings = site.gateway.environment
    present, former = settings["MARTLET_SECRET_FILE"], settings["MARTLET_SECRET_FORMER_FILE"]
    settings |= {"MARTLET_SECRET_FILE": former, "MARTLET_SECRET_FORMER_FILE": present}
    assert site.gateway.stop() == 0
    site.gateway.restart()
    assert status(after) == 200
    settings |= {"MARTLET_SECRET_FILE": present, "MARTLET_SECRET_FORMER_FILE": former}
    roll("forget")
    assert (secrets / "session_former").read_text() == ""
    assert [status(each) for each in (before, between, after)] == [401, 401, 200]
    assert requests.get(address, timeout=10).status_code in (401, 403, 404)
    assert {each.name for each in secrets.iterdir() if each.name.startswith("session")} == {
        "session", "session_former"}
