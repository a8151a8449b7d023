"""Figures in sentences: amounts of money, percentages and times become tokens, and bounds on them are read.

A token is `⟦amount|unit|kind⟧`: kind is m (money, unit an ISO code), p (per cent), w (time in working days or business
hours) or c (time by the calendar). Numbers are read in the notations of all countries (price-parser): "1.000,00",
"1,000.00", "10k".
"""

import re
from dataclasses import dataclass

from price_parser.parser import CURRENCY_CODES, parse_number  # type: ignore[attr-defined]  # imported there itself

_NAMED = (
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
)
_UNITS = {name: n for n, name in enumerate(_NAMED, start=1)}
_TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "ninety": 90}
_WORDS = {
    **_UNITS,
    **_TENS,
    **{f"{ten}-{one}": t + n for ten, t in _TENS.items() for one, n in _UNITS.items() if n < 10},
}
_SPELLED = "|".join(sorted(_WORDS, key=len, reverse=True))
_DIGITS = r"\d{1,3}(?:[.,'’\u00a0\u202f]\d{3})+(?:[.,]\d{1,2})?(?!\d)|\d{1,3}(?: \d{3})+(?!\d)|\d+(?:[.,]\d+)?"
NUMBER = rf"(?:{_DIGITS}|\b(?:{_SPELLED})\b)"
_SCALE = r"(?:\s?(?P<k>k|m|mio|thousand|million|mn)\b)?"
_CODES = "|".join(sorted(CURRENCY_CODES))
_SYMBOLS = {
    "€": "EUR",
    "£": "GBP",
    "US$": "USD",
    "$": "USD",
    "¥": "JPY",
    "₹": "INR",
    "₽": "RUB",
    "₩": "KRW",
    "zł": "PLN",
    "Kč": "CZK",
    "kr": "SEK",
    "Fr.": "CHF",
    "R$": "BRL",
    "A$": "AUD",
    "C$": "CAD",
    "₺": "TRY",
    "₴": "UAH",
    "₪": "ILS",
}
_NAMES = {
    "euro": "EUR",
    "euros": "EUR",
    "dollar": "USD",
    "dollars": "USD",
    "pound": "GBP",
    "pounds": "GBP",
    "quid": "GBP",
    "franc": "CHF",
    "francs": "CHF",
    "yen": "JPY",
    "zloty": "PLN",
    "rupees": "INR",
    "kronor": "SEK",
    "kroner": "NOK",
    "crowns": "CZK",
    "pesos": "MXN",
}
_MARKS = "|".join(re.escape(s) for s in sorted(_SYMBOLS, key=len, reverse=True))
_BEFORE = re.compile(rf"(?P<c>(?<![A-Za-z])(?:{_CODES})(?=[\s\d:])|{_MARKS}):?\s?(?P<n>{_DIGITS}){_SCALE}")
_BEHIND = re.compile(
    rf"(?P<n>{NUMBER}){_SCALE}\s?(?P<c>(?:{_CODES})\b|(?:{_MARKS})(?![A-Za-z])|(?i:(?:us |swiss "
    rf"|british )?(?:{'|'.join(_NAMES)}))\b)"
)
_LOWER = re.compile(
    rf"\b(?P<c>usd|eur|gbp|chf):?\s?(?P<n>{_DIGITS}){_SCALE}|(?P<n2>{_DIGITS})(?:\s?(?P<k2>k)\b)?\s?(?P<c2>usd|eur"
    rf"|gbp|chf)\b"
)
_PER_CENT = re.compile(rf"(?P<n>{NUMBER})\s?(?:%|per ?cent\b|percent\b)", re.I)
_TIME = re.compile(
    rf"(?P<n>{NUMBER}|\b(?:an?(?! second\b)|the next(?= (?:working|business))|\d+(?:st|nd|rd"
    rf"|th)))[\s-]+(?:full )?(?P<w>working "
    rf"|business |office |week|calendar )?"
    r"(?P<u>seconds?|secs?|minutes?|mins?|hours?|hrs?|h|days?|weeks?|months?|years?)\b(?! old)",
    re.I,
)
_TIME_UNITS = {"s": "second", "mi": "minute", "h": "hour", "d": "day", "w": "week", "mo": "month", "y": "year"}
_HOURS = {"second": 1 / 3600, "minute": 1 / 60, "hour": 1.0, "day": 24.0, "week": 168.0, "month": 730.0, "year": 8760.0}
MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
TOKEN = r"⟦[^⟧]*⟧"
TIME = r"⟦[^⟧|]*\|[a-z]+\|[wc]⟧"
_FUNCTION = (
    r"(?:must|shall|should|may|can|is|are|has|have|needs?|requires?|and|or|to|in|on|at|of|per|for|by|from"
    r"|with|if|when)\b"
)
_FIGURE = rf"(?:{TOKEN}|{NUMBER}(?:\s*°\s*|\s+)(?!{_FUNCTION})[a-z]+|{NUMBER})"
_MORE = (
    r"(?:above|over|exceed(?:s|ing|ed)?|more than|in excess of|beyond|upwards of|>"
    r"|(?:high|larg|great|long|old|bigg|heavi|wid|tall|deep|thick|hott|warm|lat|fast|farth|furth|hard|loud|dear"
    r"|strong|broad|steep"
    r"|wett)er than)"
)
_LESS = (
    r"(?:below|under|less than|<"
    r"|(?:few|low|small|short|young|light|cheap|earli|cold|cool|thinn|narrow|slow|near|clos|weak|shallow|dri)er than)"
)
_LEAST = (
    r"(?:at least|no less than|not less than|no fewer than|a minimum of|minimum|min\.|(?:greater|more"
    r"|higher) than or equal to"
    r"|equal to or (?:greater|more|higher) than|starting at|from(?= ⟦[^⟧]*\|m⟧)|≥|>=)"
)
_MOST = (
    r"(?:up to|at most|no more than|not more than|no longer than|not longer than|no higher than|not exceed(?:ing)?"
    r"|a maximum of"
    r"|maximum|max\.?"
    r"|limited to|capped at|≤|<=)"
)
BOUNDED = re.compile(
    rf"(?:\b|(?<=\s)|^)(?:(?P<most>{_MOST})|(?P<least>{_LEAST})|(?P<more>{_MORE})|(?P<less>{_LESS}))\s+(?:of\s+|the\s+"
    rf"|an?\s+)?(?P<f>{_FIGURE})"
    r"(?P<or> or (?:more|above|over|less|fewer|below))?"
    rf"|(?P<f2>{_FIGURE}) (?P<or2>or (?:more|above|over|less|fewer|below)|and (?:above|over|more|below)|at most"
    rf"|at least|maximum|max\b)"
)
_CODE = {"most": "<=", "least": ">=", "more": ">", "less": "<"}


