"""Reads the tasks that a program is run on: a text, or a file of JSON Lines; a bad line is named with its number."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.ids import digest
from opus_pipelines.flows.programs.expressions import plain
from opus_pipelines.flows.programs.interpreter import ProgramTask
from opus_pipelines.flows.programs.values import Value

LARGEST_BYTES = 50_000_000


def task_of(text: str, identity: str | None = None, variables: dict[str, Any] | None = None) -> ProgramTask:
    """Returns a task with the variables `task` (its text) and `plan` (empty), and those that are given."""
    given = {name: plain(content) for name, content in (variables or {}).items()}
    own = {"task": Value("text", text), "plan": Value("list", ())} | given
    return ProgramTask(identity or digest("task", text)[:12], text, own)


def read_tasks(file: Path) -> list[ProgramTask]:
    """Returns the tasks of a file. Raises InputError for a line that is none, with its number, and for no task."""
    found = list(_read(file))
    ids = [task.id for task in found]
    if twice := sorted({one for one in ids if ids.count(one) > 1}):
        raise InputError(f"{file}: two tasks have the id {twice[0]!r}")
    if not found:
        raise InputError(f"{file}: there is no task")
    return found


def _read(file: Path) -> Iterator[ProgramTask]:
    try:
        if file.stat().st_size > LARGEST_BYTES:
            raise InputError(f"{file}: it has more than {LARGEST_BYTES:,} bytes")
        text = file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: it is not UTF-8 (byte {error.start})") from None
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            raise InputError(f"{file}, line {number}: it is not JSON") from None
        if not isinstance(value, dict) or not isinstance(value.get("text"), str) or not value["text"].strip():
            raise InputError(f"{file}, line {number}: a task needs a text: {{'id': …, 'text': …}}")
        variables = value.get("variables", {})
        if not isinstance(variables, dict):
            raise InputError(f"{file}, line {number}: variables must be an object")
        yield task_of(value["text"], str(value["id"]) if "id" in value else None, variables)
