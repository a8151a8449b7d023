"""From what a source wrote to typed values: numbers, booleans, lists, texts. What cannot be told raises `BadValueError`."""

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


class BadValueError(ValueError):
    """A record cannot be used: a short stable code for counting, and a sentence."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


def text(value: Any) -> str:
    """Any value as text: strings as they are, the rest as JSON."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)


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
    """A finite number; with `decimal` stated the other sign groups thousands, without it there must be none."""
    if isinstance(value, str):
        plain = value.strip().removeprefix("$").strip()
        if decimal is not None:
            plain = re.sub(r"[\s'.]" if decimal == "," else r"[\s',]", "", plain).replace(decimal, ".")
        try:
            value = float(plain)
        except ValueError:
            hint = '; decimal = "," in source.toml reads decimal commas' if re.fullmatch(r"-?[\d.]*,\d+", plain) else ""
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


def amount(value: Any, decimal: str | None = None) -> float:
    """A number that may not be negative: money, memory, threads."""
    result = number(value, decimal)
    if result < 0:
        raise BadValueError("negative_number", f"{shown(value)} is negative")
    return result


def count(value: Any, decimal: str | None = None) -> int:
    """A whole number that may not be negative: tokens."""
    result = amount(value, decimal)
    if result >= 2**63:
        raise BadValueError("bad_number", f"{shown(value)} is out of range")
    return int(result)


def duration(value: Any, decimal: str | None = None) -> float:
    """Milliseconds of work."""
    result = number(value, decimal)
    if result < 0:
        raise BadValueError("negative_duration", f"the duration {shown(value)} is negative")
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
