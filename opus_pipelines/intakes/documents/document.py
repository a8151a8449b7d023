"""Defines what a document reader takes (`Document`) and returns (`DocumentText`)."""

import hashlib
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

from opus_pipelines.core.errors import InputError
from opus_pipelines.intakes.documents.limits import MAX_BYTES, MAX_CHARACTERS, MIB
from opus_pipelines.intakes.visibility.unseen import ASIDES


@dataclass(frozen=True)
class Document:
    """The name, the size in bytes and the content of a document.

    `depth`: how many e-mails it is nested in. `asides`: the kinds of text outside the body that are read
    (`intakes.visibility.unseen.ASIDES`).
    """

    name: str
    size: int
    open: Callable[[], BinaryIO]
    depth: int = 0
    asides: frozenset[str] = ASIDES

    @classmethod
    def of_file(cls, path: Path, asides: frozenset[str] = ASIDES) -> "Document":
        """Returns a file as a document. Raises OSError where its size cannot be read."""
        return cls(path.name, path.stat().st_size, lambda: path.open("rb"), 0, asides)

    @classmethod
    def of_bytes(cls, name: str, data: bytes, depth: int = 0, asides: frozenset[str] = ASIDES) -> "Document":
        """Returns a document in memory, such as an attachment."""
        return cls(name, len(data), lambda: io.BytesIO(data), depth, asides)

    def sha256(self) -> str:
        """Returns the SHA-256 of its content, in hex."""
        with self.open() as file:
            return hashlib.file_digest(cast(Any, file), "sha256").hexdigest()

    def head(self, length: int = 4096) -> bytes:
        """Returns its first bytes."""
        with self.open() as file:
            return file.read(length)

    def content(self, limit: int = MAX_BYTES) -> bytes:
        """Returns all of its bytes. Raises InputError where they are more than `limit`."""
        with self.open() as file:
            data = file.read(limit + 1)
        if len(data) > limit:
            raise InputError(
                f"{self.size:,} bytes are more than the {limit // MIB} MiB that are read of such a document; split it"
            )
        return data


@dataclass(frozen=True)
class DocumentText:
    """The text of a document, Ĩ_m of LWM (3), or None where there is none.

    `left_out` says what is not in the text, `parts` are the documents inside this one. `places` says of lines of the
    text, counted from 0, where a person finds them on the page or slide.
    """

    text: str | None
    left_out: tuple[str, ...] = ()
    parts: tuple[Document, ...] = ()
    places: Mapping[int, str] = field(default_factory=dict)


def front(text: str) -> tuple[str, str]:
    """Returns the first MAX_CHARACTERS of a text whose reading ended there, and a note on what was left out."""
    kept, _ = cut(text, MAX_CHARACTERS)
    return kept, f"what stands after its first {len(kept):,} characters"


def counted(number: int, thing: str, plural: str = "") -> str:
    """Returns a number with its noun: `1 page`, `2 pages`. `plural` is for nouns without a plural in s."""
    return f"{number:,} {thing if number == 1 else plural or thing + 's'}"


def counts(numbers: dict[str, int]) -> tuple[str, ...]:
    """Returns one phrase for each kind of part that was left out, without kinds that did not occur."""
    return tuple(counted(number, thing) for thing, number in numbers.items() if number)


def cut(text: str, limit: int) -> tuple[str, str | None]:
    """Returns at most `limit` characters, cut at a space where one is near, and a note on what was left out."""
    if len(text) <= limit:
        return text, None
    end = text.rfind(" ", max(0, limit - 200), limit)
    kept = text[: end if end > 0 else limit]
    return kept, f"the last {len(text) - len(kept):,} of {len(text):,} characters"
