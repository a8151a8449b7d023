"""Asks an OpenAI-compatible endpoint, within limits of time and money: the one place that sends a request to a model.

`ChatClient`: `POST <url>/chat/completions`, for a recording `<url>/audio/transcriptions`, with retries, a bounded
answer, and a deadline over all of it: a timer shuts the connection down, whatever the endpoint sends until then. Tried
again: no connection, a timeout, 408, 409, 425, 429 and 5xx, with a wait that doubles, or the one that Retry-After names
(RFC 9110, 10.2.3). Redirects are not followed, because the key would go with them. The key is in no message and in no
answer: an endpoint may repeat it.

`PaidClient` books in the `Ledger` (`language/spent.json` in the lake, by day) the most that a request may cost before
each time that it is sent. The usage in an answer, with or without a text, replaces the booking by the real cost. The
booking is removed only where the request was certainly not answered by a model. So workers that ask at the same time
stay within the limit together, and a request whose worker was killed counts as asked. Whoever asks says how an answer
is read. An answer that cannot be read was paid for, and is asked for again.
"""

import fcntl
import hashlib
import json
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import HTTPHandler, HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from opus_pipelines.core.errors import LakeError, OpusError, SettingsError
from opus_pipelines.core.formatting import clean
from opus_pipelines.core.settings_sections import OpenaiCompatible
from opus_pipelines.lake.layout import Lake, read_json, slug, write_json
from opus_pipelines.wkg.upkeep.client_traces import ANSWERS

LARGEST = 4 * 2**20  # bytes of an answer
LONGEST_WAIT = 30.0  # seconds between two attempts where Retry-After does not say
_PASSING = {408, 409, 425, 429}
_UNPAID = {401, 403, 404, 429}  # statuses with which a gateway answers before a model is asked
_USER_IN_ADDRESS = re.compile(r"(?<=//)[^/@\s]+(?=@)")
MASK = "***"
_PIECE = 65_536


class EndpointError(OpusError):
    """The endpoint gave no answer that can be used."""


class ModelRefused(EndpointError):
    """The model answered, and refused what it was asked."""


class _Passing(Exception):
    """A failure after which the request is sent again; `wait` in seconds where the endpoint said how long.

    `is_unpaid`: no model was asked, for certain.
    """

    def __init__(self, reason: str, wait: float | None = None, is_unpaid: bool = False) -> None:
        super().__init__(reason)
        self.wait, self.is_unpaid = wait, is_unpaid


class _Refused(EndpointError):
    """A failure that will not pass; `is_unpaid` as of `_Passing`."""

    def __init__(self, reason: str, is_unpaid: bool = False) -> None:
        super().__init__(reason)
        self.is_unpaid = is_unpaid


class Meter(Protocol):
    """Books what each sent request may cost."""

    def book(self) -> None:
        """Books one request before it is sent; raises SpendLimitReached where that exceeds a limit."""

    def settle(self, tokens_in: int | None, tokens_out: int | None) -> None:
        """Replaces the booking by what the answer says that it cost; where a number is None, the booking stays."""

    def take_back(self) -> None:
        """Removes the booking of a request that no model answered."""


@dataclass(frozen=True)
class Reply:
    """The text of an answer, and the tokens that the endpoint counted; None where it did not."""

    content: str
    tokens_in: int | None
    tokens_out: int | None


@dataclass(frozen=True)
class _Sent:
    """What is sent to an endpoint: the path behind its address, the bytes, and their media type."""

    path: str
    data: bytes
    media_type: str = "application/json"


def _form_of(model: str, suffix: str, recording: bytes) -> _Sent:
    """Returns a recording as the form of OpenAI's transcription; its name is left out, which may be a person's."""
    border = f"opus-{hashlib.sha256(recording).hexdigest()}"
    parts = [
        f'--{border}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in (("model", model), ("response_format", "json"), ("temperature", "0"))
    ]
    head = f'--{border}\r\nContent-Disposition: form-data; name="file"; filename="recording{suffix}"\r\n'
    data = "".join([*parts, head, "Content-Type: application/octet-stream\r\n\r\n"]).encode() + recording
    media_type = f"multipart/form-data; boundary={border}"
    return _Sent("audio/transcriptions", data + f"\r\n--{border}--\r\n".encode(), media_type)


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


