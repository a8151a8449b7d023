"""Computes what a task cost.

The cost is the one that the source states; else the actor's hourly rate times the working time; else the tokens of a
model call times a price. An hourly rate is looked up by person, then by role or group, then by kind of actor. A token
price comes from the source's `[rates]`, else from the shipped table of well-known models (`token_prices`).
"""

import re
import tomllib
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path

from opus_pipelines.history.records.records import Task
from opus_pipelines.history.records.source_settings import TokenPrice

FILE = Path(__file__).with_name("token_prices.toml")
_NAME_LENGTH = 200
_PROVIDER = re.compile(
    r"^(?:(?:us|eu|apac|global)\.)?(?:anthropic|amazon|cohere|deepseek|google|meta|mistral|openai)\."
)
_DATE = re.compile(r"(?:-(?:20\d\d-?\d\d-?\d\d|latest))+$")


def model_names(written: str) -> tuple[str, str]:
    """Returns the names under which a model is looked up, with and without its date.

    They are in lower case with dashes, without provider and version. `openai/GPT-4.1-2025-04-14` gives
    `gpt-4-1-2025-04-14` and `gpt-4-1`; `us.anthropic.claude-3-5-sonnet-20241022-v2:0` gives
    `claude-3-5-sonnet-20241022` and `claude-3-5-sonnet`. A tag such as `:free` or `:batch` stays, because it has a
    price of its own.
    """
    return _names(written[:_NAME_LENGTH])


@lru_cache(maxsize=4096)
def _names(written: str) -> tuple[str, str]:
    name = re.sub(r"[\s_]+", "-", written.strip().lower()).rpartition("/")[2].replace("@", "-")
    name = re.sub(r"(-v\d+)?(:\d+)?$", "", _PROVIDER.sub("", name)).replace(".", "-")
    return name, _DATE.sub("", name)


def shipped_price(model: str) -> TokenPrice | None:
    """Returns the shipped price of a model, by its name with date, else without; None if the table has neither."""
    return next((shipped_prices()[name] for name in model_names(model) if name in shipped_prices()), None)


@cache
def shipped_prices() -> dict[str, TokenPrice]:
    """Returns the shipped price of each model, by its name without provider and version."""
    return prices_in(FILE.read_text("utf-8"))


def prices_in(text: str) -> dict[str, TokenPrice]:
    """Returns the price of each model in the text of a price file, by its name without provider and version."""
    return {
        model_names(model)[0]: TokenPrice(tokens_in=paid[0], tokens_out=paid[1])
        for model, paid in tomllib.loads(text)["prices"].items()
    }


# stands for the basis of a cost that is stated, but in a currency without a rate, until the task is priced
UNRATED = "unrated"
COST_PARTS = {"human": "cost_human_usd", "model": "cost_model_usd", "code": "cost_compute_usd"}
MS_PER_HOUR = 3_600_000

# Where the role or group of a task's people stands among its attributes, the first that has one: `[columns]
# actor_group`, the standard names of XES, and the headings of exports; and the words by which logs say that there is
# none.
GROUP_ATTRIBUTES = ("actor_group", "org:group", "org:role", "role", "Role", "ROLE", "rolle", "Rolle")
NO_GROUP = ("", "-", "empty", "missing", "n/a", "none", "null", "undefined", "unknown")

Rates = Mapping[str, float | TokenPrice]


def price(task: Task, rates: Rates) -> None:
    """Sets `cost_usd`, its parts and `cost_basis` of a task.

    All stay None if neither the source, an hourly rate nor a token price determines them. A total that the source does
    not split counts as the part of the kind of actor that did the task. A stated cost in a currency without an exchange
    rate stays unknown, because time and tokens would give another figure than the stated one.
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
    task.cost_usd = _hourly_rate(task, rates)
    if task.cost_usd is not None:
        task.cost_basis = "rate"
        _whole_part(task)
    elif (cost := _tokens(task, rates)) is not None:
        task.cost_usd = task.cost_model_usd = cost
        task.cost_basis = "rate"


def _whole_part(task: Task) -> None:
    if task.actor_kind in COST_PARTS:
        setattr(task, COST_PARTS[task.actor_kind], task.cost_usd)


def _hourly_rate(task: Task, rates: Rates) -> float | None:
    """Returns the hourly rate of the actor, else of a role or group, else of the kind of actor.

    A number under the model's own name is a token price and no hourly rate.
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
    rate = _token_price(task.model, rates)
    if rate is None:
        return None
    paid = rate if isinstance(rate, TokenPrice) else TokenPrice(tokens_in=rate, tokens_out=rate)
    return ((task.tokens_in or 0) * paid.tokens_in + (task.tokens_out or 0) * paid.tokens_out) / 1e6


def _token_price(model: str, rates: Rates) -> float | TokenPrice | None:
    """Returns the token price of a model, by its name as written, then with date, then without.

    The source's rates take precedence over the shipped prices.
    """
    if model in rates:
        return rates[model]
    for name in model_names(model):
        for key, rate in sorted(rates.items()) if rates else ():
            if model_names(key)[0] == name:
                return rate
    return shipped_price(model)
