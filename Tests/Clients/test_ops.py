"""The scripts behind make: what they promise when things are in their way."""

import contextlib
import os
import re
import shutil
import signal
import smtplib
import socket
import subprocess
import sys
import tempfile
import threading
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Iterator

import pytest
import requests

from stack import ROOT, Process, free_ports
from waiting import until

SCRIPTS = ROOT / "ops/scripts"


def run(*command: str, succeeds: bool = True) -> str:
    """A script's words; a stack trace or an unexpected status fails the test."""
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
    assert (done.returncode == 0) == succeeds, f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return (done.stdout + done.stderr).strip()


def ask(url: str, statement: str) -> str:
    return run("psql", "-X", "-A", "-t", "-w", "-c", statement, url)


@pytest.fixture
def cluster() -> Iterator[tuple[str, int]]:
    """A folder and a free port for ops/scripts/postgres."""
    # Not one of pytest's: another pytest of this machine closes their common folder to other users as it starts, and
    # root's cluster belongs to the user postgres, who would lose his files in the middle of a test.
    with tempfile.TemporaryDirectory(prefix="martlet-cluster-") as own:
        Path(own).chmod(0o711)
        folder = f"{own}/cluster"
        yield folder, free_ports(1)[0]
        run(str(SCRIPTS / "postgres"), "remove", folder)


def test_postgres_survives_a_kill_and_is_not_started_twice(cluster: tuple[str, int]) -> None:
    folder, port = cluster
    script = str(SCRIPTS / "postgres")
    run(script, "start", folder, str(port))
    url = run(script, "database", folder, "martlet")
    ask(url, "CREATE TABLE kept AS SELECT 42 AS answer")
    assert ask(url, "SHOW fsync") == "on" and ask(url, "SHOW synchronous_commit") == "on"

    assert run(script, "start", folder, str(port)) == "", "started already: nothing to say"
    server = int(run(script, "pid", folder))
    os.kill(server, signal.SIGKILL)
    run(script, "start", folder, str(port))
    assert ask(url, "SELECT answer FROM kept") == "42"

    # The pid of another program in the file, as after a reboot.
    run(script, "stop", folder)
    (Path(folder) / "data/postmaster.pid").write_text(f"{os.getpid()}\n")
    assert "does not run" in run(script, "pid", folder, succeeds=False)
    assert "is shut down" in Path(run(script, "log", folder)).read_text()
    run(script, "start", folder, str(port))
    assert ask(url, "SELECT answer FROM kept") == "42"


def test_postgres_asks_for_a_password_and_listens_on_loopback_only(cluster: tuple[str, int]) -> None:
    folder, port = cluster
    run(str(SCRIPTS / "postgres"), "start", folder, str(port))
    url = run(str(SCRIPTS / "postgres"), "url", folder)
    assert ask(url, "SHOW listen_addresses") == "127.0.0.1"
    without = re.sub(r":[0-9a-f]{32}@", "@", url)
    assert without != url
    assert "no password supplied" in run("psql", "-X", "-w", "-c", "SELECT 1", without, succeeds=False)


def test_postgres_says_in_a_sentence_what_is_wrong(cluster: tuple[str, int]) -> None:
    folder, port = cluster
    script = str(SCRIPTS / "postgres")
    with socket.create_server(("127.0.0.1", port)):
        said = run(script, "start", folder, str(port), succeeds=False)
    assert said == f"Port {port} is taken: give PostgreSQL in {folder} another one."
    assert "is not a port" in run(script, "start", folder, "http", succeeds=False)
    assert "There is no PostgreSQL" in run(script, "url", folder, succeeds=False)
    assert "Usage" in run(script, "dance", folder, succeeds=False)
    assert "Usage" in run(script, succeeds=False)


def test_postgres_works_in_a_folder_whose_path_is_too_long_for_a_socket(cluster: tuple[str, int]) -> None:
    folder, port = cluster
    Path(folder).mkdir(mode=0o711)
    deep = f"{folder}/{'deep' * 25}"
    run(str(SCRIPTS / "postgres"), "start", deep, str(port))
    url = run(str(SCRIPTS / "postgres"), "url", deep)
    sockets = Path(ask(url, "SHOW unix_socket_directories"))
    assert len(str(sockets)) < 60 and sockets.stat().st_mode & 0o777 == 0o700
    run(str(SCRIPTS / "postgres"), "remove", deep)
    assert not sockets.exists()


