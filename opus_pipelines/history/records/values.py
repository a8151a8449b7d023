"""Converts written values to numbers, booleans, lists and texts. A value that cannot be read raises `BadValueError`."""

import ast
import json
import math
import re
from collections import deque
from typing import Any

TRUE = frozenset({"true", "t", "yes", "y", "1", "1.0", "success", "succeeded"})
FALSE = frozenset({"false", "f", "no", "n", "0", "0.0", "failure", "failed"})
ACTOR_KINDS = {
    **dict.fromkeys(("human", "person", "people", "user", "employee", "manual"), "human"),
    **dict.fromkeys(("model", "ai", "llm", "ai model", "agent"), "model"),
    **dict.fromkeys(("code", "program", "system", "software", "service", "script", "bot", "automatic"), "code"),
}
_REASON = 1_000  # characters of a reason, which may quote a file
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
    """A record cannot be used. It has a short stable code for counting, and a sentence with the reason."""

    def __init__(self, code: str, reason: str) -> None:
        self.code = code
        self.reason = reason if len(reason) <= _REASON else reason[: _REASON - 3] + "..."
        super().__init__(self.reason)


def text(value: Any) -> str:
    """Converts any value to text: strings unchanged, others as JSON. Raises BadValueError if the text is too long."""
    written = value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
    return _not_longer(written, LONGEST_TEXT, "; drop under [redact] in source.toml leaves it out")


def name(value: Any) -> str:
    """Converts a value to a name, such as a case id or a task key. Raises BadValueError if it is too long."""
    return _not_longer(text(value), LONGEST_NAME, "")


def _not_longer(written: str, most: int, advice: str) -> str:
    if len(written) > most:
        raise BadValueError(
            "too_long", f"the text has {len(written):,} characters, and at most {most:,} are read{advice}"
        )
    return written


def boolean(value: Any) -> bool:
    """Reads true/false, yes/no, 1/0 or success/failure in upper or lower case. Raises BadValueError for other words."""
    if isinstance(value, bool):
        return value
    word = text(value).strip().lower()
    if word in TRUE:
        return True
    if word in FALSE:
        return False
    raise BadValueError("bad_boolean", f"{shown(value)} is neither true nor false")


def number(value: Any, decimal: str | None = None) -> float:
    """Reads a finite number. Raises BadValueError.

    If `decimal` is stated, the other sign, a space or an apostrophe groups thousands; otherwise grouping is not
    allowed.
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
        result = float(value)
    except OverflowError:
        result = math.inf
    if not math.isfinite(result):
        raise BadValueError("not_finite", "the number is not finite")
    return result


def _ungrouped(plain: str, decimal: str) -> str:
    """Removes the thousands separators of a written number and writes its decimal sign as a point.

    Raises BadValueError for wrong groups, which show that `decimal` is wrong.
    """
    whole, point, rest = plain.partition(decimal)
    if re.search(_GROUPS[decimal], plain):
        if not _GROUPED[decimal].fullmatch(whole) or not re.fullmatch(r"\d*", rest):
            raise BadValueError("bad_number", f"{shown(plain)} is no number whose decimal sign is {decimal}")
        whole = re.sub(r"[^\d+-]", "", whole)
    return whole + ("." if point else "") + rest


def amount(value: Any, decimal: str | None = None) -> float:
    """Reads a number from 0 to `LARGEST`, for money, memory and threads. Raises BadValueError."""
    result = number(value, decimal)
    if result < 0:
        raise BadValueError("negative_number", f"{shown(value)} is negative")
    return _bounded(result, value, LARGEST)


def count(value: Any, decimal: str | None = None) -> int:
    """Reads a whole number that is not negative, for tokens. Raises BadValueError."""
    return int(amount(value, decimal))


def weight(value: Any) -> int:
    """Reads the number of runs that one record represents: a whole number from 1 to `MOST_RUNS`.

    Raises BadValueError.
    """
    result = number(value)
    if result != int(result) or not 1 <= result <= MOST_RUNS:
        raise BadValueError(
            "bad_weight", f"{shown(value)} is no number of runs: a whole number from 1 to {MOST_RUNS:,}"
        )
    return int(result)


def duration(value: Any, decimal: str | None = None) -> float:
    """Reads milliseconds of work, at most `LONGEST_MS` (about three thousand years). Raises BadValueError."""
    result = number(value, decimal)
    if result < 0:
        raise BadValueError("negative_duration", f"the duration {shown(value)} is negative")
    return _bounded(result, value, LONGEST_MS)


def _bounded(result: float, value: Any, most: float) -> float:
    if result > most:
        raise BadValueError("bad_number", f"{shown(value)} is out of range: it is more than {most:,.0f}")
    return result


def actor_kind(value: Any) -> str | None:
    """Returns human, model or code for the usual words for them, and None for any other word."""
    return ACTOR_KINDS.get(text(value).strip().lower())


def texts(value: Any) -> list[str]:
    """Reads a list of texts: a list, a JSON list, or a text with parts separated by line ends, `;` or `|`."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return [value]
    if isinstance(value, list):
        return [text(v) for v in value if v not in (None, "")]
    return [part.strip() for part in re.split(r"[;|\n]", text(value)) if part.strip()]


def field_names(value: Any) -> list[str]:
    """Reads the names of the fields of an object, or of the objects in a list.

    The value may be a text that JSON or Python wrote. What the fields hold is left out. A value without fields has no
    names.
    """
    if isinstance(value, str):
        value = _written(text(value))
    names: dict[str, None] = {}
    values = deque([value])
    while values:
        inner = values.popleft()
        if isinstance(inner, dict):
            names.update((str(name), None) for name in inner)
        elif isinstance(inner, list | tuple):
            values.extend(inner)
    return list(names)


def _written(written: str) -> Any:
    """Returns the value that a text states as JSON or as a literal of Python; None where it states none."""
    for read in (json.loads, ast.literal_eval) if "{" in written else ():  # an object is written with braces
        try:
            return read(written)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return None


def instructions(value: Any) -> list[str]:
    """Reads a list of texts like `texts`, but only line ends separate the parts.

    Prose may contain `;` and `|`.
    """
    if isinstance(value, str) and not value.lstrip().startswith("["):
        return [line.strip() for line in value.splitlines() if line.strip()]
    return texts(value)


def places(value: Any) -> list[int]:
    """Reads a list of positions in a list, counted from 0. Raises BadValueError."""
    if not isinstance(value, list) or not all(type(v) is int and v >= 0 for v in value):
        raise BadValueError("bad_predecessors", "the predecessors must be a list of places, counted from 0")
    return value


def flatten(value: dict[str, Any], prefix: str = "", depth: int = 8) -> dict[str, Any]:
    """Flattens nested objects to one with dotted names.

    Lists, and objects deeper than `depth`, stay values.
    """
    flat: dict[str, Any] = {}
    for key, inner in value.items():
        if isinstance(inner, dict) and depth:
            flat |= flatten(inner, f"{prefix}{key}.", depth - 1)
        else:
            flat[f"{prefix}{key}"] = inner
    return flat


def at_path(value: Any, path: str) -> Any:
    """Returns the value at a dotted path, or None if there is none."""
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def shown(value: Any) -> str:
    """Quotes a value for a message, with at most 40 characters."""
    written = value if isinstance(value, str) else repr(value)
    return repr(written if len(written) <= 40 else written[:37] + "...")
