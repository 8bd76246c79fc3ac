"""A real clamd (Debian's) with a signature file of our own: nothing is downloaded, and it knows one virus, EICAR's."""

import os
import shutil
import signal
import socket
from pathlib import Path

from stack import Process
from waiting import until

# The test file of eicar.org, in two pieces: as one it would be found in this file, too.
EICAR = rb"X5O!P%@AP[4\PZX54(P^)7CC)7}$EICAR-" + b"STANDARD-ANTIVIRUS-TEST-FILE!$H+H*"
SIGNATURE = "Martlet.Eicar.UNOFFICIAL"  # clamd adds the end, as it is not ClamAV's own.
CLAMD = shutil.which("clamd", path=f"{os.environ['PATH']}:/usr/sbin")
STREAM_MAX = "25M"  # As Debian sets it: the largest upload.


class Clamd(Process):
    """On a socket and a port of its own; it can be stopped, killed, halted and started again."""

    def __init__(self, folder: Path, port: int, **settings: str):
        signatures = folder / "signatures"
        signatures.mkdir()
        # Name, any type of file, anywhere in it, the bytes.
        (signatures / "martlet.ndb").write_text(f"Martlet.Eicar:0:*:{EICAR.hex()}\n")
        self.socket = folder / "clamd.ctl"
        self.port = port
        lines = {
            "Foreground": "yes", "LocalSocket": str(self.socket), "TCPSocket": str(port), "TCPAddr": "127.0.0.1",
            "DatabaseDirectory": str(signatures), "TemporaryDirectory": str(folder), "MaxThreads": "4",
            "StreamMaxLength": STREAM_MAX, "ConcurrentDatabaseReload": "no", **settings,
        }
        configuration = folder / "clamd.conf"
        configuration.write_text("".join(f"{name} {value}\n" for name, value in lines.items()))
        assert CLAMD, "clamd is missing: run ops/scripts/packages test"
        super().__init__("clamd", [CLAMD, "-c", str(configuration)], {}, "", folder)

    def is_ready(self) -> bool:
        assert self.child and self.child.poll() is None, self.tail()
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(5)
                connection.connect(str(self.socket))
                connection.sendall(b"zPING\0")
                return connection.recv(100) == b"PONG\0"
        except OSError:
            return False

    def halt(self) -> None:
        """It takes connections, as the kernel does that, and does nothing with them."""
        assert self.child
        self.child.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        assert self.child
        self.child.send_signal(signal.SIGCONT)

    def end(self) -> None:
        """Whatever state it is in."""
        if self.child and self.child.poll() is None:
            self.kill()
        until(lambda: not self.child or self.child.poll() is not None, "clamd has ended")