@dataclass(frozen=True)
class Figure:
    """An amount and its unit; `calendar` is "working" or "calendar" for times, else ""."""

    amount: float
    unit: str
    calendar: str = ""


@dataclass(frozen=True)
class Bounded:
    """A figure and the operator that bounds it: <, <=, > or >=."""

    op: str
    figure: Figure


def number(text: str) -> float | None:
    """Return a number in digits or words; None where the text is no number."""
    text = text.strip().casefold()
    if text in _WORDS:
        return float(_WORDS[text])
    if text in ("a", "an", "the next"):
        return 1.0
    value = parse_number(re.sub(r"(?<=\d)[ '’\u00a0\u202f](?=\d)", "", re.sub(r"(?:st|nd|rd|th)$", "", text)))
    return None if value is None else float(value)


def money_in(text: str) -> tuple[Figure, ...]:
    """Return every amount of money in a text, with its currency; "$" is the US dollar."""
    return tuple(figure_of(match[0]) for match in re.finditer(r"⟦[^⟧]*\|m⟧", with_tokens(text)))


def with_tokens(text: str) -> str:
    """Return the text with its figures as tokens.

    The text must have its original case: "ALL 5" is money, "all 5" is not.
    """
    for pattern in (_BEFORE, _BEHIND, _LOWER):
        text = pattern.sub(_money, text)
    text = _PER_CENT.sub(lambda match: _token(match["n"], 1, "percent", "p") or match[0], text)
    return _TIME.sub(_time, text)


def figure_of(text: str) -> Figure:
    """Return the figure of a token, or of a number with its noun."""
    if text.startswith("⟦"):
        amount, unit, kind = text.strip("⟦⟧").split("|")
        unit = unit.upper() if kind == "m" else unit
        return Figure(float(amount), unit, {"w": "working", "c": "calendar"}.get(kind, ""))
    match = re.match(rf"(?P<n>{NUMBER})(?:\s*°)?\s*(?P<u>[a-z]*)", text)
    return Figure(number(match["n"]) or 0.0, match["u"] or "count") if match else Figure(0.0, "count")


def readable(text: str) -> str:
    """Return a text with its tokens in the form in which people write them."""
    return re.sub(TOKEN, _written, text)


def _written(match: re.Match[str]) -> str:
    figure = figure_of(match[0])
    if figure.unit.isupper():
        return f"{figure.unit} {figure.amount:,.2f}".removesuffix(".00")
    kind = "working " if figure.calendar == "working" else ""
    return f"{figure.amount:g} {kind}{figure.unit}{'s' if figure.calendar and figure.amount != 1 else ''}"


def hours(figure: Figure) -> float:
    """Return a time in calendar hours; a working day counts 24 * 7/5 hours, because a week has five of them."""
    per_unit = 7 / 5 if figure.calendar == "working" and figure.unit == "day" else 1.0
    return round(figure.amount * _HOURS[figure.unit] * per_unit, 6)


def bounded(match: re.Match[str]) -> Bounded:
    """Return the bound of a match of BOUNDED."""
    wording = match["or"] or match["or2"] or ""
    op = next((_CODE[name] for name in _CODE if match[name]), ">=")
    if re.search(r"more|above|over|at least", wording):
        op = ">="
    elif re.search(r"less|fewer|below|most|max", wording):
        op = "<="
    return Bounded(op, figure_of(match["f"] or match["f2"]))


def _money(match: re.Match[str]) -> str:
    groups = match.groupdict()
    name = groups.get("c") or groups.get("c2") or ""
    code = _SYMBOLS.get(name) or _NAMES.get(name.casefold().split()[-1]) or name.upper()
    scale = (groups.get("k") or groups.get("k2") or "").casefold()
    return (
        _token(groups.get("n") or groups.get("n2") or "", {"": 1, "k": 1e3, "thousand": 1e3}.get(scale, 1e6), code, "m")
        or match[0]
    )


def _time(match: re.Match[str]) -> str:
    unit = match["u"].casefold()
    name = next(
        full for short, full in sorted(_TIME_UNITS.items(), key=lambda item: -len(item[0])) if unit.startswith(short)
    )
    kind = "w" if (match["w"] or "").strip().casefold() in ("working", "business", "office", "week") else "c"
    return _token(match["n"], 1, name, kind) or match[0]


def _token(text: str, scale: float, unit: str, kind: str) -> str | None:
    value = number(text)
    return None if value is None else f"⟦{round(value * scale, 6)!r}|{unit}|{kind}⟧"
