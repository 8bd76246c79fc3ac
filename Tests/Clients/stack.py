"""The real processes on free loopback ports: two of each service, a mail catcher, and Caddy as the front door."""

import itertools
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import requests

from waiting import until

ROOT = Path(__file__).resolve().parents[2]
READY_SECONDS_MAX = 180  # Two cores may be shared with a build.
STOP_SECONDS_MAX = 60
LOG_LINES_SHOWN = 30  # Of each process, when a test fails.


PORT_MIN = 10_000
given_ports: set[int] = set()


def free_ports(count: int) -> list[int]:
    """Loopback ports that nobody listens on, none of which comes twice in a run.

    They lie below those that the system gives to whoever asks for any: one of these could be a client's own by the time
    that a service takes it, or takes it again after it was killed.
    """
    end = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found: list[int] = []
    while len(found) < count:
        port = secrets.randbelow(end - PORT_MIN) + PORT_MIN if end > 2 * PORT_MIN else 0
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
            port = listener.getsockname()[1]
        if port not in given_ports:
            given_ports.add(port)
            found.append(port)
    return found


class Process:
    """One child process with its log file; it can be killed and started again on the same ports."""

    def __init__(self, name: str, command: list[str], environment: dict[str, str], ready: str, folder: Path):
        self.name = name
        self.command = command
        self.environment = environment
        self.ready = ready
        self.log = folder / f"{name}.log"
        self.child: subprocess.Popen | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            # setpriv becomes the command: if the tests are killed, the kernel ends the process too.
            self.child = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *self.command],
                env={**os.environ, **self.environment},
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def is_ready(self) -> bool:
        assert self.child
        code = self.child.poll()
        if code is not None:
            raise AssertionError(f"{self.name} ended with status {code}:\n{self.tail()}")
        try:
            return requests.get(self.ready, timeout=10).status_code < 500
        except requests.RequestException:
            return False

    def wait_ready(self) -> None:
        until(self.is_ready, f"{self.name} is ready", READY_SECONDS_MAX)

    def kill(self) -> None:
        """SIGKILL: the process gets no chance to finish anything."""
        assert self.child
        self.child.kill()
        self.child.wait(STOP_SECONDS_MAX)

    def restart(self) -> None:
        self.start()
        self.wait_ready()

    def stop(self) -> int:
        """SIGTERM and the exit status; killed when it takes too long."""
        assert self.child
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
        try:
            return self.child.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.name} did not stop within {STOP_SECONDS_MAX} seconds of SIGTERM")

    def tail(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(lines[-LOG_LINES_SHOWN:])


class Pooler(Process):
    """pgbouncer, Debian's, in transaction mode before a server."""

    def __init__(self, folder: Path, server_url: str, **more: str):
        server = urlsplit(server_url)
        (self.port,) = free_ports(1)
        user, password = server.username or "postgres", server.password or ""
        settings = {
            "listen_addr": "127.0.0.1", "listen_port": str(self.port), "unix_socket_dir": "", "auth_type": "any",
            "pool_mode": "transaction", "max_client_conn": "500", "default_pool_size": "20", **more,
        }
        way = {"host": server.hostname, "port": server.port, "user": user, "password": password}
        lines = ["[databases]", "* = " + " ".join(f"{name}={value}" for name, value in way.items() if value)]
        lines += ["[pgbouncer]", *(f"{name} = {value}" for name, value in settings.items())]
        configuration = folder / "pgbouncer.ini"
        configuration.touch(0o600)
        configuration.write_text("\n".join(lines) + "\n")
        # It refuses to be root, whatever it could do then.
        command = ["pgbouncer", *(["-u", "postgres"] if os.geteuid() == 0 else []), str(configuration)]
        super().__init__("pgbouncer", command, {"PATH": f"{os.environ['PATH']}:/usr/sbin"}, "", folder)

    def is_ready(self) -> bool:
        assert self.child and self.child.poll() is None, self.tail()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def url(self, database: str) -> str:
        return f"postgres://postgres@127.0.0.1:{self.port}/{database}?sslmode=disable"


class Stack:
    """Everything that `make run` starts, from the debug build, on a database of its own."""

    numbers = itertools.count(1)

    def __init__(self, folder: Path, server_url: str, pooler: "Pooler | None" = None, listens: bool = True):
        """`pooler`: what stands before PostgreSQL; then LISTEN takes the direct way, or nobody listens."""
        self.folder = folder
        self.binaries = ROOT / ".build/debug"
        self.server_url = server_url
        # Each its own: the one that ends first drops it.
        self.database = f"martlet_clients_{os.getpid()}_{next(self.numbers)}"
        self.database_url = f"{server_url.rpartition('/')[0]}/{self.database}"
        ports = free_ports(15)
        self.front, smtp, mail_page, *ports = ports
        gateways, worker_admins, chats, internal = ports[0:4], ports[4:6], ports[6:10], ports[10:12]
        self.base = f"http://127.0.0.1:{self.front}"
        self.mail_folder = folder / "mail"
        secret = folder / "secret"
        secret.write_text(secrets.token_hex(32))
        common = {
            "MARTLET_DATABASE_URL": self.database_url,
            "MARTLET_SECRET_FILE": str(secret),
            "MARTLET_PUBLIC_URL": self.base,
            "MARTLET_STORE": str(folder / "store"),
            "MARTLET_SMTP_URL": f"smtp://127.0.0.1:{smtp}",
            "MARTLET_MAIL_FROM": "Martlet <martlet@localhost>",
            # All people of the tests come from one address.
            "MARTLET_REGISTRATIONS_PER_MINUTE": "10000",
            "MARTLET_SIGN_IN_FAILURES_PER_MINUTE": "1000",
            "MARTLET_ACCOUNT_REQUESTS_PER_MINUTE": "10000",
        }
        if pooler:
            common["MARTLET_DATABASE_URL"] = pooler.url(self.database)
            common["MARTLET_DATABASE_POOLER"] = "transaction"
            common["MARTLET_DATABASE_DIRECT_URL"] = self.database_url
        if not listens:
            common["MARTLET_NOTIFY"] = "off"
        self.environment = common
        self.gateway_urls = [f"http://127.0.0.1:{port}" for port in gateways[0::2]]
        self.chat_bases = [f"http://127.0.0.1:{port}" for port in chats[0::2]]
        self.chat_urls = [f"ws://127.0.0.1:{port}/chat" for port in chats[0::2]]

        def service(name: str, program: str, port: int | None, admin: int, more: dict[str, str]) -> Process:
            environment = {**common, "MARTLET_ADMIN_ADDRESS": f"127.0.0.1:{admin}", **more}
            if port:
                environment["MARTLET_HTTP_ADDRESS"] = f"127.0.0.1:{port}"
            ready = f"http://127.0.0.1:{admin}/readyz"
            return Process(name, [str(self.binaries / program)], environment, ready, folder)

        catcher = [sys.executable, str(ROOT / "ops/scripts/mail-catcher"), "--smtp", f"127.0.0.1:{smtp}"]
        catcher += ["--http", f"127.0.0.1:{mail_page}", "--dir", str(self.mail_folder)]
        self.mail = Process("mail", catcher, {}, f"http://127.0.0.1:{mail_page}/", folder)
        self.gateways = [
            service(f"gateway-{number}", "martlet-gateway", port, admin, {})
            for number, port, admin in zip((1, 2), gateways[0::2], gateways[1::2])
        ]
        self.chats = [
            service(
                f"chat-{number}", "martlet-chat", port, admin,
                {"MARTLET_INSTANCE": f"chat-{number}", "MARTLET_INTERNAL_ADDRESS": f"127.0.0.1:{for_chats}"},
            )
            for number, port, admin, for_chats in zip((1, 2), chats[0::2], chats[1::2], internal)
        ]
        self.workers = [
            service(f"worker-{number}", "martlet-worker", None, admin, {})
            for number, admin in zip((1, 2), worker_admins)
        ]
        proxy = {
            "MARTLET_SITE": f":{self.front}",
            "MARTLET_BIND": "127.0.0.1",
            "MARTLET_GATEWAYS": " ".join(f"127.0.0.1:{port}" for port in gateways[0::2]),
            "MARTLET_CHATS": " ".join(f"127.0.0.1:{port}" for port in chats[0::2]),
            "XDG_CONFIG_HOME": str(folder / "caddy"),
            "XDG_DATA_HOME": str(folder / "caddy"),
        }
        caddy = shutil.which("caddy") or "caddy"
        command = [caddy, "run", "--config", str(ROOT / "ops/Caddyfile"), "--adapter", "caddyfile"]
        self.proxy = Process("proxy", command, proxy, f"{self.base}/openapi.json", folder)
        self.processes = [self.mail, *self.gateways, *self.chats, *self.workers, self.proxy]

    def sql(self, statement: str, database: str | None = None) -> str:
        """One statement as the superuser; its rows as text, columns parted by tabs."""
        url = urlsplit(self.server_url)
        # By the environment: arguments are seen by everybody on the machine.
        connection = {
            "PGHOST": url.hostname or "127.0.0.1",
            "PGPORT": str(url.port or 5432),
            "PGUSER": url.username or "postgres",
            "PGPASSWORD": url.password or "",
            "PGDATABASE": database or self.database,
        }
        command = ["psql", "-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-c", statement]
        done = subprocess.run(command, env={**os.environ, **connection}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def martlet(self, *arguments: str, succeeds: bool = True) -> str:
        """The operator's command; what it printed. A wrong outcome fails the test with its words."""
        done = subprocess.run(
            [str(self.binaries / "martlet"), *arguments],
            env={**os.environ, **self.environment},
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert (done.returncode == 0) == succeeds, f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def extra_chat(self, name: str, more: dict[str, str]) -> tuple[Process, str]:
        """A chat that no proxy knows, with settings of its own, and where it listens."""
        port, admin = free_ports(2)
        environment = {
            **self.environment,
            "MARTLET_INSTANCE": name,
            "MARTLET_HTTP_ADDRESS": f"127.0.0.1:{port}",
            "MARTLET_ADMIN_ADDRESS": f"127.0.0.1:{admin}",
            **more,
        }
        command = [str(self.binaries / "martlet-chat")]
        process = Process(name, command, environment, f"http://127.0.0.1:{admin}/readyz", self.folder)
        return process, f"http://127.0.0.1:{port}"

    def create_database(self) -> None:
        (self.folder / "store").mkdir()
        self.sql(f"DROP DATABASE IF EXISTS {self.database} WITH (FORCE)", "postgres")
        self.sql(f"CREATE DATABASE {self.database}", "postgres")
        self.martlet("migrate")

    def start(self) -> None:
        self.create_database()
        for process in self.processes[:-1]:
            process.start()
        for process in self.processes[:-1]:
            process.wait_ready()
        self.proxy.restart()

    def stop(self) -> None:
        for process in (self.proxy, *self.chats):
            # These give their clients a few seconds, which are the same ones when all are told together.
            if process.child and process.child.poll() is None:
                process.child.send_signal(signal.SIGTERM)
        for process in reversed(self.processes):
            if process.child:
                process.stop()
        self.sql(f"DROP DATABASE IF EXISTS {self.database} WITH (FORCE)", "postgres")

    def logs(self) -> str:
        return "\n".join(f"----- {process.name}\n{process.tail()}" for process in self.processes)
