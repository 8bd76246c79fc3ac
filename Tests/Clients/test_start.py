"""Programs that do not serve: asked for something else, or unable to. Each says so to whoever started it."""

import os
import re
import subprocess
from typing import Callable
from urllib.parse import urlsplit

import pytest
import requests

from stack import ROOT, Stack, free_ports


def run(stack: Stack, program: str, *arguments: str, **more: str) -> subprocess.CompletedProcess:
    """A program to its end, with the settings of the stack's own services."""
    environment = {**os.environ, **stack.environment, **more}
    return subprocess.run(
        [str(stack.binaries / program), *arguments], env=environment, cwd=ROOT, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=60)


def loopback(port: int) -> str:
    return f"127.0.0.1:{port}"


def everywhere(port: int) -> str:
    return f"0.0.0.0:{port}"


@pytest.mark.parametrize("address", [loopback, everywhere])
@pytest.mark.parametrize(
    "program, setting, whose",
    [
        ("martlet-chat", "MARTLET_HTTP_ADDRESS", lambda stack: stack.gateway_urls[0]),
        ("martlet-gateway", "MARTLET_HTTP_ADDRESS", lambda stack: stack.chat_bases[0]),
        ("martlet-worker", "MARTLET_ADMIN_ADDRESS", lambda stack: stack.gateways[0].ready),
        ("martlet-chat", "MARTLET_INTERNAL_ADDRESS",
         lambda stack: f"http://{stack.chats[0].environment['MARTLET_INTERNAL_ADDRESS']}"),
    ],
    ids=["a gateway's", "a chat's", "an admin's", "an internal"])
def test_a_port_on_which_another_service_listens_is_not_shared(
    stack: Stack, program: str, setting: str, whose: Callable[[Stack], str], address: Callable[[int], str]
) -> None:
    port = urlsplit(whose(stack)).port
    assert port
    settings = {
        "MARTLET_HTTP_ADDRESS": loopback(free_ports(1)[0]), "MARTLET_INTERNAL_ADVERTISED": "127.0.0.1:1",
        setting: address(port)}
    done = run(stack, program, **settings)
    assert done.returncode == 1, done.stderr
    last = done.stderr.splitlines()[-1]
    assert last == (
        f"{program}: could not start: {address(port)} is taken: something listens there already. "
        f"End that, or set {setting} to another port.")
    for base, path, service in (
        (stack.gateway_urls[0], "/api/jobs", "gateway"), (stack.chat_bases[0], "/socket.io/?EIO=4", "chat")
    ):
        for _ in range(8):
            answer = requests.get(base + path, timeout=10)
            assert answer.status_code != 404, f"the {service} answers, and nobody else"


SERVICES = ["martlet-gateway", "martlet-chat", "martlet-worker"]


def bare(stack: Stack, program: str, *arguments: str) -> subprocess.CompletedProcess:
    """A program without any settings: it could not serve if it tried."""
    return subprocess.run(
        [str(stack.binaries / program), *arguments], env={"PATH": os.environ["PATH"]}, cwd="/",
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("program", [*SERVICES, "martlet"])
def test_a_program_says_what_it_is(stack: Stack, program: str) -> None:
    version = bare(stack, program, "--version")
    assert (version.returncode, version.stderr) == (0, "")
    assert re.fullmatch(rf"{program} \d+\.\d+\.\d+(-dev)?\n", version.stdout)
    for word in ("--help", "-h"):
        told = bare(stack, program, word)
        assert (told.returncode, told.stderr) == (0, "") and told.stdout.startswith(f"Usage: {program} ")
    assert bare(stack, program, "--help").stdout.count("\n") < 25
    if program in SERVICES:
        for word in ("environment variables", "README", "health", "78"):
            assert word in told.stdout


@pytest.mark.parametrize("program", SERVICES)
@pytest.mark.parametrize("words", [["--port", "80"], ["serve"], ["health", "--now"], ["--version", "--help"], [""]])
def test_what_a_service_does_not_take_starts_nothing(stack: Stack, program: str, words: list[str]) -> None:
    done = run(stack, program, *words)
    wrong = words[-1] if words[0] in ("health", "--version") else words[0]
    assert (done.returncode, done.stdout) == (64, "")
    assert done.stderr == f'{program}: it takes no "{wrong}"; {program} --help says what it takes\n'