class _Deadline:
    """Shuts the connection of one request down when its time is over.

    A time-out of a socket is one of each read, so that an endpoint that sends a byte now and then would never end.
    """

    def __init__(self, deadline: float) -> None:
        self.is_over = False
        self._socket: socket.socket | None = None
        self._timer = threading.Timer(max(0.01, deadline - time.monotonic()), self._shut_down)
        self._timer.daemon = True

    def __enter__(self) -> "_Deadline":
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        if self._socket is not None:
            self._socket.close()

    def follow(self, connected: socket.socket) -> None:
        """Takes the socket of a connection: a copy of it, because TLS takes the socket itself over."""
        self._socket = connected.dup()

    def _shut_down(self) -> None:
        self.is_over = True
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def handlers(self) -> tuple[HTTPHandler, HTTPSHandler]:
        """Returns the handlers of urllib whose connections this one follows."""
        follow = self.follow

        class Followed(HTTPConnection):
            def connect(self) -> None:
                super().connect()
                follow(self.sock)

        class FollowedSecure(HTTPSConnection, Followed):
            """Connects as `Followed` does, and then begins TLS."""

        class Plain(HTTPHandler):
            def http_open(self, req: Request) -> Any:
                return self.do_open(Followed, req)

        class Secure(HTTPSHandler):
            def https_open(self, req: Request) -> Any:
                return self.do_open(FollowedSecure, req)

        return Plain(), Secure()


