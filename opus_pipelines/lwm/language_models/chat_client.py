"""Asks an OpenAI-compatible endpoint: `POST <url>/chat/completions` with retries, a deadline and a bounded answer.

Tried again: no connection, a timeout, 408, 409, 425, 429 and 5xx, with a wait that doubles, or the one that Retry-After
names (RFC 9110, 10.2.3). Redirects are not followed, because the key would go with them. The key is in no message.
"""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import Any

from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.model_settings import OpenaiCompatible
from opus_pipelines.core.safe_text import clean

LARGEST = 4 * 2**20  # bytes of an answer
LONGEST_WAIT = 30.0  # seconds between two attempts where Retry-After does not say
_PASSING = {408, 409, 425, 429}
_PIECE = 65_536


class EndpointError(OpusError):
    """The endpoint gave no answer that can be used."""


class ModelRefused(EndpointError):
    """The model answered, and refused what it was asked."""


class _Passing(Exception):
    """A failure after which the request is sent again; `wait` in seconds where the endpoint said how long."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


@dataclass(frozen=True)
class Reply:
    """The text of an answer, and the tokens that the endpoint counted; None where it did not."""

    content: str
    tokens_in: int | None
    tokens_out: int | None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


class ChatClient:
    """Sends one request at a time. `use` raises ValueError for an answer that should be asked for again."""

    def __init__(self, settings: OpenaiCompatible, key: str | None) -> None:
        self._settings, self._key = settings, key
        self._opener = urllib.request.build_opener(_NoRedirects)

    def ask(self, body: Mapping[str, Any], use: Callable[[Reply], Any]) -> Any:
        """Send a request until an answer can be used; return what `use` makes of it.

        Raises EndpointError where the endpoint refuses, where all attempts failed, or where the time is over.
        """
        settings, began = self._settings, time.monotonic()
        reason = ""
        for attempt in range(settings.attempts):
            try:
                return use(self._reply(self._sent(body, began + settings.seconds)))
            except _Passing as failure:
                reason, wait = str(failure), failure.wait
            except ValueError as error:
                reason, wait = str(error), None
            if attempt + 1 == settings.attempts:
                break
            wait = min(LONGEST_WAIT, settings.backoff_seconds * 2**attempt) if wait is None else wait
            left = began + settings.seconds - time.monotonic()
            if wait >= left:
                raise EndpointError(
                    f"{settings.url}: {reason}; the next attempt is in {wait:.0f} s, and {max(0.0, left):.0f} s of "
                    "openai_compatible.seconds are left"
                )
            time.sleep(wait)
        raise EndpointError(f"{settings.url}: {reason}; {settings.attempts} attempts were made")

    def _sent(self, body: Mapping[str, Any], deadline: float) -> bytes:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        address = f"{self._settings.url.rstrip('/')}/chat/completions"
        request = urllib.request.Request(address, json.dumps(body).encode(), headers, method="POST")
        try:
            with self._opener.open(request, timeout=max(0.01, deadline - time.monotonic())) as response:
                return _read(response, deadline)
        except urllib.error.HTTPError as error:
            with error:
                raise _failure(self._settings, error) from None
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise _Passing(f"no answer ({clean(str(reason)) if str(reason) else type(reason).__name__})") from None

    def _reply(self, data: bytes) -> Reply:
        try:
            value = json.loads(data)
            choice = value["choices"][0]
            message = choice["message"]
        except (ValueError, KeyError, IndexError, TypeError, RecursionError):
            raise _Passing("the answer is broken JSON, or not one of a chat completion") from None
        refusal = message.get("refusal") if isinstance(message, dict) else None
        if refusal or choice.get("finish_reason") == "content_filter":
            said = clean(str(refusal))[:200] if refusal else "a filter of contents"
            raise ModelRefused(f"{self._settings.url}: the model refused: {said}")
        content = message.get("content") if isinstance(message, dict) else None
        if not isinstance(content, str):
            raise _Passing("the answer has no text")
        usage = value.get("usage") if isinstance(value.get("usage"), dict) else {}
        return Reply(content, _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")))


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


def _failure(settings: OpenaiCompatible, error: urllib.error.HTTPError) -> Exception:
    if error.code in _PASSING or error.code >= 500:
        return _Passing(f"status {error.code}", retry_after(error.headers, datetime.now(UTC)))
    if error.code in (401, 403):
        where = f"the variable {settings.api_key_variable}" if settings.api_key_variable else "api_key_variable"
        return EndpointError(f"{settings.url}: status {error.code}; is the key right? See {where}")
    if 300 <= error.code < 400:
        return EndpointError(f"{settings.url}: it redirects, which is not followed; state the address itself")
    said = clean(error.read(2_000).decode("utf-8", "replace"))[:300]
    return EndpointError(f"{settings.url}: status {error.code}: {said}")


def _read(response: Any, deadline: float) -> bytes:
    """Read an answer piece by piece: one that comes slowly, or never ends, stops at the deadline or at `LARGEST`."""
    pieces, size = [], 0
    while piece := response.read1(_PIECE):
        pieces.append(piece)
        size += len(piece)
        if size > LARGEST:
            raise EndpointError(f"the answer has more than {LARGEST:,} bytes")
        if time.monotonic() > deadline:
            raise _Passing("the answer came too slowly")
    return b"".join(pieces)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
