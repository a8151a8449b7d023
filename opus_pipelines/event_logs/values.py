"""From what a source wrote to typed values: numbers, booleans, lists, texts. What cannot be told raises
`BadValueError`.
"""

import json
import math
import re
from typing import Any

TRUE = frozenset({"true", "t", "yes", "y", "1", "1.0", "success", "succeeded"})
FALSE = frozenset({"false", "f", "no", "n", "0", "0.0", "failure", "failed"})
ACTOR_KINDS = {
    **dict.fromkeys(("human", "person", "people", "user", "employee", "manual"), "human"),
    **dict.fromkeys(("model", "ai", "llm", "ai model", "agent"), "model"),
    **dict.fromkeys(("code", "program", "system", "software", "service", "script", "bot", "automatic"), "code"),
}
_REASON = 1_000  # characters of a sentence that quotes what stands in a file
LONGEST_TEXT, LONGEST_NAME = (
    1 << 20,
    10_000,
)  # characters: what is longer was written by no person, and masking it takes seconds
LARGEST, LONGEST_MS, MOST_RUNS = (
    1e12,
    1e14,
    1_000_000_000,
)  # sums of them, in millionths, stay within what Spark's decimals hold
_GROUPS = {".": r"[,'\s]", ",": r"[.'\s]"}  # by the decimal sign: what may group thousands
_GROUPED = {sign: re.compile(rf"[+-]?\d{{1,3}}({group})(?:\d{{2,3}}\1)*\d{{3}}") for sign, group in _GROUPS.items()}


class BadValueError(ValueError):
    """A record cannot be used: a short stable code for counting, and a sentence."""

    def __init__(self, code: str, reason: str) -> None:
        self.code = code
        self.reason = reason if len(reason) <= _REASON else reason[: _REASON - 3] + "..."
        super().__init__(self.reason)


def text(value: Any) -> str:
    """Any value as text: strings as they are, the rest as JSON; raises BadValueError for one that is no text that
    people wrote.
    """
    written = value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
    return _not_longer(written, LONGEST_TEXT, "; drop under [redact] in source.toml leaves it out")


def name(value: Any) -> str:
    """The text of a name: a case's id, a task's key."""
    return _not_longer(text(value), LONGEST_NAME, "")


def _not_longer(written: str, most: int, advice: str) -> str:
    if len(written) > most:
        raise BadValueError(
            "too_long", f"the text has {len(written):,} characters, and at most {most:,} are read{advice}"
        )
    return written


def boolean(value: Any) -> bool:
    """true/false, yes/no, 1/0, success/failure, in any case."""
    if isinstance(value, bool):
        return value
    word = text(value).strip().lower()
    if word in TRUE:
        return True
    if word in FALSE:
        return False
    raise BadValueError("bad_boolean", f"{shown(value)} is neither true nor false")


def number(value: Any, decimal: str | None = None) -> float:
    """A finite number. With `decimal` stated the other sign, a space or an apostrophe groups thousands; without it
    nothing may group.
    """
    if isinstance(value, str):
        plain = value.strip().removeprefix("$").strip()
        if decimal is not None:
            plain = _ungrouped(plain, decimal)
        try:
            value = float(plain) if "_" not in plain else float("no")
        except ValueError:
            hint = (
                '; decimal = "," or "." in source.toml says what a comma is'
                if re.fullmatch(r"[+-]?[\d.]*,[\d.,]+", plain)
                else ""
            )
            raise BadValueError("bad_number", f"{shown(value)} is no number{hint}") from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadValueError("bad_number", f"{shown(value)} is no number")
    try:
        value = float(value)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise BadValueError("not_finite", "the number is not finite")
    return value


def _ungrouped(plain: str, decimal: str) -> str:
    """A written number without what groups its thousands, and with a point; groups that are none say that `decimal` is
    wrong.
    """
    whole, point, rest = plain.partition(decimal)
    if re.search(_GROUPS[decimal], plain):
        if not _GROUPED[decimal].fullmatch(whole) or not re.fullmatch(r"\d*", rest):
            raise BadValueError("bad_number", f"{shown(plain)} is no number whose decimal sign is {decimal}")
        whole = re.sub(r"[^\d+-]", "", whole)
    return whole + ("." if point else "") + rest


def amount(value: Any, decimal: str | None = None) -> float:
    """A number from 0 to `LARGEST`: money, memory, threads."""
    result = number(value, decimal)
    if result < 0:
        raise BadValueError("negative_number", f"{shown(value)} is negative")
    return _bounded(result, value, LARGEST)


def count(value: Any, decimal: str | None = None) -> int:
    """A whole number that may not be negative: tokens."""
    return int(amount(value, decimal))


def weight(value: Any) -> int:
    """How many runs one record stands for: a whole number from 1 to `MOST_RUNS`."""
    result = number(value)
    if result != int(result) or not 1 <= result <= MOST_RUNS:
        raise BadValueError(
            "bad_weight", f"{shown(value)} is no number of runs: a whole number from 1 to {MOST_RUNS:,}"
        )
    return int(result)


def duration(value: Any, decimal: str | None = None) -> float:
    """Milliseconds of work, at most as many as three thousand years have."""
    result = number(value, decimal)
    if result < 0:
        raise BadValueError("negative_duration", f"the duration {shown(value)} is negative")
    return _bounded(result, value, LONGEST_MS)


def _bounded(result: float, value: Any, most: float) -> float:
    if result > most:
        raise BadValueError("bad_number", f"{shown(value)} is out of range: it is more than {most:,.0f}")
    return result


def actor_kind(value: Any) -> str | None:
    """human, model or code, from the usual words for them; None for any other word."""
    return ACTOR_KINDS.get(text(value).strip().lower())


def texts(value: Any) -> list[str]:
    """A list of texts: a list, JSON of one, or a text of parts between line ends, `;` or `|`."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return [value]
    if isinstance(value, list):
        return [text(v) for v in value if v not in (None, "")]
    return [part.strip() for part in re.split(r"[;|\n]", text(value)) if part.strip()]


def instructions(value: Any) -> list[str]:
    """Like `texts`, but prose may hold `;` and `|`: only lines are parts."""
    if isinstance(value, str) and not value.lstrip().startswith("["):
        return [line.strip() for line in value.splitlines() if line.strip()]
    return texts(value)


def places(value: Any) -> list[int]:
    """A list of places in a list."""
    if not isinstance(value, list) or not all(type(v) is int and v >= 0 for v in value):
        raise BadValueError("bad_predecessors", "the predecessors must be a list of places, counted from 0")
    return value


def flatten(value: dict[str, Any], prefix: str = "", depth: int = 8) -> dict[str, Any]:
    """Nested objects as one with dotted names; lists, and what lies deeper than `depth`, stay values."""
    flat: dict[str, Any] = {}
    for key, inner in value.items():
        if isinstance(inner, dict) and depth:
            flat |= flatten(inner, f"{prefix}{key}.", depth - 1)
        else:
            flat[f"{prefix}{key}"] = inner
    return flat


def at_path(value: Any, path: str) -> Any:
    """What lies at a dotted path, None where nothing does."""
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def shown(value: Any) -> str:
    """A value as a message may show it: quoted, at most 40 characters."""
    written = value if isinstance(value, str) else repr(value)
    return repr(written if len(written) <= 40 else written[:37] + "...")