class ChatClient:
    """Sends one request at a time. `use` raises ValueError for an answer that should be asked for again."""

    def __init__(self, settings: OpenaiCompatible, key: str | None, meter: Meter | None = None) -> None:
        self._settings, self._key, self._meter = settings, key, meter
        self._url = _USER_IN_ADDRESS.sub(MASK, settings.url)

    def ask(self, body: Mapping[str, Any], use: Callable[[Reply], Any]) -> Any:
        """Send a request until an answer can be used; return what `use` makes of it.

        Raises EndpointError where the endpoint refuses, where all attempts failed, or where the time is over.
        """
        sent = _Sent("chat/completions", json.dumps(body).encode())
        return self._until_used(sent, use)

    def transcribe(self, model: str, suffix: str, recording: bytes) -> str:
        """Send a recording as `ask` does a question; return what is said in it."""
        said: str = self._until_used(_form_of(model, suffix, recording), lambda reply: reply.content)
        return said

    def _until_used(self, sent: "_Sent", use: Callable[[Reply], Any]) -> Any:
        settings, began = self._settings, time.monotonic()
        reason = ""
        for attempt in range(settings.attempts):
            try:
                return use(self._answer(sent, began + settings.seconds))
            except _Passing as failure:
                reason, wait = self._masked(str(failure)), failure.wait
            except ValueError as error:
                reason, wait = self._masked(str(error)), None
            if attempt + 1 == settings.attempts:
                break
            wait = min(LONGEST_WAIT, settings.backoff_seconds * 2**attempt) if wait is None else wait
            left = began + settings.seconds - time.monotonic()
            if wait >= left:
                raise EndpointError(
                    f"{self._url}: {reason}; the next attempt is in {wait:.0f} s, and {max(0.0, left):.0f} s of "
                    "openai_compatible.seconds are left"
                )
            time.sleep(wait)
        raise EndpointError(f"{self._url}: {reason}; {settings.attempts} attempts were made")

    def _answer(self, sent: "_Sent", deadline: float) -> Reply:
        """Returns the answer to a request that is sent once, and books it."""
        if self._meter is not None:
            self._meter.book()
        try:
            return self._reply(self._received(sent, deadline))
        except (_Passing, _Refused) as failure:
            if failure.is_unpaid and self._meter is not None:
                self._meter.take_back()
            raise

    def _masked(self, text: str) -> str:
        """Returns a text of the endpoint without the key, which a gateway may repeat."""
        keys = (self._key, quote(self._key, safe="")) if self._key else ()
        for key in keys:
            text = text.replace(key, MASK)
        return _USER_IN_ADDRESS.sub(MASK, text)

    def _received(self, sent: "_Sent", deadline: float) -> bytes:
        headers = {"Content-Type": sent.media_type, "Accept": "application/json"}
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        address = f"{self._settings.url.rstrip('/')}/{sent.path}"
        request = Request(address, sent.data, headers, method="POST")
        with _Deadline(deadline) as connection:
            opener = build_opener(_NoRedirects, *connection.handlers())
            try:
                with opener.open(request, timeout=max(0.01, deadline - time.monotonic())) as response:
                    data = _read(response, LARGEST)
            except HTTPError as error:
                with error:
                    raise self._failure(error) from None
            except (OSError, HTTPException, ValueError) as error:
                if connection.is_over:
                    raise _Passing("the answer came too slowly") from None
                reason = getattr(error, "reason", None) or error
                said = clean(str(reason)) if str(reason) else type(reason).__name__
                is_unpaid = isinstance(reason, (ConnectionRefusedError, socket.gaierror))
                raise _Passing(f"no answer ({said})", is_unpaid=is_unpaid) from None
            if connection.is_over:  # what is cut off looks like an end
                raise _Passing("the answer came too slowly")
            return data

    def _reply(self, data: bytes) -> Reply:
        try:
            value = json.loads(data)
            usage = value.get("usage") if isinstance(value.get("usage"), dict) else {}
        except (ValueError, AttributeError, RecursionError):
            raise _Passing("the answer is broken JSON, or not one of a chat completion") from None
        if "choices" not in value and isinstance(value.get("text"), str):
            return Reply(self._masked(value["text"]), None, None)  # of a recording
        tokens = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
        if self._meter is not None:
            self._meter.settle(*tokens)
        try:
            choice = value["choices"][0]
            message = choice["message"]
        except (KeyError, IndexError, TypeError):
            raise _Passing("the answer is broken JSON, or not one of a chat completion") from None
        refusal = message.get("refusal") if isinstance(message, dict) else None
        if refusal or (isinstance(choice, dict) and choice.get("finish_reason") == "content_filter"):
            said = clean(self._masked(str(refusal)))[:200] if refusal else "a filter of contents"
            raise ModelRefused(f"{self._url}: the model refused: {said}")
        content = message.get("content") if isinstance(message, dict) else None
        if not isinstance(content, str):
            raise _Passing("the answer has no text")
        return Reply(self._masked(content), *tokens)

    def _failure(self, error: HTTPError) -> Exception:
        is_unpaid = error.code in _UNPAID
        if error.code in _PASSING or error.code >= 500:
            return _Passing(f"status {error.code}", retry_after(error.headers, datetime.now(UTC)), is_unpaid)
        if error.code in (401, 403):
            variable = self._settings.api_key_variable
            where = f"the variable {variable}" if variable else "api_key_variable"
            return _Refused(f"{self._url}: status {error.code}; is the key right? See {where}", is_unpaid)
        if 300 <= error.code < 400:
            return _Refused(f"{self._url}: it redirects, which is not followed; state the address itself")
        try:
            said = clean(self._masked(_read(error, 2_000).decode("utf-8", "replace")))[:300]
        except (OSError, HTTPException, ValueError):
            said = "its reason came too slowly"
        return _Refused(f"{self._url}: status {error.code}: {said}", is_unpaid)


