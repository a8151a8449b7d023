"""A local endpoint in place of a language model's: it answers each request with what a function makes of it."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = dict[str, Any]


@dataclass
class Raw:
    """An answer as it is sent: a status and bytes."""

    status: int
    data: bytes = b"no"


def refusal(said: str) -> Raw:
    """Returns the answer of a model that refuses."""
    message = {"content": None, "refusal": said}
    return Raw(200, json.dumps({"choices": [{"message": message}]}).encode())


@dataclass
class ChatServer:
    """`answer` returns the content of an answer, which is written as JSON, or a `Raw`; `seen` holds the requests.

    `tokens` returns the tokens of a request and of its answer.
    """

    answer: Callable[[Body], Any]
    tokens: Callable[[Body, str], tuple[int, int]] = lambda _, __: (900, 50)
    seen: list[Body] = field(default_factory=list)
    url: str = ""


@contextmanager
def serving(server: ChatServer) -> Iterator[ChatServer]:
    """Serves on a free port of this machine until the block ends; no proxy may stand between."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.seen.append(body)
            answer = server.answer(body)
            if not isinstance(answer, Raw):
                content = json.dumps(answer)
                tokens_in, tokens_out = server.tokens(body, content)
                usage = {"prompt_tokens": tokens_in, "completion_tokens": tokens_out}
                value = {"choices": [{"message": {"content": content}}], "usage": usage}
                answer = Raw(200, json.dumps(value).encode())
            self.send_response(answer.status)
            self.send_header("Content-Length", str(len(answer.data)))
            self.end_headers()
            self.wfile.write(answer.data)

        def log_message(self, *_: Any) -> None:
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    server.url = f"http://127.0.0.1:{running.server_port}/v1"
    try:
        yield server
    finally:
        running.shutdown()
        running.server_close()


def schema_of(body: Body) -> Body:
    """Returns the properties of the JSON schema that a request asks for."""
    properties: Body = body["response_format"]["json_schema"]["schema"]["properties"]
    return properties
