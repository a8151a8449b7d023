"""Plans of programs that a language model carries out: what its last answer names (AutoFlow 1.6)."""

import re

from opus_pipelines.flows.programs.interpreter import Executor, ProgramRun, run
from opus_pipelines.flows.programs.planning_set import MODELS, PlanningTask
from opus_pipelines.workflow.blocks.formats.core_program import CoreProgram

MAX_ROUNDS = 20  # of a run on the planning set, as published


class ModelPlans:
    """Runs programs with an executor that keeps no variable `plan`, and reads the plan off the run."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def ready(self, program: CoreProgram) -> CoreProgram:
        """Returns the program as it is."""
        return program

    def plan(self, ready: CoreProgram, task: PlanningTask) -> tuple[str, ...]:
        """Returns the plan that a run of the task came to."""
        return plan_of(run(ready, task.program_task, self._executor, MAX_ROUNDS))


def plan_of(done: ProgramRun) -> tuple[str, ...]:
    """Returns the models that the answer names, in its order; where it names none, the last list that a tool gave."""
    words = " ".join(re.findall(r"[a-z0-9]+", done.answer.lower()))
    names = {name.replace("_", " "): name for name in MODELS}
    found = re.findall(rf"\b({'|'.join(sorted(names, key=len, reverse=True))})\b", words)
    if found:
        return tuple(names[one] for one in found)
    lists = [visit.outcome.value for visit in done.visits if visit.outcome.value and visit.outcome.value.type == "list"]
    return tuple(str(one) for one in lists[-1].content) if lists else ()
