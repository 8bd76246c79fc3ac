"""The operator's command on a running stack: pauses, cancels, completion, five migrations at once."""

import os
import select
import subprocess
from pathlib import Path
from typing import Callable

import pytest

from images import png
from people import Person
from stack import ROOT, Stack
from waiting import until


def complete(stack: Stack, *words: str) -> list[str]:
    """What bash offers for the last of these words."""
    script = f"""
        source <({stack.binaries / 'martlet'} completion bash)
        complete -p martlet >/dev/null || exit 1
        COMP_WORDS=(martlet "$@")
        COMP_CWORD=$#
        _martlet 2>/dev/null
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize(
    "words, offered",
    [
        (["qu"], ["queue"]),
        (["queue", "dr"], ["drain"]),
        (["queue", "pause", "--ki"], ["--kind"]),
        (["queue", "pause", "--kind", "send_d"], ["send_digests"]),
        (["queue", "pause", "--kind", "=", "send_d"], ["send_digests"]),
        (["queue", "ls", "--state", "="], ["ready", "running", "waiting", "dead"]),
        (["queue", "ls", "--limit", "5"], []),
        (["backup", "--v"], ["--verify"]),
        (["completion", "z"], ["zsh"]),
        (["nonsense", "x"], []),
    ],
)
def test_bash_completes(stack: Stack, words: list[str], offered: list[str]) -> None:
    assert complete(stack, *words) == offered


def test_a_tab_in_a_real_bash_completes(stack: Stack) -> None:
    """Through readline, on a terminal of its own."""
    master, slave = os.openpty()
    environment = {**os.environ, "PATH": f"{stack.binaries}:{os.environ['PATH']}", "TERM": "dumb", "PS1": "ready> "}
    shell = subprocess.Popen(
        ["bash", "--norc", "--noprofile", "-i"], stdin=slave, stdout=slave, stderr=slave, env=environment,
        start_new_session=True)
    seen = b""

    def shows(text: bytes) -> bool:
        nonlocal seen
        while select.select([master], [], [], 0)[0]:
            seen += os.read(master, 4096)
        return text in seen

    try:
        os.write(master, b"source <(martlet completion bash); echo so''urced\n")
        until(lambda: shows(b"sourced\r\nready> "), "bash has the completion")
        os.write(master, b"martlet queue ls --stat\trea\t")
        until(lambda: shows(b"martlet queue ls --state ready"), f"the tabs have completed: {seen!r}")
    finally:
        shell.kill()
        shell.wait(10)
        os.close(master)
        os.close(slave)


def test_workers_obey_a_pause_and_a_resume_at_once(
    stack: Stack, person: Callable[[str], Person]
) -> None:
    ada = person("ada")

    def upload() -> int:
        return ada.ask("POST", "/api/upload", 200, files=[("files", ("a.png", png(9, 9), "image/png"))])[0]["id"]

    def state(media: int) -> str:
        return stack.sql(f"SELECT state FROM media WHERE id = {media}")

    stack.martlet("queue", "pause", "--kind", "process_upload")
    try:
        assert "process_upload is paused" in stack.martlet("queue")
        stack.workers[0].stop()
        stack.workers[0].restart()  # A pause outlives its workers.
        held = [upload() for _ in range(3)]
        # Something later goes all the way through the queue.
        other = ada.ask("POST", "/api/auth/forgot-password", 200, json={"email": ada.email})
        assert other is not None
        until(lambda: stack.sql("SELECT count(*) FROM work_items WHERE kind = 'send_account_mail'") == "0", "mails go")
        assert {state(media) for media in held} == {"pending"}
        refused = stack.martlet("queue", "drain", "--kind", "process_upload", succeeds=False)
        assert "is paused by the operator" in refused
    finally:
        stack.martlet("queue", "resume", "--kind", "process_upload")
    assert "Nothing of it is left." in stack.martlet("queue", "drain", "--kind", "process_upload")
    assert {state(media) for media in held} == {"ready"}


def test_the_tables_of_a_queue_are_aligned(stack: Stack) -> None:
    lines = stack.martlet("queue", "ls").splitlines()
    assert lines[0] == "The queue is empty." or lines[0].startswith("KIND")


def test_five_migrations_at_once_migrate_once(stack: Stack, tmp_path: Path) -> None:
    database = f"martlet_five_{os.getpid()}"
    stack.sql(f"CREATE DATABASE {database}", "postgres")
    url = f"{stack.server_url.rpartition('/')[0]}/{database}"
    environment = {**os.environ, **stack.environment, "MARTLET_DATABASE_URL": url}
    try:
        running = [
            subprocess.Popen(
                [str(stack.binaries / "martlet"), "migrate"], env=environment, cwd=ROOT, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True)
            for _ in range(5)
        ]
        said = [each.communicate(timeout=120)[0] for each in running]
        assert [each.returncode for each in running] == [0] * 5, said
        files = sorted(path.name for path in (ROOT / "migrations").glob("*.sql"))
        applied = [line.split(":")[0] for text in said for line in text.splitlines() if ": applied in" in line]
        assert sorted(applied) == files, "each of them once, whoever did it"
        assert stack.sql("SELECT count(*) FROM schema_migrations", database) == str(len(files))
    finally:
        stack.sql(f"DROP DATABASE {database} WITH (FORCE)", "postgres")


def test_doctor_finds_an_object_that_is_gone(stack: Stack, person: Callable[[str], Person]) -> None:
    ada = person("ada")
    media = ada.ask("POST", "/api/upload", 200, files=[("files", ("a.png", png(8, 8), "image/png"))])[0]["id"]
    until(lambda: stack.sql(f"SELECT state FROM media WHERE id = {media}") == "ready", "it has been looked at")
    key = stack.sql(f"SELECT storage_key FROM media WHERE id = {media}")
    path = Path(stack.environment["MARTLET_STORE"]) / key
    # Other tests of this run may have left something of theirs.
    program = [str(stack.binaries / "martlet"), "doctor"]
    well = subprocess.run(program, env={**os.environ, **stack.environment}, cwd=ROOT, capture_output=True, text=True)
    assert key not in well.stdout and "ok      every object" in well.stdout
    content = path.read_bytes()
    path.unlink()
    try:
        assert key in stack.martlet("doctor", succeeds=False)
    finally:
        path.write_bytes(content)


def test_check_says_what_is_wrong_with_a_store_and_how_to_mend_it(stack: Stack, tmp_path: Path) -> None:
    program = str(stack.binaries / "martlet")
    # /proc takes no files from anybody, root included.
    environment = {**os.environ, **stack.environment, "MARTLET_STORE": "/proc/self"}
    done = subprocess.run([program, "check"], env=environment, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 69 and "failed  store" in done.stdout and "        -> " in done.stdout
    assert "PostgreSQL 15" in done.stdout
    before = sorted(Path(stack.environment["MARTLET_STORE"]).rglob("*"))
    assert "failed" not in stack.martlet("check")
    assert sorted(Path(stack.environment["MARTLET_STORE"]).rglob("*")) == before, "nothing stays behind"


def test_a_database_that_is_away_is_69_with_a_remedy(stack: Stack) -> None:
    environment = {**os.environ, **stack.environment, "MARTLET_DATABASE_URL": "postgres://a:secret@127.0.0.1:1/b"}
    done = subprocess.run(
        [str(stack.binaries / "martlet"), "queue"], env=environment, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 69 and "martlet check" in done.stderr and "secret" not in done.stderr
