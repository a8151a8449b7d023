"""Reads amounts of money, converts them to dollars, and computes what a task cost.

Without an exchange rate an amount is unknown; it is never guessed. The currency of an amount is the one written in it
(a sign or three letters), else that of its record, else `currency` of source.toml, else the dollar. A column whose name
ends in `usd` contains dollars. A sign that several currencies share means the record's or the source's currency if that
is one of them. An amount in another currency is also kept among the attributes, with its currency.

The cost of a task is the one that the source states; else the actor's hourly rate times the working time; else the
tokens of a model call times a price. An hourly rate is looked up by person, then by role or group, then by kind of
actor. A token price comes from the source's `[rates]`, else from the shipped table of well-known models
(`token_prices`).
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from opus_pipelines.history.records import values
from opus_pipelines.history.records.raw import Task
from opus_pipelines.history.records.source_settings import SourceSettings, TokenPrice
from opus_pipelines.history.records.values import BadValueError, shown

DOLLAR = "USD"
CURRENCIES = frozenset(
    re.findall(
        "[A-Z]{3}",
        """
    AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF
    CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG
    HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA
    MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD
    RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX
    USD UYU UZS VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW
""",
    )
)  # ISO 4217; the settings may have rates of other currencies
_OWN_SIGNS = {
    "$": DOLLAR,
    "US$": DOLLAR,
    "€": "EUR",
    "£": "GBP",
    "₹": "INR",
    "₩": "KRW",
    "₺": "TRY",
    "₴": "UAH",
    "₽": "RUB",
    "₫": "VND",
    "₪": "ILS",
    "R$": "BRL",
    "A$": "AUD",
    "C$": "CAD",
    "NZ$": "NZD",
    "HK$": "HKD",
    "S$": "SGD",
    "ZŁ": "PLN",
    "KČ": "CZK",
    "FT": "HUF",
}
_SHARED_SIGNS = {
    "$": frozenset(("ARS", "AUD", "CAD", "CLP", "COP", "HKD", "MXN", "NZD", "SGD", "TWD")),
    "£": frozenset(("EGP", "FKP", "GIP", "SHP")),
    "¥": frozenset(("CNY", "JPY")),
    "KR": frozenset(("DKK", "ISK", "NOK", "SEK")),
}
_WRITTEN = re.compile(r"([^\d\s.,+'-]*)\s*([+-]?[\d.,'\s]*\d(?:[eE][+-]?\d+)?)\s*([^\d\s]*)")
_WRITTEN_LENGTH = 64  # no sum of money is longer, and searching a long text takes its time


@dataclass(frozen=True)
class Amount:
    """An amount in its own currency. `usd` is None without an exchange rate."""

    number: float
    currency: str
    usd: float | None

    def attributes(self, name: str) -> dict[str, str]:
        """Returns the attributes that keep the original amount: `<name>_original` and `<name>_currency`.

        The result is empty for dollars.
        """
        return (
            {}
            if self.currency == DOLLAR
            else {f"{name}_original": f"{self.number:.15g}", f"{name}_currency": self.currency}
        )


class Money:
    """Reads the amounts of one file. `foreign_currencies` has the currencies that it read, without the dollar."""

    def __init__(self, settings: SourceSettings) -> None:
        self.decimal = settings.decimal
        self.foreign_currencies: set[str] = set()
        self._default = settings.currency or DOLLAR
        self._rates = {**settings.usd_per_unit, DOLLAR: 1.0}

    def read(self, value: Any, record_currency: Any = None, column: str = "") -> Amount:
        """Reads the amount in `value`.

        Raises BadValueError if it is no amount, is negative, or its currency is unclear.
        """
        own = None if record_currency in (None, "") else self._code(record_currency, None)
        if column.lower().endswith("usd"):
            own = DOLLAR
        number, sign = self._split(value)
        currency = own or self._default if sign is None else self._code(sign, own or self._default)
        if own is not None and currency != own:
            raise BadValueError("bad_currency", f"{shown(value)} is in {currency}, but the record's currency is {own}")
        usd = self._dollars(number, currency)
        if currency != DOLLAR:
            self.foreign_currencies.add(currency)
        return Amount(number, currency, usd)

    def _split(self, value: Any) -> tuple[float, str | None]:
        if isinstance(value, str) and len(value) <= _WRITTEN_LENGTH and (match := _WRITTEN.fullmatch(value.strip())):
            before, number, after = match.groups()
            if before and after:
                raise BadValueError("bad_number", f"{shown(value)} is no amount")
            return values.amount(number, self.decimal), before or after or None
        return values.amount(value, self.decimal), None

    def _code(self, written: Any, wanted: str | None) -> str:
        """Returns the currency of three letters or a sign.

        A shared sign means `wanted` if that currency uses the sign.
        """
        word = values.text(written).strip().upper()
        if wanted is not None and wanted in _SHARED_SIGNS.get(word, ()):
            return wanted
        code = _OWN_SIGNS.get(word, word)
        if code in CURRENCIES or code in self._rates:
            return code
        several = " and ".join(sorted(_SHARED_SIGNS.get(word, ())))
        if several:
            raise BadValueError(
                "bad_currency", f"{shown(written)} is a sign of {several}; currency in source.toml says which"
            )
        raise BadValueError("bad_currency", f"{shown(written)} is no currency; write its three letters, as in EUR")

    def _dollars(self, number: float, currency: str) -> float | None:
        rate = self._rates.get(currency)
        usd = None if rate is None else number * rate
        if usd is not None and usd > values.LARGEST:
            raise BadValueError(
                "bad_number", f"the amount in dollars is out of range: it is more than {values.LARGEST:,.0f}"
            )
        return usd


def remark(currencies: Iterable[str], settings: SourceSettings) -> str | None:
    """Returns a message that names the currencies without a rate and the setting to add, or None if all have a rate."""
    lacking = sorted(set(currencies) - settings.usd_per_unit.keys())
    if not lacking:
        return None
    some = ", ".join(lacking[:5]) + (f" and {len(lacking) - 5} more" if len(lacking) > 5 else "")
    return (
        f"no rate for {some}, so costs in it are unknown; usd_per_unit = {{ {lacking[0]} = ... }}, under [currency] "
        "in opus.toml or "
        "at the top of source.toml, says how many dollars one is worth"
    )


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
