"""Steps that all successes under a procedure's part did and that its reading lacks: they overrule the reading.

The reading of a procedure may miss a sentence. Where every success of history under the very same part, in the same
words, did a task before it reached the goal of the part, the task is a step. Successes under another procedure do not
count, because the same goal may then ask for other steps. There must be enough of them: the lower end of the 95 %
interval of their share (Wilson) is at least `LEAST_SHARE`, which 16 successes without exception reach. This rule is
the project's own.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from opus_pipelines.core.statistics import wilson
from opus_pipelines.intakes.procedures.reading import ParsedProcedure, ProcedureStep
from opus_pipelines.wkg.graph import Task

_UNANIMOUS_SHARE = 0.8  # of the successes with the task, by the lower end of its interval


def with_unanimous_steps(
    procedure: ParsedProcedure, successes: Sequence[Sequence[str]], tasks: Mapping[str, Task]
) -> ParsedProcedure:
    """Returns the procedure with the steps that all successes under its part did, each with its evidence.

    `successes`: the tasks of each, in order. `tasks`: by id. The procedure stays as it is where its part has no goal,
    because the similar cases then decide.
    """
    if not procedure.has_goal:
        return procedure
    goal = procedure.tasks[-1]
    cases = [done[: done.index(goal)] for done in successes if goal in done]
    if not cases or wilson(len(cases), len(cases))[0] < _UNANIMOUS_SHARE:
        return procedure
    counts = Counter(task for case in cases for task in set(case))
    missing = [t for t, n in sorted(counts.items()) if n == len(cases) and t not in procedure.tasks and t in tasks]
    steps = list(procedure.steps)
    for task in missing:
        said = f"all {len(cases)} successes under this part of the procedure did it"
        step = ProcedureStep(task, tasks[task].title, said, 1.0, by_history=True)
        steps.insert(_place(task, [s.task_id for s in steps], cases), step)
    return replace(procedure, steps=tuple(steps))


def _place(task: str, steps: Sequence[str], cases: Sequence[Sequence[str]]) -> int:
    """Returns the place before the first step that most of the cases with both did later; the goal stays the last."""
    for place, step in enumerate(steps[:-1]):
        both = [case.index(task) < case.index(step) for case in cases if step in case]
        if 2 * sum(both) > len(both):
            return place
    return len(steps) - 1
