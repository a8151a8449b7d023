"""Why each step is in a workflow: what asks for it, and which share of it similar cases and the trained model have."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from opus_pipelines.generation.records import Ranked
from opus_pipelines.lwm.retrieval.completeness import OUTCOMES, SUPPORT, tasks_done
from opus_pipelines.lwm.stitching import critical_groups

PROCEDURE, CONSTRAINT, DECISION = "procedure", "constraint", "decision"
EXPECTED = 0.5  # share of the model's sequences from which the model expects a step


@dataclass(frozen=True)
class StepReasons:
    """What asks for the steps of the workflows of one Intention."""

    result: Ranked

    def of_task(self, task: str) -> dict[str, Any]:
        """Returns the columns of `workflows/tasks` that say why a task is there."""
        support = self.result.evidence.completeness.model_support
        return {
            "asked_by": [reason for reason, tasks in self._asked.items() if task in tasks],
            "similar_share": self._similar.get(task, 0.0) if self._similar else None,
            "model_share": None if support is None else min(1.0, support.get(task, 0.0)),
        }

    def of_workflow(self, tasks: Iterable[str]) -> dict[str, float | None]:
        """Returns the columns of `workflows/optimized` with the shares of its distinct steps by where they came from.

        A step may count for several: the shares do not add up to 1.
        """
        steps = sorted(set(tasks))
        support = self.result.evidence.completeness.model_support
        return {
            "share_similar_cases": _share([self._similar.get(t, 0.0) > 0 for t in steps]) if self._similar else None,
            "share_procedure": _share([t in self._asked[PROCEDURE] for t in steps]),
            "share_model": None if support is None else _share([support.get(t, 0.0) >= EXPECTED for t in steps]),
        }

    @cached_property
    def _asked(self) -> dict[str, frozenset[str]]:
        """Return the tasks that each reason asks for, in the order in which reasons are shown."""
        evidence, context = self.result.evidence, self.result.context
        limits, meant = context.requirements.constraints, context.requirements.names.tasks
        stated = [*limits.must_contain, *(name for g in (*limits.one_of, *limits.exactly_one_of) for name in g)]
        critical = frozenset[str]().union(*critical_groups(self.result.retrieved.processes))
        asks = not (evidence.procedure and evidence.procedure.is_of_request)
        chosen = [s.tasks for s in self.result.drafted.sequences.values() if s.source == DECISION]
        return {
            SUPPORT if evidence.completeness.by_support else OUTCOMES: critical,
            PROCEDURE: frozenset(evidence.procedure.tasks if evidence.procedure and asks else ()),
            CONSTRAINT: frozenset[str]().union(*map(meant, stated)),
            DECISION: frozenset[str]().union(*chosen),
        }

    @cached_property
    def _similar(self) -> dict[str, float]:
        """Return by task the share of the similar cases, by weight, that did it; empty without similar cases."""
        cases = [case for case in self.result.evidence.cases if not case.is_decision]
        if not cases:
            return {}
        total = sum(case.weight for case in cases)
        tasks, of_case, of_task = tasks_done(cases)
        weights = np.array([case.weight / total for case in cases])[of_case]
        shares = np.bincount(of_task, weights, len(tasks)).tolist()  # adds up in the order of the cases
        return {task: min(1.0, round(share, 9)) for task, share in zip(tasks, shares, strict=True)}


def _share(hits: list[bool]) -> float | None:
    return sum(hits) / len(hits) if hits else None
