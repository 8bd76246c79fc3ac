"""A gateway and a worker beside the stack, on a database and a store of their own."""

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import requests

from images import png
from people import Person
from stack import ROOT, Process, Stack, free_ports
from waiting import until

UNAVAILABLE = "Files cannot be stored or read at the moment. Try again later."
ANSWER_SECONDS_MAX = 45  # A store that is away is given up sooner than that.


class LoneSite:
    def __init__(self, stack: Stack, folder: Path, name: str, settings: dict[str, str]):
        self.stack = stack
        self.database = f"martlet_{name}_{os.getpid()}"
        port, admin, worker_admin = free_ports(3)
        self.port = port
        self.base = f"http://127.0.0.1:{port}"
        self.admin = f"http://127.0.0.1:{admin}"
        self.environment = {
            **stack.environment,
            "MARTLET_DATABASE_URL": f"{stack.server_url.rpartition('/')[0]}/{self.database}",
            "MARTLET_HTTP_ADDRESS": f"127.0.0.1:{port}",
            **settings,
        }

        def service(kind: str, admin: int) -> Process:
            environment = {**self.environment, "MARTLET_ADMIN_ADDRESS": f"127.0.0.1:{admin}"}
            program = str(stack.binaries / f"martlet-{kind}")
            return Process(f"{name}-{kind}", [program], environment, f"http://127.0.0.1:{admin}/readyz", folder)

        self.gateway = service("gateway", admin)
        self.worker = service("worker", worker_admin)

    def start(self) -> None:
        self.stack.sql(f"DROP DATABASE IF EXISTS {self.database} WITH (FORCE)", "postgres")
        self.stack.sql(f"CREATE DATABASE {self.database}", "postgres")
        self.martlet("migrate")
        for process in (self.gateway, self.worker):
            process.start()
        for process in (self.gateway, self.worker):
            process.wait_ready()

    def stop(self) -> None:
        for process in (self.gateway, self.worker):
            if process.child:
                process.stop()
        self.stack.sql(f"DROP DATABASE IF EXISTS {self.database} WITH (FORCE)", "postgres")

    def martlet(self, *arguments: str, **more: str) -> subprocess.CompletedProcess:
        program = str(self.stack.binaries / "martlet")
        environment = {**os.environ, **self.environment, **more}
        return subprocess.run(
            [program, *arguments], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=300
        )

    def readiness(self) -> tuple[int, str]:
        answer = requests.get(f"{self.admin}/readyz", timeout=10)
        return answer.status_code, answer.text

    def metric(self, name: str) -> float:
        lines = requests.get(f"{self.admin}/metrics", timeout=10).text.splitlines()
        return next(float(line.split()[-1]) for line in lines if line.startswith(f"{name} "))

    def upload(self, somebody: Person, name: str, content: bytes, kind: str) -> dict[str, Any]:
        file = somebody.ask("POST", "/api/upload", 200, files=[("files", (name, content, kind))])[0]

        def look() -> dict[str, Any] | None:
            now = somebody.get(f"/api/upload/files/{file['id']}")
            return None if "state" in now else now

        return file if "state" not in file else until(look, "the file has been looked at")

    def refused(self, somebody: Person) -> None:
        begin = time.monotonic()
        files = [("files", ("a.png", png(10, 10), "image/png"))]
        answer = somebody.http.post(f"{self.base}/api/upload", files=files, timeout=90)
        assert answer.status_code == 503 and answer.json()["error"]["message"] == UNAVAILABLE
        assert int(answer.headers["Retry-After"]) > 0
        assert time.monotonic() - begin < ANSWER_SECONDS_MAX
