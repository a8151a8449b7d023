"""Which work may be left out: by outcomes of history, or by support among similar cases.

`outcomes`: a task is critical when similar cases failed without it, that is, when they had a significantly lower
success rate (DESIGN 5), and the Reward prices the others. The similar cases decide where enough of them succeeded;
otherwise the rows of `wkg/needs` for their kind of case do.

`support`: history has too few outcomes. A task that at least the share `CRITICAL_SUPPORT` of the similar cases did is
critical, and workflows are ranked by conformity: the expected F1 of their steps against those of the similar cases. Of
two orders of the same steps, the one with the higher expected F1 of its consecutive pairs is ranked first.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opus_pipelines.core.settings import Generation
from opus_pipelines.core.statistics import groups_of, lift, rate_of
from opus_pipelines.lwm.interface import SimilarCase
from opus_pipelines.lwm.retrieval.consensus import Consensus, Trace
from opus_pipelines.lwm.retrieval.similar_cases import SimilarCases, StartOutcomes

OUTCOMES, SUPPORT = "outcomes", "support"
LEAST_KNOWN = 0.5  # least share of the similar cases, by weight, with a known outcome where outcomes decide
CRITICAL_SUPPORT = 0.8  # share of the similar cases that did a task, from which it is critical
LEAST_SUCCESSES = 3.0  # effective number of similar successful cases below which no verdict is clear
EQUAL = 1e-12  # difference up to which two workflows agree equally
LEAST_COSINE = 0.35  # cosine of the most similar case, below which history has no case like the intake


@dataclass(frozen=True)
class Completeness:
    """The rule of completeness of one Intention, with the consensus of its similar cases.

    `rule`: outcomes or support. `similar`, `consensus`: the similar cases and what they agree on, where they were
    computed. `steps`: all work steps of the similar cases, where workflows are compared with them.
    `undecided_reason`: why no verdict on this Intention is clear, None where there is no such reason.
    `is_independent`: whether it is known that no step of the consensus has to wait for another.
    `model_support`: by task the share of the sequences of a trained model that have it; None where none serves.
    `at_start`: how the cases ended that are like the intake at the start; None where no outcome is known. `basis`: by
    what cases were compared with the intake (`SimilarCases.basis`); None where no cases were.
    """

    rule: str
    undecided_reason: str | None = None
    similar: SimilarCases | None = None
    consensus: Consensus | None = None
    steps: frozenset[str] = frozenset()
    is_independent: bool = False
    model_support: Mapping[str, float] | None = None
    at_start: StartOutcomes | None = None
    basis: str | None = None

    @property
    def by_support(self) -> bool:
        """Return whether workflows are ranked by conformity before anything that depends on outcomes."""
        return self.rule == SUPPORT

    @property
    def consensus_tasks(self) -> tuple[str, ...]:
        """Return the work steps of the consensus, in order; none where outcomes decide."""
        return (
            tuple(t for t in self.consensus.tasks if t in self.steps) if self.rule == SUPPORT and self.consensus else ()
        )

    @property
    def critical(self) -> list[frozenset[str]]:
        """Return, by support, the groups of one critical task each, in order of their ids."""
        if self.rule != SUPPORT or self.consensus is None:
            return []
        tasks = {t for t, share in self.consensus.support.items() if share >= CRITICAL_SUPPORT and t in self.steps}
        return [frozenset({t}) for t in sorted(tasks)]

    def conformity(self, tasks: Sequence[str]) -> tuple[float, float] | tuple[None, None]:
        """Return the expected F1 of these steps, and of their consecutive pairs, against the similar cases.

        Both are None where conformity does not rank workflows.
        """
        if self.consensus is None or not (self.steps or self.by_support):
            return None, None
        return self.consensus.expected_f1(tasks, self.steps)

    def preferred_share(self, one: Sequence[str], other: Sequence[str]) -> float:
        """Return the share of the similar cases, by weight, that agree more with `one` than with `other`.

        Cases that agree equally with both count half.
        """
        assert self.consensus is not None
        first, second, counted = Trace.of(one), Trace.of(other), self.consensus.weights_among(self.steps)
        leads = (
            (sum(trace.agreement(first)) - sum(trace.agreement(second)), weight) for trace, weight in counted.items()
        )
        return sum(w * (0.5 if abs(lead) < EQUAL else float(lead > 0)) for lead, w in leads) / sum(counted.values())


BY_OUTCOMES = Completeness(OUTCOMES)


def outcomes_decide(cases: Sequence[SimilarCase]) -> bool:
    """Return whether enough of the similar cases have a known outcome, and at least one succeeded."""
    total = sum(c.weight for c in cases)
    known = sum(c.weight for c in cases if c.is_informative)
    return total > 0 and known >= LEAST_KNOWN * total and any(c.success for c in cases)


def undecided_reason(cases: Sequence[SimilarCase], rule: str, nearest: float | None) -> str | None:
    """Return why no verdict is clear: no similar case, no outcomes, or too few successes; else None."""
    if nearest is not None and nearest < LEAST_COSINE:
        return (
            "no case of history is like this intake: "
            f"the most similar one has cosine {nearest:.2f}, and {LEAST_COSINE:.2f} is asked"
        )
    if rule == SUPPORT and any(c.outcome_by_activities for c in cases):
        return (
            "the activities of a case decide its outcome, by the rule [success] of its source: the outcomes tell which "
            "cases to follow, and not what a step is worth"
        )
    if rule == SUPPORT:
        return "history tells no outcomes of similar cases: what is right is not known, only what is usual"
    effective = effective_successes(cases)
    if effective < LEAST_SUCCESSES:
        return f"only {effective:.1f} similar successes in effect, and {LEAST_SUCCESSES:.0f} are asked"
    return None


def effective_successes(cases: Sequence[SimilarCase]) -> float:
    """Return the effective number of similar successful cases (Kish 1965), (Σw)² / Σw²; 0 where there is none."""
    weights = [c.weight for c in cases if c.success and c.is_informative]
    return sum(weights) ** 2 / sum(w * w for w in weights) if weights else 0.0


def are_few(cases: Sequence[SimilarCase]) -> bool:
    """Return whether similar cases are too few to say by themselves what the work is.

    Where outcomes decide, their successes count by weight; elsewhere all cases that did not fail count alike.
    """
    if outcomes_decide(cases):
        return effective_successes(cases) < LEAST_SUCCESSES
    return sum(case.success is not False for case in cases) < LEAST_SUCCESSES


MIN_SUCCESSES = 0.5  # total weight of similar successful cases from which the similar cases decide
MIN_WITHOUT = 1.0  # total weight of similar cases without a task, below which success rates are not compared
LEAST_STRATUM = 5  # similar cases with one value of an attribute, from which they are compared with each other
ALTERNATIVE_MARGIN = 0.1  # most by which the success rate with an alternative may be lower than with the task itself


def critical_tasks(
    cases: Sequence[SimilarCase],
    needs: Iterable[Mapping[str, Any]],
    client: str | None,
    settings: Generation,
    usual: Collection[str] | None = None,
) -> list[frozenset[str]]:
    """Return groups of tasks, in order of their ids; a workflow must do at least one task of each group.

    `needs` are rows of wkg/needs. `usual`: the tasks that most cases of the industry did, where the similar cases are
    of other work, so that what is usual among these alone counts for nothing; None where they are of this work.
    """
    taught = [c for c in cases if c.is_informative and c.tasks]
    if sum(c.weight for c in taught if c.success) >= MIN_SUCCESSES:
        return _groups_by_cases(taught, settings, usual)
    return _groups_by_kind(cases, needs, client)


def _groups_by_cases(
    cases: list[SimilarCase], settings: Generation, usual: Collection[str] | None
) -> list[frozenset[str]]:
    """Return the groups by forward selection.

    The first is the task with the surest lift, the next the surest among the cases that did it, and so on. A test
    of each task alone would also select tasks that cases without a check happen to lack.
    """
    groups: list[frozenset[str]] = []
    remaining = _TaskCounts(cases)
    while task := _most_certain(remaining, frozenset().union(*groups)):
        groups.append(_with_alternatives(task, remaining))
        remaining = remaining.where(lambda c, group=groups[-1]: not group.isdisjoint(c.tasks))  # type: ignore[misc]
    often = _usual_tasks(remaining, frozenset().union(*groups), settings)
    return sorted([*groups, *(frozenset({t}) for t in often if usual is None or t in usual)], key=sorted)


def tasks_done(cases: Sequence[SimilarCase]) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return the tasks of all cases in alphabetical order, and for each task that a case did, once for each case and in
    the order of the cases, the number of the case and that of the task.
    """
    sequences = {case.tasks: set(case.tasks) for case in cases}  # many cases did the same
    tasks = sorted(set[str]().union(*sequences.values()))
    number = {task: n for n, task in enumerate(tasks)}
    of_sequence = {sequence: [number[task] for task in done] for sequence, done in sequences.items()}
    places = [of_sequence[case.tasks] for case in cases]
    of_case = np.repeat(np.arange(len(cases)), [len(one) for one in places])
    return tasks, of_case, np.array([n for one in places for n in one], np.int64)


