"""Clients that are forgotten: readers leave their cases out from then on, while the source files may still hold them.

`wkg/kept/forgotten.json` has no names but their hashes, keyed with the lake's own `wkg/kept/private.key` (32 random
bytes, readable by the owner only): who has the file alone cannot even try names against it. The same key makes the
hashes of `[redact] hash`. Both are kept files: inputs of a rebuild like the id ledger.
"""

import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.ids import make_id
from opus_pipelines.lake.layout import Lake, read_json, write_atomically, write_json

WITHHELD = "(withheld: the source holds cases of a client who is forgotten)"
_KEY_BYTES = 32
_PARTS = re.compile(r"""[^"'\n,;\t|=]+""")  # of a record that cannot be taken apart


@dataclass(frozen=True)
class Forgotten:
    """Who is forgotten: the client's mark → the marks of the sources that were found to hold that client's cases."""

    key: bytes = b""
    clients: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, lake: Lake) -> "Forgotten":
        """What the lake keeps; nobody, without a key, before there is one. Never writes."""
        path = _key_path(lake)
        kept = read_json(_list_path(lake)) or {"clients": {}}
        if kept["clients"] and not path.is_file():
            raise LakeError(
                f"{path} is missing, without which nobody can tell who is forgotten; restore it from a backup"
            )
        return cls(path.read_bytes() if path.is_file() else b"", {c: frozenset(s) for c, s in kept["clients"].items()})

    def mark(self, name: str) -> str:
        """The keyed hash of a client's or a source's name."""
        return hmac.new(self.key, name.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:32]

    def holds(self, client: str | None) -> bool:
        """Is this client forgotten?"""
        return client is not None and bool(self.clients) and self.mark(client) in self.clients

    def names_in(self, record: str) -> set[str]:
        """The forgotten clients that a record's text has as one of its values."""
        if not self.clients:
            return set()
        try:
            values = set(_texts(json.loads(record)))
        except (ValueError, RecursionError):
            values = set(_PARTS.findall(record))
        return {value for value in values if self.holds(value)}

    def content(self, source: str, content: str) -> str:
        """A source's content hash: its own, and another where clients are left out of it."""
        left_out = sorted(client for client, sources in self.clients.items() if self.mark(source) in sources)
        return make_id("h", content, left_out) if left_out else content

    def found_in(self, source: str, clients: Iterable[str]) -> "Forgotten":
        """With exactly these clients, all of them forgotten, known to be left out of the source."""
        left_out, mark = {self.mark(client) for client in clients}, self.mark(source)
        return Forgotten(self.key, {c: s | {mark} if c in left_out else s - {mark} for c, s in self.clients.items()})

    def with_client(self, client: str, sources: Iterable[str] = ()) -> "Forgotten":
        """With one client more, and sources known to hold its cases: they are read again."""
        mark, known = self.mark(client), frozenset(map(self.mark, sources))
        return Forgotten(self.key, {**self.clients, mark: self.clients.get(mark, frozenset()) | known})

    def without_client(self, client: str) -> "Forgotten":
        """With one client less: a rebuild then reads that client's sources again."""
        return Forgotten(self.key, {c: s for c, s in self.clients.items() if c != self.mark(client)})

    def save(self, lake: Lake) -> None:
        """Keep it; only the holder of the lake's lock may."""
        write_json(
            _list_path(lake), {"clients": {client: sorted(sources) for client, sources in sorted(self.clients.items())}}
        )


def private_key(lake: Lake) -> bytes:
    """The lake's key, made when there is none yet. Only the holder of the lake's lock may ask."""
    path = _key_path(lake)
    if not path.is_file():
        write_atomically(path, _write_key)
    return path.read_bytes()


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


def _write_key(path: Path) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(secrets.token_bytes(_KEY_BYTES))


def _key_path(lake: Lake) -> Path:
    return lake.kept / "private.key"


def _list_path(lake: Lake) -> Path:
    return lake.kept / "forgotten.json"
