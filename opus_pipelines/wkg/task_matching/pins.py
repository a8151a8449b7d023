"""`pins.toml` beside the history folder: what a person says of two tasks wins over what is reckoned.

    [[same]]
    tasks = ["northwind_claims/Check cover", "castellan_claims/verify_coverage"]

    [[apart]]
    tasks = ["northwind_claims/Approve", "castellan_claims/approve_again"]

A task is named as `source/task key`, as `opus tasks --merged` shows it.
"""

import difflib
from collections.abc import Iterable
from functools import cached_property
from itertools import combinations
from pathlib import Path

from pydantic import Field, field_validator

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.settings import Section, parse
from opus_pipelines.core.settings_files import stated_toml

FILE_NAME = "pins.toml"


class Pin(Section):
    """Tasks that are one, or that are kept apart from each other."""

    tasks: tuple[str, ...] = Field(min_length=2, description="source/task key, two or more")

    @field_validator("tasks")
    @classmethod
    def _named(cls, tasks: tuple[str, ...]) -> tuple[str, ...]:
        for task in tasks:
            if not all(task.partition("/")[::2]):
                raise ValueError(f"{task!r} is not source/task key")
        return tasks


class Pins(Section):
    """The whole of `pins.toml`."""

    same: tuple[Pin, ...] = Field((), description="each: tasks that are one")
    apart: tuple[Pin, ...] = Field((), description="each: tasks no two of which are one")

    @cached_property
    def kept_apart(self) -> frozenset[str]:
        """Every task that an `apart` names."""
        return frozenset(task for pin in self.apart for task in pin.tasks)

    @cached_property
    def pairs_apart(self) -> frozenset[frozenset[str]]:
        """Every pair that is kept apart."""
        return frozenset(frozenset(pair) for pin in self.apart for pair in combinations(pin.tasks, 2))

    def unknown(self, tasks: Iterable[str]) -> list[str]:
        """A line for each task that is named here and not among `tasks`: nothing is done for it at the moment."""
        known = sorted(set(tasks))
        named = {task for pin in (*self.same, *self.apart) for task in pin.tasks}
        return [_line(task, known) for task in sorted(named - set(known))]


def read_pins(history: Path) -> Pins:
    """The pins beside the `history` folder; none without a file. Raises SettingsError; a contradiction with both its
    sides.
    """
    path = history.parent / FILE_NAME
    stated = stated_toml(path)
    if stated is None:
        return Pins()
    pins = parse(Pins, stated, str(path))
    _agree(pins, path)
    return pins


def _agree(pins: Pins, path: Path) -> None:
    group: dict[str, str] = {}

    def top(task: str) -> str:
        while group.get(task, task) != task:
            task = group[task]
        return task

    for pin in pins.same:
        for task in pin.tasks[1:]:
            group[top(task)] = top(pin.tasks[0])
    for pin in pins.apart:
        for one, other in combinations(pin.tasks, 2):
            if top(one) == top(other):
                raise SettingsError(
                    f"{path}: {one!r} and {other!r} are pinned as the same and as apart; take one of the two pins away"
                )


def _line(task: str, known: list[str]) -> str:
    source = task.partition("/")[0]
    of_source = [name for name in known if name.startswith(f"{source}/")]
    if not of_source:
        return f"{FILE_NAME} names {task!r}, but no source {source!r} is in history now; the pin waits for it"
    near = difflib.get_close_matches(task, of_source, n=1, cutoff=0.0)
    return f"{FILE_NAME} names {task!r}, but {source} has no such task now; did you mean {near[0]!r}?"
