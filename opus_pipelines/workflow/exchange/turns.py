"""The record of the edits of a flow's file, turn by turn, and their undo.

`FILE.turns` lies beside the file and has a line of JSON for each turn: what was asked, the operations, and the content
before. A turn is recorded before the file is replaced; a process that is killed in between leaves a turn that never
took effect, which the next edit or undo drops.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from opus_pipelines.core.errors import InputError
from opus_pipelines.lake.atomic_files import write_atomically

SUFFIX = ".turns"
MAX_TURNS = 1_000  # of one file; the oldest go
MAX_BYTES = 256 << 20


@dataclass(frozen=True)
class Turn:
    """One edit: what was asked, the operations that it became, the file before, and the hash of the file after."""

    request: str
    operations: tuple[str, ...]
    before: str
    after_sha256: str


def edit_file(file: Path, after: bytes, request: str, operations: Sequence[str]) -> int:
    """Replaces the content of a flow's file and records the turn; returns how many turns can be undone now.

    Raises InputError where the file is no text, or its record cannot be read.
    """
    before = _content(file)
    known = _happened(turns(file), before)
    try:
        turn = Turn(request, tuple(operations), before.decode("utf-8"), _hash(after))
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: it is not UTF-8 (byte {error.start}); its edits cannot be recorded") from None
    kept = [*known, turn][-MAX_TURNS:]
    _write(file, kept)
    write_atomically(file, partial(_put, after))
    return len(kept)


def undo(file: Path, count: int = 1) -> list[Turn]:
    """Takes back the last turns of a file, byte for byte; returns them, the latest first.

    Raises InputError where there are fewer turns, or the file was changed by something else since.
    """
    content = _content(file)
    known = _happened(turns(file), content)
    if count > len(known):
        raise InputError(f"{file}: {len(known)} turns can be undone, not {count}; {file.name}{SUFFIX} has no more")
    undone = []
    for turn in reversed(known[len(known) - count :]):
        if _hash(content) != turn.after_sha256:
            raise InputError(f"{file}: it was changed since its last turn by something else; nothing was undone")
        content = turn.before.encode()
        undone.append(turn)
    write_atomically(file, partial(_put, content))
    _write(file, known[: len(known) - count])
    return undone


def turns(file: Path) -> list[Turn]:
    """Returns the recorded turns of a file, the first one first; none where there is no record."""
    path = record_of(file)
    if not path.is_file():
        return []
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(f"{path}: it has more than {MAX_BYTES:,} bytes; remove it to begin a new record")
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line]
        return [Turn(**(line | {"operations": tuple(line["operations"])})) for line in lines]
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: it is no record of edits ({error}); remove it to begin a new one") from None


def record_of(file: Path) -> Path:
    """Returns the path of the record of a file."""
    return file.with_name(file.name + SUFFIX)


def _happened(known: list[Turn], content: bytes) -> list[Turn]:
    """The turns without a last one before whose effect a process was killed."""
    if known and known[-1].before.encode() == content and known[-1].after_sha256 != _hash(content):
        return known[:-1]
    return known


def _write(file: Path, kept: Sequence[Turn]) -> None:
    lines = "".join(json.dumps(asdict(turn), ensure_ascii=False) + "\n" for turn in kept)
    if lines:
        write_atomically(record_of(file), partial(_put, lines.encode()))
    else:
        record_of(file).unlink(missing_ok=True)


def _put(content: bytes, path: Path) -> None:
    path.write_bytes(content)


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}") from None


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
