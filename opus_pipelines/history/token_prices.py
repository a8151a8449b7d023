"""The shipped prices of well-known models' tokens, and under which names a model is looked up in them."""

import re
import tomllib
from functools import cache, lru_cache
from pathlib import Path

from opus_pipelines.history.source_settings import TokenPrice

FILE = Path(__file__).with_name("token_prices.toml")
_NAME_LENGTH = 200
_PROVIDER = re.compile(r"^(?:(?:us|eu|apac|global)\.)?(?:anthropic|amazon|cohere|deepseek|google|meta|mistral|openai)\.")
_DATE = re.compile(r"(?:-(?:20\d\d-?\d\d-?\d\d|latest))+$")


def model_names(written: str) -> tuple[str, str]:
    """A model's name in small letters, points as dashes, without provider and version; and that without its date.

    `openai/GPT-4.1-2025-04-14` is `gpt-4-1-2025-04-14` and `gpt-4-1`; `us.anthropic.claude-3-5-sonnet-20241022-v2:0` is
    `claude-3-5-sonnet-20241022` and `claude-3-5-sonnet`. A tag such as `:free` or `:batch` stays: it has a price of its own.
    """
    return _names(written[:_NAME_LENGTH])


@lru_cache(maxsize=4096)
def _names(written: str) -> tuple[str, str]:
    name = re.sub(r"[\s_]+", "-", written.strip().lower()).rpartition("/")[2].replace("@", "-")
    name = re.sub(r"(-v\d+)?(:\d+)?$", "", _PROVIDER.sub("", name)).replace(".", "-")
    return name, _DATE.sub("", name)


def shipped_price(model: str) -> TokenPrice | None:
    """The price of a model by its name with its date, else without; None where the table has neither."""
    return next((shipped_prices()[name] for name in model_names(model) if name in shipped_prices()), None)


@cache
def shipped_prices() -> dict[str, TokenPrice]:
    """The whole table: the price of each model, by its name without provider and version."""
    content = tomllib.loads(FILE.read_text("utf-8"))
    return {model_names(model)[0]: TokenPrice(tokens_in=paid[0], tokens_out=paid[1]) for model, paid in content["prices"].items()}
