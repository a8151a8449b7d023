"""The figures of the tasks of a Workflow Graph in each execution mode, LWM (12), and the lead times of workflows."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from opus_pipelines.core.ids import SameObject, SameSettings
from opus_pipelines.core.settings import Cost, Priors, Settings
from opus_pipelines.generation.search.constraints import DeadlineCheck
from opus_pipelines.generation.search.costs import NodeCost, imputed_usd, node_cost
from opus_pipelines.intakes.requirements.rules import DAYS_A_WORKING_DAY
from opus_pipelines.lwm.retrieval.task_names import TaskNames
from opus_pipelines.wkg.estimates.times import StepTimes, WholeCases, is_person
from opus_pipelines.wkg.graph import ExecutionMode, Task, WorkGraph
from opus_pipelines.workflow.constraints import StepDeadline, folded
from opus_pipelines.workflow.evaluation.calendar import Calendar
from opus_pipelines.workflow.evaluation.lead_time import (
    DurationQuantiles,
    LeadTime,
    Period,
    Sampling,
    StepTime,
    Wait,
    lead_time,
    time_until,
)
from opus_pipelines.workflow.evaluation.success import Floats
from opus_pipelines.workflow.model import TaskNode, Workflow

_TASK_SETS_KEPT = 64  # sets of tasks, some 100 kB each: most intakes of a contract lead to the same ones


def execution_modes_of(task: Task) -> tuple[ExecutionMode, ...]:
    """Returns the execution modes of a task, most frequent first; ties by actor kind, model and group.

    A task that was never carried out has one mode of which nothing is known.
    """
    return tuple(sorted(task.execution_modes, key=_order)) or (ExecutionMode(),)


def _order(mode: ExecutionMode) -> tuple[int, str, str, str]:
    return -mode.implementations, mode.actor_kind or "", mode.model or "", mode.actor_group or ""


@dataclass(frozen=True)
class Prices:
    """The execution modes of each task, most frequent first, with cost and node; the three lists run in parallel."""

    execution_modes: dict[str, tuple[ExecutionMode, ...]]
    costs: dict[str, tuple[NodeCost, ...]]
    nodes: dict[str, tuple[TaskNode, ...]]

    @classmethod
    def of(cls, graph: WorkGraph, tasks: Collection[str], cost: Cost, settings: Settings) -> "Prices":
        """Returns the figures of every execution mode of these tasks; of the same tasks it is the same object."""
        known = tuple(SameObject(graph.tasks[t]) for t in sorted(tasks))
        return _prices_of(known, SameSettings.of(cost), SameSettings.of(settings.priors))

    def known_mode(self, node: TaskNode) -> ExecutionMode | None:
        """Returns the execution mode of history that a node has; None where history does not know it."""
        modes = self.execution_modes.get(node.task_id, ())
        return next((mode for mode in modes if mode.actor == node.actor), None)


@lru_cache(_TASK_SETS_KEPT)
def _prices_of(tasks: tuple[SameObject[Task], ...], cost: SameSettings[Cost], priors: SameSettings[Priors]) -> Prices:
    known = {task.value.task_id: task.value for task in tasks}
    modes = {t: execution_modes_of(task) for t, task in known.items()}
    costs = {t: tuple(node_cost(known[t], mode, cost.settings, priors.settings) for mode in modes[t]) for t in known}
    instead = imputed_usd(costs, cost.settings)
    nodes = {
        t: tuple(_node(task, *parts) for parts in zip(modes[t], costs[t], instead[t], strict=True))
        for t, task in known.items()
    }
    return Prices(modes, costs, nodes)


def _node(known: Task, mode: ExecutionMode, figures: NodeCost, instead_usd: float) -> TaskNode:
    return TaskNode(
        known.task_id,
        known.task_id,
        known.title,
        figures.p,
        figures.p_basis,
        figures.q,
        figures.q_basis,
        figures.cost_usd or 0.0,
        figures.cost_compute_usd,
        figures.cost_model_usd,
        figures.cost_human_usd,
        figures.cost_basis,
        figures.duration_ms or 0.0,
        figures.duration_basis,
        mode.memory_gb or 0.0,
        mode.threads or 0.0,
        mode.actor_kind,
        mode.model,
        actor_group=mode.actor_group,
        inputs=known.inputs,
        outputs=known.outputs,
        instructions=mode.instructions or known.instructions,
        imputed_usd=instead_usd,
        paid_by_time=figures.paid_by_time,
    )


HOURS_A_DAY = 24
_LEAD_TIMES_KEPT = 1_024  # lead times of workflows, 16 kB each: many intakes of a contract lead to the same workflows


@dataclass(frozen=True)
class LeadTimes:
    """The times from which lead times are computed.

    `waiting`: the waiting and working times of history. `correlation`: of the waits of one case; it is negative where a
    long wait is followed by a short one. `nearest`: for each step that only the intake's procedure has, the known task
    whose times it takes. `tasks`: all tasks that a workflow of the Intention may have.
    """

    waiting: StepTimes
    correlation: float = 0.0
    seed: int = 0
    calendar: Calendar | None = None
    nearest: Mapping[str, str] = field(default_factory=dict)
    tasks: tuple[str, ...] = ()

    def of(self, workflow: Workflow) -> LeadTime:
        """Returns the lead time of a workflow; it is unknown where history has no time of one of its steps."""
        used = {task.task_id for task in workflow.tasks}
        nearest = tuple(sorted((new, known) for new, known in self.nearest.items() if new in used))
        times = _Times(SameObject(self.waiting), self.correlation, self.seed, SameObject(self.calendar), nearest)
        return _lead_time_of(workflow, times)

    def drawn(self, workflow: Workflow) -> LeadTime:
        """Returns what `of` does, without its cache."""
        of_steps = lead_time(workflow, self._steps(workflow), self._sampling)
        found = replace(of_steps, single_ms=of_steps.p50_ms)
        if (whole := self._whole(workflow)) is not None:
            return replace(found, **_counted(whole, whole.lead_ms))
        return found

    def deadline_checks(
        self, workflow: Workflow, deadlines: Sequence[StepDeadline], names: TaskNames
    ) -> tuple[DeadlineCheck, ...]:
        """Returns the test of each deadline whose step the workflow has."""
        if not deadlines:
            return ()
        times = self._steps(workflow)
        checks = (self._deadline_check(workflow, times, deadline, names) for deadline in deadlines)
        return tuple(check for check in checks if check is not None)

    @property
    def _sampling(self) -> Sampling:
        """How lead times are drawn. One common factor cannot express a negative correlation, which counts as 0."""
        return Sampling(max(self.correlation, 0.0), self.seed, self.calendar)

    def _steps(self, workflow: Workflow) -> dict[str, StepTime]:
        return {task.id: self._step(workflow, task) for task in workflow.tasks}

    def _deadline_check(
        self, workflow: Workflow, times: Mapping[str, StepTime], deadline: StepDeadline, names: TaskNames
    ) -> DeadlineCheck | None:
        node = _node_named(workflow, names, deadline.step)
        since = None if deadline.after is None else _node_named(workflow, names, deadline.after)
        if node is None:
            return None
        limit = self._limit_hours(deadline)
        if deadline.after is not None and since is None:
            return DeadlineCheck(deadline, LeadTime(f"unknown: the workflow does not have {deadline.after!r}"), limit)
        if (whole := self._whole(workflow)) is not None:
            return DeadlineCheck(deadline, LeadTime(**_counted(whole, whole.until_ms(node, since))), limit)
        period = Period(node, since, in_working_time=deadline.unit.startswith("working"))
        return DeadlineCheck(deadline, time_until(workflow, times, period, self._sampling), limit)

    def _limit_hours(self, deadline: StepDeadline) -> float:
        """Returns the limit of a deadline in hours; in hours of working time where there is a calendar.

        Without a calendar, a week has five working days.
        """
        if deadline.unit in ("hours", "working_hours"):
            return deadline.within
        if deadline.unit == "days":
            return deadline.within * HOURS_A_DAY
        return deadline.within * (self.calendar.day_hours if self.calendar else HOURS_A_DAY * DAYS_A_WORKING_DAY)

    def is_timed(self, task: str) -> bool:
        """Returns whether history has waiting times or working times of a task."""
        known = self.nearest.get(task, task)
        return ("task", (known,)) in self.waiting.waits or (known, None) in self.waiting.work

    def compared_ms(self, workflow: Workflow, known: LeadTime) -> float:
        """Returns the median lead time in ms by which a workflow is compared; it is never shown.

        `known` is the lead time of the workflow. Its single steps are compared: whole cases of the same steps took as
        long whatever their order. Where it is unknown, times are imputed as unknown costs are
        (`generation.search.costs`): an unknown waiting or working time is the mean of the known ones of the
        Intention's tasks, so that a step counts the same in every workflow that has it. Where no time is known, it is 0
        for every workflow.
        """
        if known.single_ms is not None:
            return known.single_ms
        times = {task.id: self._filled(workflow, task) for task in workflow.tasks}
        return lead_time(workflow, times, self._sampling).p50_ms or 0.0

    def _filled(self, workflow: Workflow, task: TaskNode) -> StepTime:
        wait, work = self._usual
        known = self._step(workflow, task)
        before = [b for b in workflow.predecessors(task.id) if isinstance(workflow.by_id[b], TaskNode)]
        waits = {b: known.waits.get(b, Wait(DurationQuantiles.constant(wait), "task")) for b in before}
        return replace(
            known,
            waits=waits,
            work=known.work or (None if _is_contained(known.waits) else DurationQuantiles.constant(work)),
        )

    @cached_property
    def _usual(self) -> tuple[float, float]:
        """The means over the tasks of the median waiting and working times in ms; 0 where none is known."""
        known = [self.nearest.get(task, task) for task in self.tasks]
        waits = [times.p50 for task in known if (times := self.waiting.waits.get(("task", (task,))))]
        works = [times.p50 for task in known if (times := self.waiting.work.get((task, None)))]
        wait, work = (math.fsum(medians) / len(medians) if medians else 0.0 for medians in (waits, works))
        return wait, work

    def _whole(self, workflow: Workflow) -> WholeCases | None:
        """Returns the times of the cases that did these steps, by the same kinds of actors; None where they are few.

        They have what single steps do not tell: what is repeated, what is done between them, and that a long wait is
        followed by another one. A workflow with reviews or branches is none of these cases.
        """
        chain = _in_order(workflow)
        ids = {node.id for node in chain}
        links = {(a, b) for a, b in workflow.edges if a in ids and b in ids}
        if any(node.is_review for node in chain) or links != {(a.id, b.id) for a, b in pairwise(chain)}:
            return None
        return self.waiting.moments.together([_doing(node) for node in chain])

    def _step(self, workflow: Workflow, task: TaskNode) -> StepTime:
        waits = {b: wait for b in workflow.predecessors(task.id) if (wait := self._wait(workflow, b, task)) is not None}
        work = None if task.is_review else self.waiting.took(self._known(task), task.actor)
        assumed = work is None and task.known_duration_ms is not None and not _is_contained(waits)
        if assumed:
            work = DurationQuantiles.constant(task.duration_ms)
        return StepTime(waits, work, self.calendar is not None and is_person(task.actor_kind), assumed)

    def _wait(self, workflow: Workflow, before: str, task: TaskNode) -> Wait | None:
        """Returns the waiting time between two steps; behind a review, it is that behind the reviewed task."""
        node = workflow.by_id[before]
        if not isinstance(node, TaskNode):
            return None
        if task.is_review:
            return self.waiting.wait(None, task.task_id, task.actor)
        if node.is_review:
            node = next(
                (n for b in workflow.predecessors(before) if isinstance(n := workflow.by_id[b], TaskNode)), node
            )
        return self.waiting.wait(self._known(node), self._known(task), task.actor)

    def _known(self, task: TaskNode) -> str:
        return self.nearest.get(task.task_id, task.task_id)


class _Times(NamedTuple):
    """All that the lead time of a workflow depends on besides the workflow."""

    waiting: SameObject[StepTimes]
    correlation: float
    seed: int
    calendar: SameObject[Calendar | None]
    nearest: tuple[tuple[str, str], ...]


@lru_cache(_LEAD_TIMES_KEPT)
def _lead_time_of(workflow: Workflow, times: _Times) -> LeadTime:
    nearest = dict(times.nearest)
    return LeadTimes(times.waiting.value, times.correlation, times.seed, times.calendar.value, nearest).drawn(workflow)


def _node_named(workflow: Workflow, names: TaskNames, name: str) -> str | None:
    """Returns the node of the first task of a workflow with this name."""
    meant = names.tasks(name)
    titles = {folded(name)}
    matches = (
        t.id
        for n in workflow.topological()
        if isinstance(t := workflow.by_id[n], TaskNode)
        and not t.is_review
        and (t.task_id in meant or folded(t.title) in titles)
    )
    return next(matches, None)


def _in_order(workflow: Workflow) -> list[TaskNode]:
    return [node for n in workflow.topological() if isinstance(node := workflow.by_id[n], TaskNode)]


def _counted(whole: WholeCases, times: Floats) -> dict[str, Any]:
    return {"basis": f"{whole.n:,} whole cases that did these steps", "draws": times, "is_counted": True}


def _doing(node: TaskNode) -> tuple[str, str | None]:
    return node.task_id, node.actor_kind


def _is_contained(waits: Mapping[str, Wait]) -> bool:
    """Returns whether the waiting times contain the work already, as in logs that only record completions."""
    return bool(waits) and all(wait.times.with_work_share == 1 for wait in waits.values())
