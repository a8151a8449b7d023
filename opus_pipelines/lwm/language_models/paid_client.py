"""Asks an endpoint and books what it costs: the most before a request is sent, and the cost when its answer came.

Whoever asks says how an answer is read. An answer that cannot be read was paid for, and is asked for again.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from opus_pipelines.core.errors import OpusError, SettingsError
from opus_pipelines.core.model_settings import OpenaiCompatible
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lwm.language_models.chat_client import ChatClient, ModelRefused, Reply
from opus_pipelines.lwm.language_models.spending import Ledger

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

        def use(reply: Reply) -> Read:
            usd = price(settings, reply.tokens_in, reply.tokens_out)
            self._correct(most, usd)
            try:
                return read(reply, usd)
            except ValueError:
                self._book(most)  # it is asked again
                raise

        self._book(most)
        try:
            made: Read = ChatClient(settings, key_of(settings)).ask(body, use)
        except ModelRefused:
            raise  # it was paid for
        except OpusError:
            self._correct(most, 0.0)
            raise
        return made

    def _book(self, most: float | None) -> None:
        if self.ledger is not None:
            self.ledger.book(most)

    def _correct(self, most: float | None, usd: float | None) -> None:
        if self.ledger is not None:
            self.ledger.correct(most, usd)


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
