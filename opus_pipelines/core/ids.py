"""Computes ids and content hashes. They depend on their input only, on no clock and no randomness.

`SameObject` is the key of a cache in one process, for an object that is too large to be compared by its content, and
`SameSettings` is one for settings, which cannot be hashed.
"""

import hashlib
import json
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from pydantic import BaseModel

_T = TypeVar("_T")
S = TypeVar("S", bound="BaseModel")
# `json.dumps` would make an encoder at each call
_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str).encode


def canonical(value: Any) -> str:
    """Returns a value as JSON with sorted keys, so that equal values give equal text."""
    return _canonical(value)


def digest(*parts: Any) -> str:
    """Returns 32 hex digits of SHA-256 over `parts`: texts and bytes as they are, the rest as canonical JSON."""
    hasher = hashlib.sha256()
    for part in parts:
        text = part if isinstance(part, bytes | str) else canonical(part)
        data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        hasher.update(len(data).to_bytes(8, "big"))
        hasher.update(data)
    return hasher.hexdigest()[:32]


def make_id(letter: str, *parts: Any) -> str:
    """Returns an id: one letter for the kind of thing, then 16 hex digits of the hash of `parts`."""
    return letter + digest(*parts)[:16]


def make_ids(letter: str, texts: Iterable[str], *shared: str) -> list[str]:
    """Returns `make_id(letter, *shared, text)` for each text. It hashes the shared parts once."""
    first = hashlib.sha256()
    for part in shared:
        data = part.encode("utf-8", "surrogatepass")
        first.update(len(data).to_bytes(8, "big") + data)
    ids = []
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        hasher = first.copy()
        hasher.update(len(data).to_bytes(8, "big") + data)
        ids.append(letter + hasher.hexdigest()[:16])
    return ids


def file_hash(path: Path) -> str:
    """Returns 32 hex digits of SHA-256 over the bytes of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]


class SameObject(Generic[_T]):
    """A key that equals only a key of the same object. It keeps the object alive, so that no other has its identity."""

    def __init__(self, value: _T) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameObject) and other.value is self.value


@dataclass(frozen=True)
class SameSettings(Generic[S]):
    """A key that equals a key of settings that state the same."""

    stated: str
    settings: S = field(compare=False)

    @classmethod
    def of(cls, settings: S) -> "SameSettings[S]":
        """Returns the key of these settings."""
        return cls(settings.model_dump_json(), settings)


# letters of the Cyrillic and the Greek script that look like Latin ones, in lower case (Unicode TR 39 has more)
_LOOK_ALIKES = str.maketrans("аеорсухіјѕԁһкмтвнɡοαρνικτυ", "aeopcyxijsdhkmtbhgoapvikty")


def look_alike_form(name: str) -> str:
    """Returns the form in which names that a person takes for the same are equal.

    Unicode forms, case, accents, blanks, punctuation, invisible characters and letters of other scripts that look alike
    make no difference.
    """
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", name).casefold())
    return "".join(letter for letter in decomposed.translate(_LOOK_ALIKES) if letter.isalnum())