def retry_after(headers: Message, now: datetime) -> float | None:
    """Return the seconds that Retry-After names, as a number or as a date; None where it does not say."""
    value = (headers.get("Retry-After") or "").strip()
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        then = parsedate_to_datetime(value)
    except (ValueError, TypeError):
        return None
    return max(0.0, ((then if then.tzinfo else then.replace(tzinfo=UTC)) - now).total_seconds())


def _read(response: Any, most: int) -> bytes:
    """Read an answer piece by piece. Of an error the first `most` bytes are enough; an answer may not have more."""
    pieces, size = [], 0
    while piece := response.read1(min(_PIECE, most + 1)):
        pieces.append(piece)
        size += len(piece)
        if size > most:
            if isinstance(response, HTTPError):
                break
            raise _Refused(f"the answer has more than {most:,} bytes")
    return b"".join(pieces)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


class SpendLimitReached(OpusError):
    """One more request could exceed the limit of the day."""


class Ledger:
    """The bookings of a lake, by day (UTC)."""

    def __init__(self, folder: Path, limit_usd: float | None) -> None:
        self._file, self._limit = folder / "spent.json", limit_usd

    def book(self, most_usd: float | None) -> str:
        """Book a request that may cost so much, None where prices are unknown; return the day of the booking.

        Raises SpendLimitReached where the day's limit would be exceeded.
        """
        date = _today()
        with self._day(date) as day:
            if self._limit is not None and day["usd"] + (most_usd or 0.0) > self._limit:
                raise SpendLimitReached(
                    f"a request may cost {most_usd or 0.0:.4f} USD, {day['usd']:.4f} are spent today, and "
                    f"openai_compatible.spend_limit_usd is {self._limit:g}; raise it, or go on tomorrow (UTC)"
                )
            day["requests"] += 1
            day["usd"] += most_usd or 0.0
        return date

    def correct(self, date: str, most_usd: float | None, usd: float | None, requests: int = 0) -> None:
        """Replace what was booked on a day by what it was; where that is unknown, the booking stays.

        `requests` is added to the requests of the day.
        """
        if usd is not None:
            with self._day(date) as day:
                day["requests"] += requests
                day["usd"] += usd - (most_usd or 0.0)

    def today(self) -> dict[str, float]:
        """Return the requests and dollars of the day."""
        return self._of(_today())

    def _of(self, date: str) -> dict[str, float]:
        day: dict[str, float] = (read_json(self._file) or {}).get(date, {"requests": 0, "usd": 0.0})
        return day

    @contextmanager
    def _day(self, date: str) -> Iterator[dict[str, float]]:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            day = self._of(date)
            yield day
            days = read_json(self._file) or {}
            write_json(self._file, {**days, date: {**day, "usd": round(max(0.0, day["usd"]), 9)}})


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


@dataclass(frozen=True)
class KeptAnswers:
    """Answers in the lake under the hash of their question, so that the same question is paid for once.

    They stand in the folder of the client whose question it was, so that forgetting a client removes them, too;
    `client` is None for what belongs to none.
    """

    lake: Lake
    client: str | None = None

    def read(self, key: str) -> dict[str, Any] | None:
        """Returns a kept answer; None where there is none. A damaged one is asked for again, and replaced."""
        try:
            return read_json(self._file(key))
        except LakeError:
            return None

    def write(self, key: str, answer: Mapping[str, Any]) -> None:
        """Keeps an answer."""
        write_json(self._file(key), dict(answer))

    def _file(self, key: str) -> Path:
        return self.lake.root / ANSWERS / f"client_key={slug(self.client or '')}" / f"{key}.json"


def question_body(
    settings: OpenaiCompatible, messages: tuple[str, str], form: tuple[str, Mapping[str, Any]] | None = None
) -> dict[str, Any]:
    """Returns the body of a request with these messages, of the system and of the user, that has one likely answer.

    `form`: the name and the JSON schema of the answer; None: it is in words.
    """
    body: dict[str, Any] = {
        "model": settings.model,
        "messages": [{"role": role, "content": text} for role, text in zip(("system", "user"), messages, strict=True)],
        "temperature": 0,
        "seed": 0,
        "max_tokens": settings.max_tokens,
    }
    if form is not None:
        schema = {"name": form[0], "strict": True, "schema": form[1]}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    return body


