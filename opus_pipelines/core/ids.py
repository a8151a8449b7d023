"""Hashes that name things: ids and content hashes. No clock, no randomness."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def canonical(value: Any) -> str:
    """JSON with sorted keys: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)


def digest(*parts: Any) -> str:
    """32 hex digits of what `parts` say, in their order; strings and bytes as they are, the rest as canonical JSON."""
    hasher = hashlib.sha256()
    for part in parts:
        text = part if isinstance(part, bytes | str) else canonical(part)
        data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        hasher.update(len(data).to_bytes(8, "big"))
        hasher.update(data)
    return hasher.hexdigest()[:32]


def make_id(letter: str, *parts: Any) -> str:
    """An id: one letter for the kind of thing, then 16 hex digits of what it identifies."""
    return letter + digest(*parts)[:16]


def make_ids(letter: str, part: str, texts: Iterable[str]) -> list[str]:
    """The ids of many things of one kind that differ in the second of two parts: `make_id(letter, part, text)` of
    each.
    """
    data = part.encode("utf-8", "surrogatepass")
    first = hashlib.sha256(len(data).to_bytes(8, "big") + data)
    found = []
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        hasher = first.copy()
        hasher.update(len(data).to_bytes(8, "big") + data)
        found.append(letter + hasher.hexdigest()[:16])
    return found


def file_hash(path: Path) -> str:
    """Hash of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]
