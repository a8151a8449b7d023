"""Ranks the workflows of one Intention, and gives each its Penalty, EVAL (8)-(10).

Where a gain is stated, the order is EVAL (13). Otherwise it is success, conformity with similar cases, then lead time,
because a Reward would rest on an invented amount of dollars. Where outcomes do not show which work may be left out,
conformity comes before every criterion that rests on outcomes.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from opus_pipelines.core.settings import Settings
from opus_pipelines.history.records.redaction import ACCOUNT, PHONE, meaning_of
from opus_pipelines.wkg.graph import WorkGraph
from opus_pipelines.workflow.constraints import folded
from opus_pipelines.workflow.evaluation.penalty import (
    Scores,
    TaskFacts,
    WorkflowPenalties,
    measure,
    penalties,
    statements,
)
from opus_pipelines.workflow.evaluation.reward import quantised
from opus_pipelines.workflow.model import TaskNode, Workflow

CONSTRAINTS, OPTIONAL, CONFORMITY, REWARD, SUCCESS, LEAD_TIME, PENALTY, TRANSITIONS, NAME = (
    "constraints",
    "steps that nothing asks for",
    "conformity",
    "Reward",
    "success",
    "lead time",
    "Penalty",
    "transitions",
    "id",
)
SECONDS = 1_000  # milliseconds: lead times are compared in whole seconds, so that rounding errors decide nothing


class Rankable(Protocol):
    """The fields of a candidate that ranking needs.

    `worth`: the Reward by which it is compared, or its success probability where no gain is stated. `transitions`: how
    often history followed its edges. `penalty`: EVAL (10), None where it is not measured. `Candidate` documents the
    others.
    """

    @property
    def id(self) -> str:
        """Its id, the last criterion."""
        ...

    @property
    def worth(self) -> float:
        """Its Reward, or its success probability where no gain is stated."""
        ...

    @property
    def broken(self) -> int:
        """What it breaks: 0 nothing, 1 deadlines alone, 2 anything else."""
        ...

    @property
    def transitions(self) -> int:
        """How often history followed its edges."""
        ...

    @property
    def penalty(self) -> float | None:
        """EVAL (10); None where it is not measured."""
        ...

    @property
    def conformity(self) -> float | None:
        """The expected F1 of its tasks against those of similar cases; None where unknown."""
        ...

    @property
    def order_conformity(self) -> float | None:
        """The conformity of the order of its tasks; None where unknown."""
        ...

    @property
    def has_optional(self) -> bool:
        """Whether it has steps that no requirement asks for."""
        ...

    @property
    def compared_lead_ms(self) -> float:
        """The lead time in ms by which it is compared."""
        ...


C = TypeVar("C", bound=Rankable)


@dataclass(frozen=True)
class Ranking:
    """The criteria that rank the workflows of one Intention.

    `by_support`: outcomes do not show which work may be left out.
    """

    quantum_usd: float
    success_step: float
    has_gain: bool = True
    by_support: bool = False

    @property
    def step(self) -> float:
        """The step in which `worth` is compared."""
        return self.quantum_usd if self.has_gain else self.success_step

    @property
    def criteria(self) -> tuple[str, ...]:
        """The criteria that rank feasible workflows without idle steps, in the order of their application."""
        first = (CONFORMITY,) if self.by_support else ()
        if self.has_gain:
            return *first, REWARD, PENALTY
        return *(first or (SUCCESS, CONFORMITY)), LEAD_TIME, PENALTY

    def applied(self, candidates: Sequence[Rankable]) -> tuple[str, ...]:
        """Returns the criteria, before them those that override them, where candidates differ in these."""
        overrides = (n for n in (CONSTRAINTS, OPTIONAL) if len({_KEYS[n](c, self) for c in candidates}) > 1)
        return *overrides, *self.criteria

    def order(self, candidate: Rankable) -> tuple[Any, ...]:
        """Returns the sort key of the ranking, least first."""
        return tuple(_KEYS[name](candidate, self) for name in self._names)

    def rank(self, candidates: Sequence[C]) -> list[tuple[int, C]]:
        """Returns the candidates with their ranks 1..n, best first; the id is the last criterion, so no two tie."""
        return list(enumerate(sorted(candidates, key=self.order), start=1))

    def is_better(self, one: Rankable, other: Rankable) -> bool:
        """Returns whether one ranks before the other by more than Penalty or transitions."""
        return self._key_to(PENALTY, one) < self._key_to(PENALTY, other)

    def deciding_criterion(self, one: Rankable, other: Rankable) -> str:
        """Returns the first criterion in which the two differ."""
        pairs = zip(self._names, self.order(one), self.order(other), strict=True)
        return next((name for name, a, b in pairs if a != b), NAME)

    def p_first_in_tie(self, one: Rankable, other: Rankable) -> float:
        """Returns the probability that one ranks before the other where both are worth the same.

        It is 0 or 1, or 0.5 where no measured criterion distinguishes them.
        """
        names = [n for n in self.criteria if n not in (REWARD, SUCCESS)]
        first, second = ([_KEYS[n](c, self) for n in names] for c in (one, other))
        return 0.5 if first == second else float(first < second)

    @property
    def _names(self) -> tuple[str, ...]:
        return CONSTRAINTS, OPTIONAL, *self.criteria, TRANSITIONS, NAME

    def _key_to(self, end: str, candidate: Rankable) -> tuple[Any, ...]:
        return self.order(candidate)[: self._names.index(end)]


def _conformity(candidate: Rankable, ranking: Ranking) -> tuple[float, float]:
    return -round(candidate.conformity or 0.0, 6), -round(candidate.order_conformity or 0.0, 6)


_KEYS: dict[str, Callable[[Rankable, Ranking], Any]] = {
    CONSTRAINTS: lambda c, ranking: c.broken,
    OPTIONAL: lambda c, ranking: c.has_optional,
    CONFORMITY: _conformity,
    REWARD: lambda c, ranking: -quantised(c.worth, ranking.step),
    SUCCESS: lambda c, ranking: -quantised(c.worth, ranking.step),
    LEAD_TIME: lambda c, ranking: round(c.compared_lead_ms / SECONDS),
    PENALTY: lambda c, ranking: math.inf if c.penalty is None else c.penalty,
    TRANSITIONS: lambda c, ranking: -c.transitions,
    NAME: lambda c, ranking: c.id,
}


# `estimated`: only the outcome of the case was recorded, not that of the task
_OUTCOME_KNOWN = {"observed": 1.0, "estimated": 0.5}


class TaskFactIndex:
    """The facts of each step, computed once for all workflows that have it."""

    def __init__(self, graph: WorkGraph) -> None:
        self._graph = graph
        self._known: dict[TaskNode, TaskFacts] = {}

    def of(self, node: TaskNode) -> TaskFacts:
        """Returns the facts of a step, whether or not the WKG knows its task."""
        known = self._known.get(node)
        if known is None:
            known = self._known[node] = _facts(node, self._graph)
        return known


def penalty_scores(
    workflow: Workflow, task_facts: TaskFactIndex, settings: Settings
) -> tuple[dict[str, Scores], WorkflowPenalties]:
    """Returns the scores by node, reviews included, and the Penalty; the order of nodes and edges plays no part."""
    scores = measure(workflow, {task.id: task_facts.of(task) for task in workflow.tasks}, settings.scores)
    return scores, penalties(workflow, scores, settings.reward)


def _facts(node: TaskNode, graph: WorkGraph) -> TaskFacts:
    task = graph.tasks.get(node.task_id)
    inputs, outputs = (tuple(dict.fromkeys(map(folded, names))) for names in (node.inputs, node.outputs))
    executions = task.implementations if task else 0
    recorded = min(1.0, (task.p_n + task.q_n) / executions) if task and executions else 0.0
    names = node.title, ", ".join((*inputs, *outputs))
    return TaskFacts(
        statements(names, (task.description if task else None, node.objective, *node.instructions)),
        inputs,
        outputs,
        frozenset(name for name in outputs if meaning_of(name) in (PHONE, ACCOUNT)),
        task.community if task else None,
        _leaving(node.task_id, graph),
        1.0 if node.success_criterion else recorded * _OUTCOME_KNOWN.get(node.p_basis, 0.0),
        ((node.cost_basis in ("observed", "rate")) + (node.duration_basis == "observed")) / 2,
        node.q if node.q_basis in _OUTCOME_KNOWN else 0.0,
        node.is_review,
    )


def _leaving(task: str, graph: WorkGraph) -> float | None:
    """Returns the share of the transitions from and to other tasks that cross the border of the task's community."""
    if task not in graph.tasks:
        return None
    pairs = [(task, other) for other in graph.successors.get(task, ())] + [
        (other, task) for other in graph.predecessors.get(task, ())
    ]
    counts = {pair: graph.edges[pair].transitions for pair in pairs if pair[0] != pair[1]}
    crossing = sum(n for (src, dst), n in counts.items() if graph.tasks[src].community != graph.tasks[dst].community)
    return crossing / sum(counts.values()) if counts else None
