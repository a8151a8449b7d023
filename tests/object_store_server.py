"""An S3 server in this process for tests, which can fail as stores fail, and counts what it is asked.

It answers by moto, or hands each request on to another S3 server, whose address TEST_S3_ENDPOINT has.
"""

import http.client
import os
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, nullcontext, redirect_stdout
from io import StringIO
from socket import SHUT_RDWR, socket
from typing import Any
from urllib.parse import urlsplit

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

KEY_ID, SECRET = "AKIA5tStoreKeyIdQ3", "9sKq2storeSecretXw7"
# what happens to a request: nothing is done; it is done but nobody hears of it; half of the answer comes; it takes long
FAULTS = ("error", "unheard", "cut", "slow")
OTHER_SERVER = os.environ.get("TEST_S3_ENDPOINT", "")  # without sign-in, as http://host:port
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
        self.ignores_conditions = False  # of writes
        # conditional writes of moto are not atomic between threads
        self.app, self.one_at_a_time = (behind.app, behind.one_at_a_time) if behind else _application()
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True, request_handler=_Quiet)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

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
        if self.ignores_conditions:
            environ = {n: v for n, v in environ.items() if n not in ("HTTP_IF_NONE_MATCH", "HTTP_IF_MATCH")}
        said: list[Any] = []
        with self.one_at_a_time:
            body = b"".join(self.app(environ, lambda *stated: said.append(stated)))
        if fault == "unheard":
            environ["werkzeug.socket"].shutdown(SHUT_RDWR)
            raise ConnectionResetError
        start(said[0][0], [pair for pair in said[0][1] if pair[0].lower() != "connection"])
        return _half(body, environ["werkzeug.socket"]) if fault == "cut" and body else [body]


def _application() -> tuple[Any, Any]:
    """What answers requests, and the lock that is held meanwhile."""
    if OTHER_SERVER:
        return _hand_on, nullcontext()
    return DomainDispatcherApplication(create_backend_app), threading.Lock()


def _hand_on(environ: dict[str, Any], start: Any) -> list[bytes]:
    headers = {name[5:].replace("_", "-"): value for name, value in environ.items() if name.startswith("HTTP_")}
    headers |= {"Content-Type": environ["CONTENT_TYPE"]} if environ.get("CONTENT_TYPE") else {}
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    with closing(http.client.HTTPConnection(urlsplit(OTHER_SERVER).netloc, timeout=60)) as connection:
        connection.request(environ["REQUEST_METHOD"], environ["RAW_URI"], body, headers)
        answer = connection.getresponse()
        kept = [(name, value) for name, value in answer.getheaders() if name.lower() != "transfer-encoding"]
        start(f"{answer.status} {answer.reason}", kept)
        return [answer.read()]


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