def test_packages_knows_its_groups_and_tells_what_is_missing(tmp_path: Path) -> None:
    assert run(str(SCRIPTS / "packages"), "--check", "build", "run", "test") == ""
    nothing = tmp_path / "dpkg"
    nothing.mkdir()
    (nothing / "status").touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DPKG_ADMINDIR", str(nothing))  # As on a machine that has none of them.
        missing = run(str(SCRIPTS / "packages"), "--check", "build", "run", succeeds=False).split()
    assert {"libuv1-dev", "postgresql-15", "caddy"} <= set(missing) and len(missing) == len(set(missing))
    assert "is not a group" in run(str(SCRIPTS / "packages"), "games", succeeds=False)


def test_secrets_are_made_once_and_kept(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    assert "database_url" in run(str(SCRIPTS / "secrets"), str(folder))
    made = {each.name: each.read_text() for each in folder.iterdir()}
    rooms = {"session_former", "s3_access_key", "s3_secret_key", "otlp_headers", "smtp_url", "smtp_ca"}
    assert {name for name, text in made.items() if text == ""} == rooms
    assert set(made) - rooms == {
        "session", "postgres_password", "replication_password", "grafana_password", "database_url", "pooler_url",
    }
    assert len(made["session"]) == 64
    assert all(made["postgres_password"] in made[each] for each in ("database_url", "pooler_url"))
    assert folder.stat().st_mode & 0o777 == 0o700, "the files are for the users of containers, not for others here"
    (folder / "session").unlink()
    made["smtp_url"] = "smtp://user:password@mail.example.org:587?starttls=required"
    (folder / "smtp_url").write_text(made["smtp_url"])
    run(str(SCRIPTS / "secrets"), str(folder))
    again = {each.name: each.read_text() for each in folder.iterdir()}
    assert again.pop("session") != made.pop("session") and again == made


def test_run_refuses_a_port_that_is_none() -> None:
    for port in ("x", "80", "65530", "-1"):
        assert "PORT must be a number" in run(str(SCRIPTS / "run"), port, succeeds=False)


@pytest.mark.parametrize("has_compose", [False, True])
def test_roll_says_that_compose_is_missing_and_only_then(tmp_path: Path, has_compose: bool) -> None:
    docker = tmp_path / "docker"
    version = "[[ $* != 'compose version' ]] || exit 0\n" if has_compose else ""
    docker.write_text(f"#!/bin/bash\n{version}echo 'unknown flag: --rm' >&2\nexit 125\n")
    docker.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        words = run(sys.executable, str(SCRIPTS / "roll"), succeeds=False)
    assert words.startswith("roll: ") and ("install Docker's Compose plugin" in words) != has_compose


def test_the_operators_command_works_on_what_run_has_made(tmp_path: Path) -> None:
    shutil.copytree(SCRIPTS, tmp_path / "ops/scripts")
    script = str(tmp_path / "ops/scripts/martlet")
    assert run(script, "queue", succeeds=False) == "Nothing is there yet: make run"
    made = {
        ".local/run.url": "http://localhost:8100\n",
        ".build/release/martlet": "#!/bin/bash\necho $MARTLET_DATABASE_URL $MARTLET_STORE $MARTLET_SMTP_URL $*\n",
        "ops/scripts/postgres": "#!/bin/bash\necho postgres://there\n",
    }
    for name, text in made.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    words = run(script, "user", "ls", "--json")
    assert words == f"postgres://there {tmp_path}/.local/store smtp://127.0.0.1:8108 user ls --json"


@pytest.mark.parametrize("changed", [False, True])
def test_migrate_builds_only_when_a_source_is_newer_than_what_run_built(tmp_path: Path, changed: bool) -> None:
    shutil.copytree(SCRIPTS, tmp_path / "ops/scripts")
    (tmp_path / "Sources").mkdir()
    (tmp_path / "Package.swift").touch()
    release = tmp_path / ".build/release"
    release.mkdir(parents=True)
    (release / ".martlet-built").touch()
    for program, words in {"swift": "compiled", "packages": "", "martlet": "migrated"}.items():
        path = {"swift": tmp_path, "packages": tmp_path / "ops/scripts", "martlet": release}[program] / program
        path.write_text(f"#!/bin/bash\necho {words} $*\n")
        path.chmod(0o755)
    stamp = (release / ".martlet-built").stat().st_mtime
    source = tmp_path / "Sources/new.swift"
    source.touch()
    os.utime(source, (stamp + 1, stamp + 1) if changed else (stamp - 1, stamp - 1))
    for older in (tmp_path / "Package.swift", tmp_path / "Sources"):
        os.utime(older, (stamp - 1, stamp - 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        patch.setenv("MARTLET_DATABASE_URL", "postgres://nobody@127.0.0.1:1/none")
        words = run(str(tmp_path / "ops/scripts/migrate"))
    assert words.endswith("migrated migrate") and ("compiled build -c release --product martlet" in words) == changed


class Answer(BaseHTTPRequestHandler):
    """Stands in for a service behind the front door."""

    def do_GET(self) -> None:  # noqa: N802, the library's name
        # As a service, to the front door's looks whether it is there.
        is_health = self.path == "/_health"
        body = b"" if is_health else f"{self.headers['X-Forwarded-For']} {self.path}".encode()
        self.send_response(204 if is_health else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:  # noqa: N802, the library's name
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, *arguments: object) -> None:
        pass


@contextlib.contextmanager
def answering(port: int) -> Iterator[None]:
    server = ThreadingHTTPServer(("127.0.0.1", port), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


def test_the_front_door_passes_a_dead_chat_by_and_says_503_when_nobody_is_there(tmp_path: Path) -> None:
    front, gateway, dead, alive = free_ports(4)
    environment = {
        "MARTLET_SITE": f":{front}",
        "MARTLET_BIND": "127.0.0.1",
        "MARTLET_GATEWAYS": f"127.0.0.1:{gateway}",
        "MARTLET_CHATS": f"127.0.0.1:{dead} 127.0.0.1:{alive}",
        "XDG_CONFIG_HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path),
    }
    command = [shutil.which("caddy") or "caddy", "run", "--config", str(ROOT / "ops/Caddyfile")]
    command += ["--adapter", "caddyfile"]
    base = f"http://127.0.0.1:{front}"
    proxy = Process("proxy", command, environment, f"{base}/chat", tmp_path)
    with answering(alive):
        proxy.restart()
        try:
            for _ in range(4):  # Round robin would come by the dead one.
                got = requests.get(f"{base}/chat?token=secret", headers={"X-Forwarded-For": "6.6.6.6"}, timeout=10)
                assert got.text == "127.0.0.1 /chat?token=secret", "the peer's own X-Forwarded-For is not believed"
            # What has a body cannot be tried twice, so the dead one must be known as that.
            def posted() -> bool:
                return requests.post(f"{base}/socket.io/", "2", timeout=10).status_code == 200

            until(lambda: all(posted() for _ in range(4)), "no POST goes to the dead chat")
            away = requests.get(f"{base}/api/jobs", timeout=15)
            assert away.status_code == 503 and away.headers["Retry-After"] == "5"
            assert away.json()["error"]["status"] == 503 and away.json()["data"] is None
            with answering(gateway):
                assert requests.get(f"{base}/api/jobs", timeout=15).status_code == 200
        finally:
            proxy.stop()
    assert "secret" not in proxy.log.read_text(), "query strings carry capabilities and stay out of logs"


def test_the_mail_catcher_keeps_mails_and_runs_none_of_their_markup(tmp_path: Path) -> None:
    smtp, page = free_ports(2)
    command = [sys.executable, str(SCRIPTS / "mail-catcher"), "--smtp", f"127.0.0.1:{smtp}"]
    command += ["--http", f"127.0.0.1:{page}", "--dir", str(tmp_path / "mail")]
    catcher = Process("mail", command, {}, f"http://127.0.0.1:{page}/", tmp_path)
    catcher.restart()
    try:
        mail = EmailMessage()
        mail["From"], mail["To"], mail["Subject"] = "a@example.org", "b@example.org", "<script>alert(1)</script>"
        mail.set_content("Look: http://localhost/u?a=1&b=2\n")
        mail.add_alternative("<img src=x onerror=alert(2)>", subtype="html")
        with smtplib.SMTP("127.0.0.1", smtp) as client:
            client.send_message(mail)
            files = list((tmp_path / "mail").glob("*.eml"))
            assert len(files) == 1, "acknowledged means written"
            with pytest.raises(smtplib.SMTPResponseException, match="552"):
                client.sendmail("a@example.org", "b@example.org", b"x" * (11 * 1024 * 1024))
        for path in ("/", f"/mail/{files[0].name}"):
            got = requests.get(f"http://localhost:{page}{path}", timeout=30)
            assert got.status_code == 200 and "&lt;script&gt;" in got.text
            assert "<script" not in got.text and "<img" not in got.text
            assert "default-src 'none'" in got.headers["Content-Security-Policy"]
        assert requests.get(f"http://localhost:{page}/mail/..%2Fsecret", timeout=30).status_code == 404
        foreign = requests.get(f"http://localhost:{page}/", headers={"Host": "evil.example"}, timeout=30)
        assert foreign.status_code == 403
    finally:
        assert catcher.stop() == 0