class _TaskCounts:
    """Cases, with the weight of those that did each task (`done`), and of those that succeeded (`right`)."""

    def __init__(self, cases: Sequence[SimilarCase]) -> None:
        self.cases = cases
        self.whole, self.whole_right = _weights(cases)
        self.tasks, of_case, of_task = tasks_done(cases)
        self.place = {task: n for n, task in enumerate(self.tasks)}
        weights = np.array([case.weight for case in cases])[of_case]
        is_right = np.array([bool(case.success) for case in cases], bool)[of_case]
        self.done = np.bincount(of_task, weights, len(self.tasks))  # adds up in the order of the cases
        self.right = np.bincount(of_task[is_right], weights[is_right], len(self.tasks))

    def where(self, hold: Callable[[SimilarCase], bool]) -> "_TaskCounts":
        """Return the cases for which `hold` is true."""
        return _TaskCounts([case for case in self.cases if hold(case)])

    def rate(self, task: str) -> float:
        """Return the share of the cases with the task that succeeded, by weight."""
        n = self.place[task]
        return float(rate_of(self.right[n], self.done[n]))


def _usual_tasks(counted: _TaskCounts, chosen: frozenset[str], settings: Generation) -> list[str]:
    """Return the tasks of most successes for which history does not show that leaving them out is harmless.

    History was no experiment: sicker patients get more treatment. A comparison of cases with and without a task must
    therefore hold among cases with the same attributes at the start, for each attribute. A task after which cases ended
    clearly worse is kept where they did not among such cases, or where no attribute is known: it rather follows from
    what was bad already.
    """
    missed_right, missed = (
        np.maximum(0.0, counted.whole_right - counted.right),
        np.maximum(0.0, counted.whole - counted.done),
    )
    harm = lift(counted.right, counted.done, missed_right, missed)[2]
    most = counted.right > settings.usual_share * counted.whole_right
    strata = _strata(counted.cases)
    found = []
    for task in np.flatnonzero(most).tolist():
        if counted.tasks[task] in chosen:
            continue
        hidden = max((_hidden(counted, counted.tasks[task], by) for by in strata), default=0.0)
        most_lost = float(harm[task]) + max(0.0, hidden)
        seems_bad = bool(harm[task] < 0.0)
        if (not strata or most_lost >= 0.0) if seems_bad else most_lost > settings.harmless_lift:
            found.append(counted.tasks[task])
    return found


