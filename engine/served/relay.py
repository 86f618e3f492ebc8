"""A second clock between client and server: a relay on this machine that adds known delays."""

import socket
import threading
import time
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit

from engine.models.checkpoint import Server

PIECE = 2**16  # bytes that are read at once
PATIENCE_S = 10.0


class Relay:
    """Inside a `with`: passes one request to the server, and its reply back, piece by piece.  The
    first piece of the reply waits for `first_s`, each later one for `each_s`.  `sent_ms` has the
    moment at which each was sent on, on the second clock (time.monotonic)."""

    def __init__(self, server: Server, first_s: float, each_s: float) -> None:
        self.server, self.first_s, self.each_s = server, first_s, each_s
        self.sent_ms: list[float] = []

    def __enter__(self) -> Self:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.settimeout(PATIENCE_S)
        self._thread = threading.Thread(target=self._pass, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._listening.close()
        self._thread.join(PATIENCE_S)

    @property
    def url(self) -> str:
        return f"http://{self._host}{urlsplit(self.server.url).path}"

    @property
    def _host(self) -> str:
        return f"127.0.0.1:{self._listening.getsockname()[1]}"

    def _pass(self) -> None:
        with suppress(OSError):  # the client sees a connection that ends
            here, _ = self._listening.accept()
            to = urlsplit(self.server.url)
            place = (to.hostname or "", to.port or 80)
            with here, socket.create_connection(place, self.server.timeout_s) as there:
                back = threading.Thread(target=self._back, args=(there, here), daemon=True)
                back.start()
                own, known = self._host.encode(), to.netloc.encode()
                while data := here.recv(PIECE):
                    there.sendall(data.replace(own, known) if own else data)
                    own = b""  # the host stands in the first piece
                with suppress(OSError):
                    there.shutdown(socket.SHUT_WR)
                back.join(self.server.timeout_s)

    def _back(self, there: socket.socket, here: socket.socket) -> None:
        with suppress(OSError):
            while data := there.recv(PIECE):
                time.sleep(self.each_s if self.sent_ms else self.first_s)
                self.sent_ms.append(1000 * time.monotonic())
                here.sendall(data)
        with suppress(OSError):  # also after the server's connection broke
            here.shutdown(socket.SHUT_RDWR)
