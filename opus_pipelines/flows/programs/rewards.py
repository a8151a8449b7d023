"""Rewards of programs: a registry of plug-ins, and the harness that counts calls, splits tasks and refuses nonsense.

A reward is the mean of the scores of the tasks of one part. An invalid program has the reward -2 (AutoFlow 1.5), and
one whose rounds run out is scored by the plan that it had by then. A score that is not a finite number from 0 to 1 is
an error that names the plug-in, the program and the task: no search may select by it. The plan of a program that a
language model carries out is what its last answer names (AutoFlow 1.6).
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.registry import Registry, takes
from opus_pipelines.flows.programs import planning_set
from opus_pipelines.flows.programs.executors import FastRuns, ToolExecutor
from opus_pipelines.flows.programs.interpreter import Executor, ProgramRun, program_id, run
from opus_pipelines.flows.programs.planning_set import MODELS, PlanningTask
from opus_pipelines.workflow.blocks.formats.core_program import CoreProgram, is_valid

MODEL_ROUNDS = 20  # of a run on the planning set, as published


class ModelPlans:
    """Runs programs with an executor that keeps no variable `plan`, and reads the plan off the run."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def ready(self, program: CoreProgram) -> CoreProgram:
        """Returns the program as it is."""
        return program

    def plan(self, ready: CoreProgram, task: PlanningTask) -> tuple[str, ...]:
        """Returns the plan that a run of the task came to."""
        return plan_of(run(ready, task.program_task, self._executor, MODEL_ROUNDS))


def plan_of(done: ProgramRun) -> tuple[str, ...]:
    """Returns the models that the answer names, in its order; where it names none, the last list that a tool gave."""
    words = " ".join(re.findall(r"[a-z0-9]+", done.answer.lower()))
    names = {name.replace("_", " "): name for name in MODELS}
    found = re.findall(rf"\b({'|'.join(sorted(names, key=len, reverse=True))})\b", words)
    if found:
        return tuple(names[one] for one in found)
    lists = [visit.outcome.value for visit in done.visits if visit.outcome.value and visit.outcome.value.type == "list"]
    return tuple(str(one) for one in lists[-1].content) if lists else ()


INVALID = -2.0
TOOL_ROUNDS = 80


class RewardError(OpusError):
    """A reward cannot be used: it is no finite number, or it is outside its range."""


class BudgetSpent(OpusError):
    """The stated number of calls of the reward is used up."""


class TaskReward(Protocol):
    """A plug-in: the score of a plan for a task, from 0 to 1."""

    def __call__(self, task: PlanningTask, plan: tuple[str, ...]) -> float:
        """Returns the score."""
        ...


def chain_validity(task: PlanningTask, plan: tuple[str, ...]) -> float:
    """Returns 1 where the chain of types is right, else 0 (AutoFlow 1.9)."""
    return float(planning_set.is_valid(task, plan))


def _misfit(name: str, added: object) -> str:
    return takes(added, "task", "plan")


TASK_REWARDS: Registry[TaskReward] = Registry(
    "program_rewards", {"task_score": planning_set.plan_score, "chain_validity": chain_validity}, _misfit
)


class Plans(Protocol):
    """How a program is run for its plan: made ready once, then run on every task."""

    def ready(self, program: CoreProgram) -> Any:
        """Returns the program, ready to be run on tasks."""
        ...

    def plan(self, ready: Any, task: PlanningTask) -> tuple[str, ...]:
        """Returns the models that the run of a task came to."""
        ...


class ToolPlans:
    """Plans of programs that tools carry out: the variable `plan` at the end."""

    def __init__(self, executor: ToolExecutor) -> None:
        self._runs = FastRuns(executor)

    def ready(self, program: CoreProgram) -> Any:
        """Returns the steps of the program."""
        return self._runs.compiled(program)

    def plan(self, ready: Any, task: PlanningTask) -> tuple[str, ...]:
        """Returns the plan that the run had at its end, or at the limit of rounds."""
        plan: tuple[str, ...] = (
            self._runs.final(ready, task.program_task.variables, TOOL_ROUNDS).variables["plan"].content
        )
        return plan


@dataclass
class Harness:
    """Scores programs on tasks by a reward, and counts every call against a limit.

    The same program is scored once; asking again costs nothing. `calls` counts programs.
    """

    tasks: Sequence[PlanningTask]
    reward: TaskReward
    executor: Executor
    name: str = "task_score"
    most_calls: int | None = None
    calls: int = 0
    _kept: dict[str, tuple[float, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        executor = self.executor
        self._plans: Plans = ToolPlans(executor) if isinstance(executor, ToolExecutor) else ModelPlans(executor)

    def score(self, program: CoreProgram) -> float:
        """Returns the mean of `scores`."""
        found = self.scores(program)
        return math.fsum(found) / len(found)

    def scores(self, program: CoreProgram) -> tuple[float, ...]:
        """Returns the score of each task, all by one call; -2 for each where the program is invalid.

        Raises BudgetSpent at the limit of calls, RewardError for a score that is none.
        """
        key = program_id(program)
        if key not in self._kept:
            if self.most_calls is not None and self.calls >= self.most_calls:
                raise BudgetSpent(f"{self.most_calls:,} calls of the reward {self.name} are used up")
            self.calls += 1
            self._kept[key] = self._scores(program, key)
        return self._kept[key]

    def _scores(self, program: CoreProgram, key: str) -> tuple[float, ...]:
        if not is_valid(program):
            return (INVALID,) * len(self.tasks)
        ready = self._plans.ready(program)
        return tuple(self._one(ready, task, key) for task in self.tasks)

    def _one(self, ready: Any, task: PlanningTask, key: str) -> float:
        value = self.reward(task, self._plans.plan(ready, task))
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise RewardError(f"the reward {self.name} gave {value!r} for the task {task.id} and the program {key}")
        return float(value)


def scorer(name: str) -> TaskReward:
    """Returns the plug-in of a name. Raises RewardError with the known names for another one."""
    try:
        return TASK_REWARDS.get(name)
    except KeyError:
        raise RewardError(f"no reward {name!r}; there are: {', '.join(TASK_REWARDS.names())}") from None
