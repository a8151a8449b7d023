"""Reads JSONL files that people write: one record a line, a unique id each, and a reason for each line left out."""

import gzip
import json
from collections.abc import Callable, Iterable, Iterator
from gzip import GzipFile
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from opus_pipelines.core.errors import InputError

Record = TypeVar("Record")
MAX_LINE_BYTES = 4 << 20


def read_records(path: Path, parse: Callable[[Any, str], tuple[str, Record]]) -> tuple[list[Record], list[str]]:
    """Returns the records of a JSONL file, gzipped or not, and the lines that cannot be used with their reasons.

    `parse` takes the value of a line and an id for a line that states none, and returns the record with its id. It
    raises ValueError or TypeError with what is wrong. A second line with an id is left out, too. Raises InputError
    where the file cannot be read or no line can be used.
    """
    found: dict[str, Record] = {}
    rejected: list[str] = []
    for number, value in lines(path, rejected):
        try:
            identity, record = parse(value, f"line-{number}")
            if identity in found:
                raise ValueError(f"the id {identity!r} stands in an earlier line, too")
        except (ValueError, TypeError, RecursionError) as error:
            rejected.append(f"{path.name}, line {number}: {error}")
            continue
        found[identity] = record
    if not found:
        raise InputError(f"{path}: no line can be used; {rejected[0] if rejected else 'the file is empty'}")
    return list(found.values()), rejected


def lines(path: Path, rejected: list[str] | None = None) -> Iterator[tuple[int, Any]]:
    """Yields number and value of each line; a broken line goes to `rejected`, and is an InputError without it."""
    if not path.is_file():
        raise InputError(f"{path} is no file")
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            for number, line in numbered_lines(file, MAX_LINE_BYTES):
                try:
                    if len(line) == MAX_LINE_BYTES:
                        raise ValueError(f"the line is longer than {MAX_LINE_BYTES:,} bytes")
                    yield number, json.loads(line)
                except (ValueError, RecursionError) as error:
                    if rejected is None:
                        raise InputError(f"{path}, line {number}: {error}") from None
                    rejected.append(f"{path.name}, line {number}: {error}")
    except (OSError, EOFError) as error:
        raise InputError(f"{path}: {error}") from None


def numbered_lines(file: BinaryIO | GzipFile, most: int) -> Iterator[tuple[int, bytes]]:
    """Yields the lines that are not blank with their numbers; of a line, only the first `most` bytes."""
    number = 0
    while line := file.readline(most):
        number += 1
        if line.strip():
            yield number, line
        while len(line) == most and not line.endswith(b"\n"):
            line = file.readline(most)


def parsed(written: Iterable[str | bytes]) -> Iterator[tuple[int, Any, Exception | None]]:
    """Yields number and value of each line that is not blank, and the error where it is not JSON."""
    for number, line in enumerate(written, start=1):
        if line.strip():
            try:
                yield number, json.loads(line), None
            except (ValueError, RecursionError) as error:
                yield number, None, error
