"""Makes the rows of wkg/needs: the lift of each task, and whether it is critical, per group of cases.

A *critical task* is one without which similar cases had a significantly lower success rate. Only cases whose expected
outcome was success count.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

from opus_pipelines.core.statistics import lift
from opus_pipelines.wkg.estimates.case_sequences import Sequences
from opus_pipelines.wkg.estimates.lift_analysis import MIN_CASES, Cases, LiftFinding, find_critical_tasks, matrices
from opus_pipelines.wkg.estimates.unknown_figures import ALWAYS_DONE, ALWAYS_DONE_AMONG_THE_REST, difference

LIFT, ADJUSTED = ("lift", "lift_lower", "lift_upper"), ("adjusted_lift", "adjusted_lower", "adjusted_upper")
Group = tuple[str | None, str | None, str | None]  # industry, client, kind of case; None for client and kind = all


def critical_task_rows(sequences: Sequences) -> list[dict[str, Any]]:
    """Returns the rows of wkg/needs: one for each group and each task that occurs in it.

    A group is an industry, a client of it, or a kind of case of either. In a group with several kinds of case a task is
    `needed` only if every kind has it: the critical tasks of one kind are in the rows of that kind.
    """
    kinds = _kinds(sequences)
    groups: dict[Group, list[int]] = defaultdict(list)
    for row, kind in kinds.items():
        for group in _groups_of(sequences.industry[row], sequences.client[row], kind):
            groups[group].append(row)
    strata = _numbers([(sequences.client[row], kind) for row, kind in kinds.items()])
    stratum = dict(zip(kinds, strata, strict=True))
    table, incidence = [], matrices(sequences)
    for group, members in groups.items():
        if sequences.known[members].sum() >= MIN_CASES:
            rows = np.array(members)
            counts = sequences.known[rows], sequences.successes[rows]
            cases = Cases(incidence[0][rows], *counts, np.array([stratum[row] for row in members]), *incidence[1:])
            table += _rows(group, cases, find_critical_tasks(cases), sequences.tasks[0])
    return table


def lacking(sequences: Sequences, rows: Iterable[dict[str, Any]]) -> np.ndarray:
    """Returns a mask of the rows of `sequences` that lack a critical task of their kind of case.

    The narrowest group for which `rows` has critical tasks decides.
    """
    needed: dict[Group, set[frozenset[str]]] = defaultdict(set)
    for need in rows:
        group = need["industry"], need["client"], need["kind_of_case"]
        needed[group] |= {frozenset(need["alternatives"])} if need["needed"] else set()
    deciding: dict[Group, list[int]] = defaultdict(list)
    for row, kind in _kinds(sequences).items():
        widest_first = list(_groups_of(sequences.industry[row], sequences.client[row], kind))
        if (narrowest := next((group for group in reversed(widest_first) if group in needed), None)) is not None:
            deciding[narrowest].append(row)
    number = {name: place for place, name in enumerate(sequences.tasks[0])}
    found = np.zeros(len(sequences.lengths), bool)
    for group, members in deciding.items():
        for alternatives in needed[group]:
            holds = np.zeros(len(found), bool)
            for task in alternatives:
                if task in number:
                    holds[sequences.rows_with[number[task]]] = True
            found[members] |= ~holds[members]
    return found


def _rows(group: Group, cases: Cases, finding: LiftFinding, names: list[str]) -> list[dict[str, Any]]:
    industry, client, kind = group
    with_, success_with = cases.with_each()
    done = np.flatnonzero(with_)
    counts = with_, success_with, cases.total - with_, cases.succeeded - success_with
    marginal = lift(success_with, with_, counts[3], counts[2])
    rows = []
    for task in done.tolist():
        n, s, m, t = (int(c[task]) for c in counts)
        rows.append(
            {
                "industry": industry,
                "client": client,
                "kind_of_case": kind,
                "task_id": names[task],
                "alternatives": [names[other] for other in finding.alternatives.get(task, (task,))],
                "cases_with": n,
                "cases_without": m,
                "success_with": s,
                "success_without": t,
                **difference(LIFT, _at(marginal, task, m > 0), ALWAYS_DONE),
                "needed": task in finding.alternatives,
                **difference(
                    ADJUSTED, _at(finding.adjusted, task, bool(finding.compared[task])), ALWAYS_DONE_AMONG_THE_REST
                ),
            }
        )
    return rows


def _at(
    figures: tuple[np.ndarray, np.ndarray, np.ndarray], task: int, known: bool
) -> tuple[float, float, float] | None:
    return (float(figures[0][task]), float(figures[1][task]), float(figures[2][task])) if known else None


def _groups_of(industry: str | None, client: str | None, kind: str | None) -> Iterable[Group]:
    """Yields the groups of a case, from the widest to the narrowest."""
    yield industry, None, None
    if client is not None:
        yield industry, client, None
    if kind is not None:
        yield industry, None, kind
        if client is not None:
            yield industry, client, kind


def _kinds(sequences: Sequences) -> dict[int, str | None]:
    """Returns the kind of case of each row with a known outcome.

    The kind is None when its industry has fewer than MIN_CASES cases of it: a title that rare is the name of one case,
    and no kind.
    """
    rows = np.flatnonzero(sequences.known).tolist()
    cases: dict[tuple[str | None, str | None], int] = defaultdict(int)
    for row in rows:
        cases[sequences.industry[row], sequences.kind[row]] += int(sequences.known[row])
    return {
        row: sequences.kind[row] if cases[sequences.industry[row], sequences.kind[row]] >= MIN_CASES else None
        for row in rows
    }


def _numbers(values: list[Any]) -> list[int]:
    seen: dict[Any, int] = {}
    return [seen.setdefault(value, len(seen)) for value in values]