def _strata(cases: Sequence[SimilarCase]) -> list[np.ndarray]:
    """Return the groups [cases] of the cases by each attribute that distinguishes some of them at the start."""
    codes = groups_of([dict(case.attributes) for case in cases], LEAST_STRATUM)
    return [codes[:, n] for n in range(codes.shape[1])]


def _hidden(counted: _TaskCounts, task: str, strata: np.ndarray) -> float:
    """Return by how much the lift of a task is higher among cases of the same stratum than among all cases.

    The strata are weighed as by Mantel and Haenszel. The result is infinite where no stratum has cases with and
    without the task, because nothing is known then.
    """
    weight = np.array([case.weight for case in counted.cases])
    right = np.array([bool(case.success) for case in counted.cases]) * weight
    has = np.array([task in case.tasks for case in counted.cases])
    n, k = (
        np.stack([np.bincount(strata, values * (has == side), int(strata.max()) + 1) for side in (True, False)])
        for values in (weight, right)
    )
    both = (n > 0).all(axis=0)
    if not both.any():
        return float("inf")
    rates = k[:, both] / n[:, both]
    shares = n[:, both].prod(axis=0) / n[:, both].sum(axis=0)
    of_all = k.sum(axis=1) / n.sum(axis=1)
    return float((shares * (rates[0] - rates[1])).sum() / shares.sum() - (of_all[0] - of_all[1]))


def _most_certain(counted: _TaskCounts, chosen: frozenset[str]) -> str | None:
    """Return the task whose lift has the highest lower bound, if that is above 0; ids decide between equal ones."""
    if not counted.tasks:
        return None
    without_it = counted.whole - counted.done
    lower = lift(
        counted.right, counted.done, np.maximum(0.0, counted.whole_right - counted.right), np.maximum(0.0, without_it)
    )[1]
    lower[without_it < MIN_WITHOUT] = -np.inf
    lower[[counted.place[task] for task in chosen if task in counted.place]] = -np.inf
    best = int(np.argmax(lower))
    return counted.tasks[best] if lower[best] > 0 else None


def _with_alternatives(task: str, counted: _TaskCounts) -> frozenset[str]:
    """Return the task, and those that succeed as often in the cases without it."""
    group = {task}
    least = counted.rate(task) - ALTERNATIVE_MARGIN
    rest = counted.where(lambda c: task not in c.tasks)
    while (other := _most_certain(rest, frozenset(group))) and rest.rate(other) >= least:
        group.add(other)
        rest = rest.where(lambda c, other=other: other not in c.tasks)  # type: ignore[misc]
    return frozenset(group)


def _groups_by_kind(
    cases: Sequence[SimilarCase], needs: Iterable[Mapping[str, Any]], client: str | None
) -> list[frozenset[str]]:
    weight: dict[str, float] = defaultdict(float)
    for case in cases:
        if case.kind_of_case is not None:
            weight[case.kind_of_case] += case.weight
    if not weight:
        return []
    kind = max(sorted(weight), key=lambda k: weight[k])
    rows: dict[str, Mapping[str, Any]] = {}
    for row in needs:
        if (
            row["kind_of_case"] == kind
            and row["client"] in (None, client)
            and (row["client"] is not None or row["task_id"] not in rows)
        ):
            rows[row["task_id"]] = row
    return [frozenset(row["alternatives"] or [task]) for task, row in sorted(rows.items()) if row["needed"]]


def _weights(cases: Iterable[SimilarCase]) -> tuple[float, float]:
    cases = list(cases)
    return sum(c.weight for c in cases), sum(c.weight for c in cases if c.success)
