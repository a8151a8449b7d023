"""What a task cost: as the source states it, else its actor's rate x time, else the tokens of a model call x a price.

Hourly rates go by the person, then the role or group, then the kind of actor.
A token price is that of the source's `[rates]`, else the shipped one of the model (`token_prices`).

The shipped prices of well-known models' tokens, and under which names a model is looked up in them.
"""

import re
import tomllib
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path

from opus_pipelines.event_logs.records import Task
from opus_pipelines.event_logs.source_settings import TokenPrice

FILE = Path(__file__).with_name("token_prices.toml")
_NAME_LENGTH = 200
_PROVIDER = re.compile(
    r"^(?:(?:us|eu|apac|global)\.)?(?:anthropic|amazon|cohere|deepseek|google|meta|mistral|openai)\."
)
_DATE = re.compile(r"(?:-(?:20\d\d-?\d\d-?\d\d|latest))+$")


def model_names(written: str) -> tuple[str, str]:
    """A model's name in small letters, points as dashes, without provider and version; and that without its date.

    `openai/GPT-4.1-2025-04-14` is `gpt-4-1-2025-04-14` and `gpt-4-1`; `us.anthropic.claude-3-5-sonnet-20241022-v2:0` is
    `claude-3-5-sonnet-20241022` and `claude-3-5-sonnet`. A tag such as `:free` or `:batch` stays: it has a price of its
    own.
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
    return {
        model_names(model)[0]: TokenPrice(tokens_in=paid[0], tokens_out=paid[1])
        for model, paid in content["prices"].items()
    }


# stands for the basis of a cost that is stated, but in a currency without a rate, until the task is priced
UNRATED = "unrated"
PARTS = {"human": "cost_human_usd", "model": "cost_model_usd", "code": "cost_compute_usd"}
MS_PER_HOUR = 3_600_000

# Where the role or group of a task's people stands among its attributes, the first that has one: `[columns]
# actor_group`, the standard
# names of XES, and the headings of exports; and the words by which logs say that there is none.
GROUP_ATTRIBUTES = ("actor_group", "org:group", "org:role", "role", "Role", "ROLE", "rolle", "Rolle")
NO_GROUP = ("", "-", "empty", "missing", "n/a", "none", "null", "undefined", "unknown")

Rates = Mapping[str, float | TokenPrice]


def price(task: Task, rates: Rates) -> None:
    """Fill `cost_usd`, its parts and `cost_basis`; all stay NULL where neither the source, a rate nor a token price
    tells.

    A total that the source does not split counts as the part of the kind of actor that did the task. What the source
    states in a currency without a rate stays unknown: time and tokens would give another figure than the one it states.
    """
    parts = [p for p in (task.cost_compute_usd, task.cost_model_usd, task.cost_human_usd) if p is not None]
    unrated, task.cost_basis = task.cost_basis == UNRATED, None
    if task.cost_usd is None and unrated:
        return
    if task.cost_usd is None and not parts:
        _estimate(task, rates)
        return
    task.cost_usd = sum(parts) if task.cost_usd is None else task.cost_usd
    task.cost_basis = "observed"
    if not parts and not unrated:
        _whole_part(task)


def _estimate(task: Task, rates: Rates) -> None:
    task.cost_usd = _hours(task, rates)
    if task.cost_usd is not None:
        task.cost_basis = "rate"
        _whole_part(task)
    elif (cost := _tokens(task, rates)) is not None:
        task.cost_usd = task.cost_model_usd = cost
        task.cost_basis = "rate"


def _whole_part(task: Task) -> None:
    if task.actor_kind in PARTS:
        setattr(task, PARTS[task.actor_kind], task.cost_usd)


def _hours(task: Task, rates: Rates) -> float | None:
    """The actor's rate, else that of a role or group, else of the kind; a number under the model's own name is a price
    of tokens.
    """
    if task.duration_ms is None:
        return None
    for name in (task.actor, *(task.attributes.get(name) for name in GROUP_ATTRIBUTES), task.actor_kind):
        rate = rates.get(name) if name and name != task.model else None
        if isinstance(rate, float):
            return task.duration_ms / MS_PER_HOUR * rate
    return None


def _tokens(task: Task, rates: Rates) -> float | None:
    if not task.model or (task.tokens_in is None and task.tokens_out is None):
        return None
    rate = _of_model(task.model, rates)
    if rate is None:
        return None
    paid = rate if isinstance(rate, TokenPrice) else TokenPrice(tokens_in=rate, tokens_out=rate)
    return ((task.tokens_in or 0) * paid.tokens_in + (task.tokens_out or 0) * paid.tokens_out) / 1e6


def _of_model(model: str, rates: Rates) -> float | TokenPrice | None:
    """By the name as it is written, with its date, then without; the source's rates before the shipped prices."""
    if model in rates:
        return rates[model]
    for name in model_names(model):
        for key, rate in sorted(rates.items()) if rates else ():
            if model_names(key)[0] == name:
                return rate
    return shipped_price(model)
