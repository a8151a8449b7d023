"""wkg/needs: tasks without which history's cases of a kind failed, counted among cases whose right outcome was success."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from opus_pipelines.wkg.sequences import Sequences
from opus_pipelines.wkg.statistics import newcombe

MIN_CASES = 5      # cases of known outcome that make a group, and the successes that let an ever-present task count as needed
MIN_WITHOUT = 3    # cases without a task from which its absence can be judged
Group = tuple[str | None, str | None, str | None]  # industry, client, kind of case; None for client and kind = all


class Counts(NamedTuple):
    """Cases with and without a task, and those of them that succeeded."""

    cases_with: int
    success_with: int
    cases_without: int
    success_without: int


def needs(sequences: Sequences) -> list[dict[str, Any]]:
    """Rows of wkg/needs: per group and task that occurs in it. A group is an industry, a client of it, a kind of case of either.

    A task of a group with several kinds of case is `needed` there only when every kind holds it: what one kind needs
    is found in that kind's own rows.
    """
    rows = np.flatnonzero(sequences.known)
    kinds = _kinds(sequences, rows)
    groups: dict[Group, list[int]] = defaultdict(list)
    for row in rows.tolist():
        for group in _groups_of(sequences.industry[row], sequences.client[row], kinds[row]):
            groups[group].append(row)
    held = _tasks_of_rows(sequences)
    strata = {row: (sequences.client[row], kinds[row]) for row in rows.tolist()}
    made = []
    for group, members in groups.items():
        if sequences.known[members].sum() >= MIN_CASES:
            made += _of_group(group, members, sequences, held, strata)
    return made


def is_needed(counts: Counts, lift_lower: float | None) -> bool:
    """Cases without it do worse beyond doubt; or too few lack it to tell, none of them succeeded, and many with it did."""
    if counts.cases_without >= MIN_WITHOUT:
        return lift_lower is not None and lift_lower > 0
    return counts.success_without == 0 and counts.success_with >= MIN_CASES


def _of_group(
    group: Group, members: list[int], sequences: Sequences, held: dict[int, list[str]], strata: dict[int, tuple[str | None, str | None]]
) -> list[dict[str, Any]]:
    cases, successes = int(sequences.known[members].sum()), int(sequences.successes[members].sum())
    sizes: dict[tuple[str | None, str | None], int] = defaultdict(int)
    with_, success_with, places = defaultdict(int), defaultdict(int), defaultdict(set)  # type: ignore[var-annotated]
    for row in members:
        known, succeeded = int(sequences.known[row]), int(sequences.successes[row])
        sizes[strata[row]] += known
        for task in held[row]:
            with_[task] += known
            success_with[task] += succeeded
            places[task].add(strata[row])
    kinds = {stratum for stratum, size in sizes.items() if size >= MIN_CASES}
    return [
        _row(group, task, Counts(n, success_with[task], cases - n, successes - success_with[task]), everywhere=kinds <= places[task])
        for task, n in sorted(with_.items())
    ]


def _row(group: Group, task: str, counts: Counts, everywhere: bool) -> dict[str, Any]:
    lift = lower = upper = None
    if counts.cases_without:
        lift, lower, upper = newcombe(counts.success_with, counts.cases_with, counts.success_without, counts.cases_without)
    industry, client, kind = group
    return {
        "industry": industry, "client": client, "kind_of_case": kind, "task_id": task, "alternatives": [task], **counts._asdict(),
        "lift": lift, "lift_lower": lower, "lift_upper": upper, "needed": everywhere and is_needed(counts, lower),
    }


def _groups_of(industry: str | None, client: str | None, kind: str | None) -> Iterable[Group]:
    yield industry, None, None
    if client is not None:
        yield industry, client, None
    if kind is not None:
        yield industry, None, kind
        if client is not None:
            yield industry, client, kind


def _kinds(sequences: Sequences, rows: np.ndarray) -> dict[int, str | None]:
    """The kind of case of each row; None where its industry has fewer than MIN_CASES of it: then titles are names, not kinds."""
    cases: dict[tuple[str | None, str | None], int] = defaultdict(int)
    for row in rows.tolist():
        cases[sequences.industry[row], sequences.kind[row]] += int(sequences.known[row])
    return {row: sequences.kind[row] if cases[sequences.industry[row], sequences.kind[row]] >= MIN_CASES else None for row in rows.tolist()}


def _tasks_of_rows(sequences: Sequences) -> dict[int, list[str]]:
    names, _ = sequences.tasks
    held: dict[int, list[str]] = defaultdict(list)
    for row, task in zip(*(a.tolist() for a in sequences.presence), strict=True):
        held[row].append(names[task])
    return held
