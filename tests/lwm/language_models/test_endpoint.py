"""The OpenAI-compatible endpoint against a local server that refuses, breaks, delays and tells nonsense."""

import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.message import Message
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.core.errors import OpusError, SettingsError
from opus_pipelines.core.settings import Generation, OpenaiCompatible, Paths, Settings
from opus_pipelines.lwm.interface import Usage, backend_of
from opus_pipelines.lwm.language_models.backends import OpenaiCompatibleBackend
from opus_pipelines.lwm.language_models.chat_client import (
    EndpointError,
    Ledger,
    ModelRefused,
    SpendLimitReached,
    retry_after,
)
from opus_pipelines.lwm.language_models.prompts import AnswerError
from tests.lwm.language_models.lm_requests import request

KEY = "sk-very-secret"
Answer = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Gives the answers of `script` in turn, the last one for ever."""

    script: list[Answer]
    seen: list[tuple[dict[str, str], dict[str, Any]]]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.seen.append((dict(self.headers), body))
        answers = self.script
        (answers.pop(0) if len(answers) > 1 else answers[0])(self)

    def log_message(self, *_: Any) -> None:
        pass

    def send(self, status: int, data: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def says(content: Any, usage: bool = True, **message: Any) -> Answer:
    text = content if isinstance(content, str) else json.dumps(content)
    value: dict[str, Any] = {"choices": [{"message": {"content": text, **message}, "finish_reason": "stop"}]}
    if usage:
        value["usage"] = {"prompt_tokens": 1000, "completion_tokens": 100}
    return lambda handler: handler.send(200, json.dumps(value).encode())


def status(code: int, **headers: str) -> Answer:
    return lambda handler: handler.send(code, b"no", **headers)


def slowly(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    for _ in range(30):
        try:
            handler.wfile.write(b" ")
            handler.wfile.flush()
        except OSError:
            return
        time.sleep(0.05)


def cut(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b"{")


def silence(handler: Handler) -> None:
    handler.close_connection = True


GOOD = says({"workflows": [["Receive invoice", "Check invoice", "Pay invoice"], ["Reject invoice"]]})


@pytest.fixture
def server() -> Iterator[Any]:
    handler = type("Scripted", (Handler,), {"script": [GOOD], "seen": []})
    running = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    vars(running)["handler"] = handler
    yield running
    running.shutdown()
    running.server_close()


@pytest.fixture
def backend(server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., OpenaiCompatibleBackend]:
    monkeypatch.setenv("THE_KEY", KEY)
    monkeypatch.setenv("no_proxy", "127.0.0.1")

    def make(*script: Answer, **more: Any) -> OpenaiCompatibleBackend:
        if script:
            server.handler.script[:] = script
        own = {
            "url": f"http://127.0.0.1:{server.server_port}/v1",
            "model": "small",
            "api_key_variable": "THE_KEY",
            "backoff_seconds": 0.01,
            "usd_per_million_tokens_in": 1.0,
            "usd_per_million_tokens_out": 10.0,
        }
        settings = Settings(
            paths=Paths(lake=tmp_path / "lake"),
            generation=Generation(lwm_backend="openai_compatible"),
            openai_compatible=OpenaiCompatible(**(own | more)),
        )
        made = backend_of(settings)
        assert isinstance(made, OpenaiCompatibleBackend)
        return made

    return make


def files(root: Path) -> str:
    return "\n".join(f"{path} {path.read_text()}" for path in sorted(root.rglob("*")) if path.is_file())


def test_its_sequences_come_before_those_of_history(backend: Any, server: Any) -> None:
    found = backend().generate(request())
    assert [s.tasks for s in found[:2]] == [("t1", "t2", "t3"), ("t4",)]
    assert [s.source for s in found[:2]] == ["lwm", "lwm"]
    assert ("t1", "t2", "t5") in [s.tasks for s in found[2:]], "a similar case"
    ((headers, body),) = server.handler.seen
    assert headers["Authorization"] == f"Bearer {KEY}"
    steps = body["response_format"]["json_schema"]["schema"]["properties"]["workflows"]["items"]["items"]
    assert steps["enum"] == ["Receive invoice", "Check invoice", "Pay invoice", "Reject invoice", "Archive"]
    assert body["response_format"]["json_schema"]["strict"] is True


def test_an_answer_is_paid_for_once(backend: Any, server: Any, tmp_path: Path) -> None:
    one = backend()
    first = one.generate(request())
    assert one.usage(request()) == Usage(1000, 100, 0.002)
    assert backend(status(500)).generate(request()) == first
    assert len(server.handler.seen) == 1
    assert one.ledger.today() == {"requests": 1, "usd": 0.002}
    kept = files(tmp_path / "lake")
    assert "client_key=Acme" in kept
    assert KEY not in kept
    assert "Pay the invoice" not in kept, "no prompt is written"
    assert one.usage(request("another")) is None


def test_another_model_or_text_is_asked_anew(backend: Any, server: Any) -> None:
    versions = set()
    for more in ({}, {"model": "large"}, {"sequences": 2}):
        one = backend(**more)
        versions.add(one.version)
        one.generate(request())
    one.generate(request("Reject the invoice"))
    assert len(server.handler.seen) == 4
    assert len(versions) == 3


@pytest.mark.parametrize(
    "failing",
    [
        status(429),
        status(500),
        status(503, Retry_After="0"),
        says("{"),
        says([1]),
        cut,
        silence,
        says("x", usage=False),
    ],
)
def test_what_may_pass_is_tried_again(failing: Answer, backend: Any, server: Any) -> None:
    found = backend(failing, failing, GOOD).generate(request())
    assert found[0].tasks == ("t1", "t2", "t3")
    assert len(server.handler.seen) == 3


@pytest.mark.parametrize("failing", [status(429), status(500), says("{"), silence])
def test_attempts_end_with_the_last_reason(failing: Answer, backend: Any, server: Any, tmp_path: Path) -> None:
    one = backend(failing, attempts=2)
    with pytest.raises(EndpointError) as error:
        one.generate(request())
    assert "2 attempts" in str(error.value)
    assert KEY not in str(error.value)
    assert len(server.handler.seen) == 2
    assert "workflows" not in files(tmp_path / "lake"), "no answer is kept"


@pytest.mark.long
def test_retry_after_is_honoured(backend: Any, server: Any) -> None:
    began = time.monotonic()
    backend(status(429, Retry_After="1"), GOOD).generate(request())
    assert time.monotonic() - began >= 1
    with pytest.raises(EndpointError, match="120 s"):
        backend(status(429, Retry_After="120"), GOOD, model="other").generate(request())


def test_retry_after_is_a_number_or_a_date() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)

    def header(value: str) -> float | None:
        message = Message()
        message["Retry-After"] = value
        return retry_after(message, now)

    assert header("7") == 7.0
    assert header(format_datetime(now + timedelta(seconds=90), usegmt=True)) == 90.0
    assert header(format_datetime(now - timedelta(seconds=90), usegmt=True)) == 0.0
    assert header("soon") is None
    assert header("-3") is None
    assert retry_after(Message(), now) is None


@pytest.mark.long
def test_a_slow_answer_ends_at_the_deadline(backend: Any) -> None:
    began = time.monotonic()
    with pytest.raises(EndpointError):
        backend(slowly, seconds=0.3).generate(request())
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(("code", "named"), [(400, "no"), (401, "THE_KEY"), (404, "404"), (302, "redirect")])
def test_what_will_not_pass_is_not_tried_again(code: int, named: str, backend: Any, server: Any) -> None:
    with pytest.raises(EndpointError, match=named):
        backend(status(code, Location="http://127.0.0.1:9/steal")).generate(request())
    assert len(server.handler.seen) == 1


def test_a_refusal_is_named_and_counts_as_paid(backend: Any, server: Any) -> None:
    one = backend(says(None, refusal="I cannot help with that."))
    with pytest.raises(ModelRefused, match="I cannot help"):
        one.generate(request())
    assert len(server.handler.seen) == 1
    assert one.ledger.today()["usd"] > 0


def test_an_answer_outside_the_catalogue_is_dropped(backend: Any) -> None:
    mixed = says({"workflows": [["Check invoice", "Launder money", "Pay invoice"]]})
    assert backend(mixed).generate(request())[0].tasks == ("t2", "t3")
    with pytest.raises(OpusError, match="catalogue"):
        backend(says({"workflows": [["Launder money"]]}), model="other").generate(request())


def test_a_kept_answer_that_was_changed_by_hand_is_validated(backend: Any, tmp_path: Path) -> None:
    one = backend()
    one.generate(request())
    (file,) = (tmp_path / "lake" / "language" / "answers").rglob("*.json")
    file.write_text(json.dumps({"workflows": [["Launder money"]]}))
    with pytest.raises(AnswerError):
        one.generate(request())
    file.write_text("{")
    assert one.generate(request())[0].tasks == ("t1", "t2", "t3")


def test_the_spend_limit_stops_asking(backend: Any, server: Any) -> None:
    one = backend(spend_limit_usd=0.02, max_tokens=1000)
    one.generate(request())
    answered = 1

    def ask_on() -> None:
        nonlocal answered
        while answered < 20:
            one.generate(request(f"Pay invoice {answered}"))
            answered += 1

    with pytest.raises(SpendLimitReached, match="spend_limit_usd"):
        ask_on()
    assert one.ledger.today()["usd"] <= 0.02
    assert len(server.handler.seen) == answered
    assert one.generate(request())[0].tasks == ("t1", "t2", "t3"), "a kept answer costs nothing"


def test_requests_that_no_model_answered_are_not_counted(backend: Any) -> None:
    refused = backend(status(401), attempts=1)
    with pytest.raises(EndpointError):
        refused.generate(request())
    assert refused.ledger.today() == {"requests": 0, "usd": 0.0}
    nobody = backend(attempts=2, url="http://127.0.0.1:9/v1")
    with pytest.raises(EndpointError, match="no answer"):
        nobody.generate(request())
    assert nobody.ledger.today() == {"requests": 0, "usd": 0.0}


def unread(content: Any, usage: bool = True) -> Answer:
    """An answer without a text, as of a reasoning model whose tokens are spent."""
    value: dict[str, Any] = {"choices": [{"message": {"content": content}, "finish_reason": "length"}]}
    if usage:
        value["usage"] = {"prompt_tokens": 1_000, "completion_tokens": 1_000}
    return lambda handler: handler.send(200, json.dumps(value).encode())


@pytest.mark.parametrize(
    ("answer", "usd"),
    [
        (unread(None), 3 * 0.011),  # 3 attempts, each paid for as the answer says
        (unread("  "), 3 * 0.011),
        (unread(None, usage=False), None),  # nobody knows: the bookings stay
        (status(500), None),
    ],
)
def test_an_answer_without_a_text_is_paid_for(answer: Answer, usd: float | None, backend: Any, server: Any) -> None:
    prices = {"usd_per_million_tokens_in": 1.0, "usd_per_million_tokens_out": 10.0}
    one = backend(answer, attempts=3, **prices)
    with pytest.raises(OpusError):
        one.generate(request())
    day = one.ledger.today()
    assert day["requests"] == len(server.handler.seen) == 3
    assert day["usd"] == pytest.approx(usd) if usd is not None else day["usd"] > 0


def test_the_limit_holds_while_a_request_is_sent_again(backend: Any, server: Any) -> None:
    one = backend(unread(None, usage=False), attempts=50, spend_limit_usd=0.05, max_tokens=1_000)
    with pytest.raises(SpendLimitReached):
        one.generate(request())
    assert one.ledger.today()["usd"] <= 0.05
    assert one.ledger.today()["requests"] == len(server.handler.seen)


@pytest.mark.long
def test_what_is_booked_is_never_less_than_what_was_paid(backend: Any, server: Any) -> None:
    """A server with its own ledger charges each answer by a random number of tokens, whatever it answers."""
    chance, paid = random.Random(7), [0.0]

    def answers(handler: Handler) -> None:
        tokens_in, tokens_out = chance.randrange(100, 900), chance.randrange(0, 400)
        paid[0] += tokens_in / 1e6 + 10 * tokens_out / 1e6
        usage = {"usage": {"prompt_tokens": tokens_in, "completion_tokens": tokens_out}}
        choice = {"choices": [{"message": {"content": chance.choice(["{", "", None, "x"])}}]}
        data = chance.choice([{**choice, **usage}, {**usage}, choice, {}, [], {"usage": None, **choice}])
        handler.send(chance.choice([200, 200, 200, 500, 503]), json.dumps(data).encode())
        booked.append((one.ledger.today()["usd"], paid[0]))

    booked: list[tuple[float, float]] = []
    prices = {"usd_per_million_tokens_in": 1.0, "usd_per_million_tokens_out": 10.0}
    one = backend(answers, attempts=3, spend_limit_usd=0.4, max_tokens=400, **prices)
    for n in range(60):
        with pytest.raises(OpusError):
            one.generate(request(f"Pay invoice {n}"))
    assert len(booked) > 20
    assert all(most >= spent - 1e-9 for most, spent in booked)
    assert paid[0] <= 0.4


def drips_headers(handler: Handler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-A: ")
    for _ in range(100):
        handler.wfile.write(b"a")
        time.sleep(0.1)


def goes_on(handler: Handler) -> None:
    for _ in range(100):
        handler.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        time.sleep(0.1)


def drips_an_error(handler: Handler) -> None:
    handler.wfile.write(b"HTTP/1.1 400 Bad\r\nContent-Length: 900\r\n\r\n")
    for _ in range(100):
        handler.wfile.write(b"a")
        time.sleep(0.1)


@pytest.mark.long
@pytest.mark.parametrize("answer", [drips_headers, goes_on, drips_an_error])
def test_no_endpoint_can_delay_its_deadline(answer: Answer, backend: Any) -> None:
    began = time.monotonic()
    with pytest.raises(EndpointError):
        backend(answer, seconds=0.4, attempts=1).generate(request())
    assert time.monotonic() - began < 3


def test_the_key_is_masked_wherever_an_endpoint_repeats_it(backend: Any, tmp_path: Path) -> None:
    def repeats(code: int) -> Answer:
        return lambda handler: handler.send(code, f"bad header {handler.headers['Authorization']}".encode())

    for n, answer in enumerate([repeats(400), repeats(500), says(KEY), says(None, refusal=f"no {KEY}")]):
        with pytest.raises(OpusError) as error:
            backend(answer, model=f"m{n}", attempts=1).generate(request())
        assert KEY not in str(error.value)
    kept = [file for file in (tmp_path / "lake").rglob("*") if file.is_file()]
    assert all(KEY not in file.read_text(errors="replace") for file in kept)


def test_bookings_at_the_same_time_stay_within_the_limit(tmp_path: Path) -> None:
    booked: list[float] = []

    def book() -> None:
        try:
            Ledger(tmp_path, 1.0).book(0.3)
            booked.append(0.3)
        except SpendLimitReached:
            pass

    threads = [threading.Thread(target=book) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(booked) == 3


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"url": ""}, "url"),
        ({"model": ""}, "model"),
        ({"spend_limit_usd": 1.0, "usd_per_million_tokens_in": None}, "usd_per_million_tokens_in"),
    ],
)
def test_settings_that_do_not_do_are_named(more: dict[str, Any], named: str, backend: Any) -> None:
    with pytest.raises(SettingsError, match=named):
        backend(**more)


def test_a_key_that_is_not_set_is_named(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one = backend()
    monkeypatch.delenv("THE_KEY")
    with pytest.raises(SettingsError, match="THE_KEY"):
        one.generate(request())


def test_without_prices_costs_are_unknown(backend: Any) -> None:
    one = backend(usd_per_million_tokens_in=None)
    one.generate(request())
    assert one.usage(request()) == Usage(1000, 100, None)
