"""Reads amounts of money and converts them to dollars by the exchange rates of the settings.

Without a rate an amount is unknown; it is never guessed. The currency of an amount is the one written in it (a sign or
three letters), else that of its record, else `currency` of source.toml, else the dollar. A column whose name ends in
`usd` contains dollars. A sign that several currencies share means the record's or the source's currency if that is one
of them. An amount in another currency is also kept among the attributes, with its currency.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from opus_pipelines.history.records import values
from opus_pipelines.history.records.source_settings import SourceSettings
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
