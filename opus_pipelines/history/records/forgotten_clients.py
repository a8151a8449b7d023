"""Keeps the list of forgotten clients, whose cases readers leave out even if the source files still contain them.

`wkg/kept/forgotten.json` contains no names but keyed hashes. The key is the lake's own `wkg/kept/private.key` (32
random bytes that only the owner can read), so nobody can test names against the list alone. The hashes of `[redact]
hash` use the same key. Both files are kept files: inputs of a rebuild, like the id ledger.
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
from opus_pipelines.lake.layout import Lake, read_json

WITHHELD = "(withheld: the source holds cases of a client who is forgotten)"
_KEY_BYTES = 32
_PARTS = re.compile(r"""[^"'\n,;\t|=]+""")  # the values in a record that cannot be parsed


@dataclass(frozen=True)
class Forgotten:
    """The forgotten clients: the hash of each client, and the hashes of the sources that contain its cases."""

    key: bytes = b""
    clients: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, lake: Lake) -> "Forgotten":
        """Loads the list of the lake without writing.

        The list and the key are empty before the first client is forgotten.
        """
        path = _key_path(lake)
        kept = read_json(_list_path(lake)) or {"clients": {}}
        if kept["clients"] and not path.is_file():
            raise LakeError(
                f"{path} is missing, without which nobody can tell who is forgotten; restore it from a backup"
            )
        return cls(path.read_bytes() if path.is_file() else b"", {c: frozenset(s) for c, s in kept["clients"].items()})

    def mark(self, name: str) -> str:
        """Returns the keyed hash of a client's or a source's name."""
        return hmac.new(self.key, name.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:32]

    def holds(self, client: str | None) -> bool:
        """Tells whether this client is forgotten."""
        return client is not None and bool(self.clients) and self.mark(client) in self.clients

    def names_in(self, record: str) -> set[str]:
        """Returns the forgotten clients that occur as a value in the text of a record."""
        if not self.clients:
            return set()
        try:
            values = set(_texts(json.loads(record)))
        except (ValueError, RecursionError):
            values = set(_PARTS.findall(record))
        return {value for value in values if self.holds(value)}

    def content(self, source: str, content: str) -> str:
        """Returns a source's content hash, changed if clients are left out of the source."""
        left_out = sorted(client for client, sources in self.clients.items() if self.mark(source) in sources)
        return make_id("h", content, left_out) if left_out else content

    def with_cases_in(self, source: str, clients: Iterable[str]) -> "Forgotten":
        """Returns a copy in which exactly these clients are recorded as left out of the source.

        All must be forgotten.
        """
        left_out, mark = {self.mark(client) for client in clients}, self.mark(source)
        return Forgotten(self.key, {c: s | {mark} if c in left_out else s - {mark} for c, s in self.clients.items()})

    def with_client(self, client: str, sources: Iterable[str] = ()) -> "Forgotten":
        """Returns a copy with one more client and the sources that contain its cases. These sources are read again."""
        mark, known = self.mark(client), frozenset(map(self.mark, sources))
        return Forgotten(self.key, {**self.clients, mark: self.clients.get(mark, frozenset()) | known})

    def without_client(self, client: str) -> "Forgotten":
        """Returns a copy without the client. The next rebuild reads that client's sources again."""
        return Forgotten(self.key, {c: s for c, s in self.clients.items() if c != self.mark(client)})

    def save(self, lake: Lake) -> None:
        """Writes the list. The caller must hold the lake's lock."""
        clients = {client: sorted(sources) for client, sources in sorted(self.clients.items())}
        lake.replace_json(_list_path(lake), {"clients": clients})


def private_key(lake: Lake) -> bytes:
    """Returns the lake's key and creates it if there is none. The caller must hold the lake's lock."""
    path = _key_path(lake)
    if not path.is_file():
        lake.replace(path, _write_key)
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
