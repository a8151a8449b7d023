"""A line between a program and a server on loopback, which can be slow, silent or cut."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.spark_cluster import HOST

SLOW_SECONDS = 0.01  # that each piece of data waits in a slow line: an answer comes 20 ms after its question
_PIECE = 1 << 16


class Line:
    """Hands on what comes to `port`. `state`: "whole", "slow" or "cut", where connections end and none begins."""

    def __init__(self, to_port: int) -> None:
        self.state = "whole"
        self._to_port = to_port
        self._socket = socket.create_server((HOST, 0))
        self.port: int = self._socket.getsockname()[1]
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Ends every connection, and lets none begin until `state` is another one."""
        self.state = "cut"
        for end in tuple(self._open):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def stop(self) -> None:
        """Ends the line."""
        self.cut()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._socket.accept()
                try:
                    far = socket.create_connection((HOST, self._to_port), timeout=5)
                except OSError:
                    near.close()
                    continue
                if self.state == "cut":
                    near.close()
                    far.close()
                    continue
                far.settimeout(None)
                self._open |= {near, far}
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._hand_on, args=(one, other), daemon=True).start()

    def _hand_on(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while piece := one.recv(_PIECE):
                if self.state == "slow":
                    time.sleep(SLOW_SECONDS)
                other.sendall(piece)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
            self._open.discard(end)


@contextmanager
def line(to_port: int) -> Iterator[Line]:
    made = Line(to_port)
    try:
        yield made
    finally:
        made.stop()
