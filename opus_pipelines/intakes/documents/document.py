"""What a reader takes and what it gives back."""

import hashlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from opus_pipelines.core.errors import InputError
from opus_pipelines.intakes.documents.limits import MAX_BYTES, MAX_CHARACTERS, MIB


@dataclass(frozen=True)
class Document:
    """A document's name, size in bytes and content. `depth`: how many e-mails it came in."""

    name: str
    size: int
    open: Callable[[], BinaryIO]
    depth: int = 0

    @classmethod
    def of_file(cls, path: Path) -> "Document":
        """A file; raises OSError where it cannot be looked at."""
        return cls(path.name, path.stat().st_size, lambda: path.open("rb"))

    @classmethod
    def of_bytes(cls, name: str, data: bytes, depth: int = 0) -> "Document":
        """A document that is in memory, as an attachment is."""
        return cls(name, len(data), lambda: io.BytesIO(data), depth)

    def sha256(self) -> str:
        """Of its content, in hex."""
        with self.open() as file:
            return hashlib.file_digest(cast(Any, file), "sha256").hexdigest()

    def head(self, length: int = 4096) -> bytes:
        """Its first bytes."""
        with self.open() as file:
            return file.read(length)

    def content(self, limit: int = MAX_BYTES) -> bytes:
        """All of it; raises InputError where it is larger than `limit` bytes."""
        with self.open() as file:
            data = file.read(limit + 1)
        if len(data) > limit:
            raise InputError(
                f"{self.size:,} bytes are more than the {limit // MIB} MiB that are read of such a document; split it"
            )
        return data


@dataclass(frozen=True)
class DocumentText:
    """Ĩ_m of LWM (3): the text (None where there is none), what was left out in words, and the documents inside this
    one.
    """

    text: str | None
    left_out: tuple[str, ...] = ()
    parts: tuple[Document, ...] = ()


def front(text: str) -> tuple[str, str]:
    """The first MAX_CHARACTERS of a text whose reading was ended there, and a word on it."""
    kept, _ = cut(text, MAX_CHARACTERS)
    return kept, f"what stands after its first {len(kept):,} characters"


def counted(number: int, thing: str, plural: str = "") -> str:
    """`1 page`, `2 pages`; `plural` where an s does not make it."""
    return f"{number:,} {thing if number == 1 else plural or thing + 's'}"


def counts(found: dict[str, int]) -> tuple[str, ...]:
    """What was left out, a phrase a kind; kinds that did not occur fall away."""
    return tuple(counted(number, thing) for thing, number in found.items() if number)


def cut(text: str, limit: int) -> tuple[str, str | None]:
    """At most `limit` characters, ended at a space where there is one near, and what was left out."""
    if len(text) <= limit:
        return text, None
    end = text.rfind(" ", max(0, limit - 200), limit)
    kept = text[: end if end > 0 else limit]
    return kept, f"the last {len(text) - len(kept):,} of {len(text):,} characters"
