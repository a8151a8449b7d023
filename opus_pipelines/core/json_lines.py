"""Reads JSONL files that people write: one record a line, a unique id each, and a reason for each line left out."""

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

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
            number = 0
            while line := file.readline(MAX_LINE_BYTES):
                number += 1
                if not line.strip():
                    continue
                try:
                    if len(line) == MAX_LINE_BYTES:
                        raise ValueError(f"the line is longer than {MAX_LINE_BYTES:,} bytes")
                    yield number, json.loads(line)
                except (ValueError, RecursionError) as error:
                    if rejected is None:
                        raise InputError(f"{path}, line {number}: {error}") from None
                    rejected.append(f"{path.name}, line {number}: {error}")
                    while line and len(line) == MAX_LINE_BYTES:
                        line = file.readline(MAX_LINE_BYTES)
    except (OSError, EOFError) as error:
        raise InputError(f"{path}: {error}") from None
