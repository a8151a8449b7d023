"""Back to an earlier snapshot: one pointer replaced, nothing made or removed.

The pointer then says what it was rolled back from. A rebuild that would make one of those again (the same history, settings
and code) leaves it be, says so, and exits 0, for a night must not undo silently what a person decided; anything new is
published as ever, and `opus rebuild --publish` publishes all the same. What is rolled back from is kept.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from opus_pipelines.errors import LakeError
from opus_pipelines.lake import Lake
from opus_pipelines.wkg.manifest import point
from opus_pipelines.wkg.retention import manifests_of


@dataclass(frozen=True)
class Choice:
    """A snapshot that can be made current: when it was published, the rows of its datasets, and the contracts whose results rest on it."""

    snapshot: str
    published_at: str
    counts: dict[str, int]
    is_current: bool
    contracts: tuple[str, ...]


def choices(lake: Lake) -> list[Choice]:
    """Every snapshot of the lake, the newest first."""
    current, results = lake.current_snapshot(), lake.results()
    found = [
        Choice(snapshot, manifest["published_at"], manifest.get("counts", {}), snapshot == current, _contracts(results, snapshot))
        for snapshot, manifest in manifests_of(lake).items()
    ]
    return sorted(found, key=lambda choice: (choice.published_at, choice.snapshot), reverse=True)


def chosen(lake: Lake, prefix: str) -> Choice:
    """The snapshot whose id begins with `prefix`; LakeError where none or several do."""
    known = choices(lake)
    fitting = [choice for choice in known if choice.snapshot.startswith(prefix)] if prefix else []
    if len(fitting) == 1:
        return fitting[0]
    there = ", ".join(choice.snapshot for choice in fitting or known) or "none; `opus rebuild` makes one"
    problem = f"{len(fitting)} snapshots of {lake.root} begin" if fitting else f"no snapshot of {lake.root} begins"
    raise LakeError(f"{problem} with {prefix!r}; there is: {there}")


def roll_back(lake: Lake, prefix: str, now: datetime) -> tuple[str | None, Choice]:
    """Make the snapshot that `prefix` names the current one; returns the one that was, and the chosen one. The lake's lock must be held."""
    choice = chosen(lake, prefix)
    before = lake.current_snapshot()
    if not choice.is_current:
        left = {*lake.rolled_back_from(), *([before] if before else [])} - {choice.snapshot}
        point(lake, choice.snapshot, now, rolled_back_from=sorted(left))
    return before, choice


def stale(lake: Lake) -> list[str]:
    """The contracts whose current result was made from another snapshot than the current one."""
    current = lake.current_snapshot()
    return [_name(result) for result in lake.results() if result["snapshot"] != current]


def _contracts(results: list[dict[str, Any]], snapshot: str) -> tuple[str, ...]:
    return tuple(_name(result) for result in results if result["snapshot"] == snapshot)


def _name(result: dict[str, Any]) -> str:
    return f"{result['client']} / {result['contract']}"