FOLDER = "language"  # of the lake
MILLION = 1_000_000
LETTERS_A_TOKEN = 2  # a token has more letters in most languages, so that bookings are rather too high
Read = TypeVar("Read")


class PaidClient:
    """The endpoint of the settings, within their limit of dollars a day. Without a lake nothing is booked.

    Attributes:
        ledger: the bookings of the lake; None without one.
    """

    def __init__(self, settings: OpenaiCompatible, lake: Lake | None) -> None:
        self._settings = settings
        self.ledger = Ledger(lake.root / FOLDER, settings.spend_limit_usd) if lake is not None else None

    def ask(self, body: Mapping[str, Any], letters: int, read: Callable[[Reply, float | None], Read]) -> Read:
        """Returns what `read` makes of an answer and its dollars; it raises ValueError for one that cannot be used.

        `letters` of the question say, with the `max_tokens` of the body, what the request may cost at most. Raises
        SpendLimitReached where that could exceed the limit of the day, and what `ChatClient` raises.
        """
        settings = self._settings
        most = price(settings, letters // LETTERS_A_TOKEN, body["max_tokens"])
        meter = _Booking(settings, self.ledger, most) if self.ledger is not None else None
        use = lambda reply: read(reply, price(settings, reply.tokens_in, reply.tokens_out))
        made: Read = ChatClient(settings, key_of(settings), meter).ask(body, use)
        return made

    def transcribe(self, model: str, suffix: str, recording: bytes, most_usd: float | None) -> str:
        """Returns what is said in a recording, for which so many dollars are booked; it raises what `ask` raises."""
        meter = _Booking(self._settings, self.ledger, most_usd) if self.ledger is not None else None
        return ChatClient(self._settings, key_of(self._settings), meter).transcribe(model, suffix, recording)


class _Booking:
    """The bookings of one question in a ledger, one for each time that it is sent."""

    def __init__(self, settings: OpenaiCompatible, ledger: Ledger, most: float | None) -> None:
        self._settings, self._ledger, self._most, self._date = settings, ledger, most, ""

    def book(self) -> None:
        """Books one request."""
        self._date = self._ledger.book(self._most)

    def settle(self, tokens_in: int | None, tokens_out: int | None) -> None:
        """Replaces the booking by what it cost."""
        self._ledger.correct(self._date, self._most, price(self._settings, tokens_in, tokens_out))

    def take_back(self) -> None:
        """Removes the booking."""
        self._ledger.correct(self._date, self._most, 0.0, requests=-1)


def price(settings: OpenaiCompatible, tokens_in: int | None, tokens_out: int | None) -> float | None:
    """Returns the dollars of so many tokens, None where a price or a number is unknown."""
    of_in, of_out = settings.usd_per_million_tokens_in, settings.usd_per_million_tokens_out
    if of_in is None or of_out is None or tokens_in is None or tokens_out is None:
        return None
    return (tokens_in * of_in + tokens_out * of_out) / MILLION


def require_prices(settings: OpenaiCompatible) -> None:
    """Raises SettingsError where a limit is set and prices are missing, so that the limit could not hold."""
    if settings.spend_limit_usd is not None and price(settings, 0, 0) is None:
        raise SettingsError("openai_compatible.spend_limit_usd needs usd_per_million_tokens_in and _out")


def key_of(settings: OpenaiCompatible) -> str | None:
    """Returns the key, None where the settings name no variable. Raises SettingsError where the variable is not set."""
    name = settings.api_key_variable
    if name and not os.environ.get(name):
        raise SettingsError(f"the variable {name} (openai_compatible.api_key_variable) is not set")
    return os.environ[name] if name else None
