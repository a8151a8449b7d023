"""An S3 server in this process for tests, which can fail as stores fail, and counts what it is asked."""

import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from socket import SHUT_RDWR, socket
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

KEY_ID, SECRET = "AKIA5tStoreKeyIdQ3", "9sKq2storeSecretXw7"
# what happens to a request: nothing is done; it is done but nobody hears of it; half of the answer comes; it takes long
FAULTS = ("error", "unheard", "cut", "slow")
Fault = Callable[[str, str], str | None]


class _Quiet(WSGIRequestHandler):
    def log(self, type: str, message: str, *args: Any) -> None:
        return


class Server:
    """An S3 server at `endpoint`. `fault` is asked for each request, with its method and path.

    `behind`: the server is a second way to the buckets of that one, with faults of its own.
    """

    def __init__(self, behind: "Server | None" = None) -> None:
        self.requests: list[tuple[str, str]] = []
        self.fault: Fault = lambda method, path: None
        self.app = behind.app if behind else DomainDispatcherApplication(create_backend_app)
        # conditional writes of moto are not atomic between threads
        self.one_at_a_time = behind.one_at_a_time if behind else threading.Lock()
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True, request_handler=_Quiet)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def make_bucket(self, name: str) -> None:
        urllib.request.urlopen(urllib.request.Request(f"{self.endpoint}/{name}", method="PUT")).close()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        self.requests.append((method, path))
        fault = self.fault(method, path)
        if fault == "slow":
            time.sleep(0.3)
        if fault == "error":
            start("503 Slow Down", [("Content-Length", "0")])
            return []
        said: list[Any] = []
        with self.one_at_a_time:
            body = b"".join(self.app(environ, lambda *stated: said.append(stated)))
        if fault == "unheard":
            environ["werkzeug.socket"].shutdown(SHUT_RDWR)
            raise ConnectionResetError
        start(said[0][0], [pair for pair in said[0][1] if pair[0].lower() != "connection"])
        return _half(body, environ["werkzeug.socket"]) if fault == "cut" and body else [body]


def _half(body: bytes, connection: socket) -> Iterator[bytes]:
    yield body[: len(body) // 2]
    connection.shutdown(SHUT_RDWR)
    raise ConnectionResetError


@contextmanager
def serving(behind: Server | None = None) -> Iterator[Server]:
    with redirect_stdout(StringIO()):
        server = Server(behind)
    try:
        yield server
    finally:
        server.stop()
