"""A relay before PostgreSQL that a test can silence or take away, for one process only."""

import select
import socket
import threading
from contextlib import suppress

PIECE_BYTES_MAX = 65536
LOOK_SECONDS = 0.02  # How soon a change of state is seen by connections that are at rest.


class Relay:
    def __init__(self, host: str, port: int):
        self.upstream = (host, port)
        self.silenced = threading.Event()
        self.gone = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def silent(self) -> None:
        """Connections stay and new ones are taken, but nothing is heard any more: a frozen server."""
        self.silenced.set()

    def away(self) -> None:
        """Connections are cut, and new ones at once: a server that has been stopped."""
        self.gone.set()

    def back(self) -> None:
        self.silenced.clear()
        self.gone.clear()

    def close(self) -> None:
        self.away()
        self.listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            if self.gone.is_set():
                return
            with socket.create_connection(self.upstream) as server:
                other = {client: server, server: client}
                while not self.gone.is_set():
                    if self.silenced.is_set():
                        select.select([], [], [], LOOK_SECONDS)
                        continue
                    for end in select.select([client, server], [], [], LOOK_SECONDS)[0]:
                        piece = end.recv(PIECE_BYTES_MAX)
                        if not piece:
                            return
                        other[end].sendall(piece)
