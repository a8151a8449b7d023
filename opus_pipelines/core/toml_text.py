"""Writes values as TOML text."""

import json
from collections.abc import Iterable


def quoted(value: str) -> str:
    """Returns a text as a TOML string."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def listed(values: Iterable[str]) -> str:
    """Returns texts as a TOML list on one line."""
    return "[" + ", ".join(map(quoted, values)) + "]"


def lines(values: dict[str, str | list[str]]) -> list[str]:
    """Returns one `key = value` line for each item."""
    return [f"{key} = {quoted(value) if isinstance(value, str) else listed(value)}" for key, value in values.items()]
