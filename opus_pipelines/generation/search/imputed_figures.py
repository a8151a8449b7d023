"""Imputes unknown costs and times for the comparison of workflows. No imputed figure is shown or part of a total.

The rule is this project's own. The search minimises a sum over steps, so every step needs a figure.

- A step that two workflows carry out in the same execution mode counts the same for both. Their known parts are
  compared on the other steps.
- Where another execution mode of the same task has a known cost, a mode of unknown cost counts as the dearest of these.
  A mode is therefore never chosen because its cost is unknown.
- Any other task of unknown cost counts as the mean over the tasks of known cost in the Workflow Graph, each with its
  most frequent mode of known cost. With 0, a workflow would win by its unknown steps. With the maximum, one dear step
  would make it worthwhile to omit every unknown step. The mean is the best estimate of the cost of such a step.
- Where no task has a known cost, every unknown cost counts 0. Unknown times are treated the same way where time has a
  price (`cost.usd_per_hour_of_duration`). Limits on cost and time are compared with the known parts alone, because an
  imputed figure must not break a limit. Next to each total stands the number of steps with an unknown figure.
"""

import math
from collections.abc import Mapping, Sequence

from opus_pipelines.core.settings import Cost
from opus_pipelines.generation.search.node_cost import NodeCost
from opus_pipelines.workflow.evaluation.cost import time_usd


def imputed_usd(costs: Mapping[str, Sequence[NodeCost]], settings: Cost) -> dict[str, tuple[float, ...]]:
    """Returns the imputed dollars of every execution mode of every task, most frequent mode first.

    The amount is 0.0 where cost and time of the mode are known.
    """
    spent = _stand_ins({task: [c.cost_usd for c in modes] for task, modes in costs.items()})
    if not settings.usd_per_hour_of_duration:
        return spent
    took = _stand_ins({task: [c.duration_ms for c in modes] for task, modes in costs.items()})
    return {
        task: tuple(usd + time_usd(ms, settings) for usd, ms in zip(spent[task], took[task], strict=True))
        for task in spent
    }


def of_another(
    costs: Mapping[str, Sequence[NodeCost]], unknown_cost: bool, unknown_time: bool, settings: Cost
) -> float:
    """Returns the imputed dollars of a step that is not among these tasks: a review that a plan adds."""
    spent = _usual([[c.cost_usd for c in modes] for _, modes in sorted(costs.items())]) if unknown_cost else 0.0
    took = _usual([[c.duration_ms for c in modes] for _, modes in sorted(costs.items())]) if unknown_time else 0.0
    return spent + time_usd(took, settings)


def _stand_ins(figures: Mapping[str, Sequence[float | None]]) -> dict[str, tuple[float, ...]]:
    """Returns the imputed value of each figure that is None, and 0.0 for a known one."""
    other = _usual([values for _, values in sorted(figures.items())])
    dearest = {task: max((x for x in values if x is not None), default=other) for task, values in figures.items()}
    return {task: tuple(dearest[task] if x is None else 0.0 for x in values) for task, values in figures.items()}


def _usual(figures: Sequence[Sequence[float | None]]) -> float:
    """Returns the mean of the first known figure of each task; 0.0 where no task has one."""
    first = [next((x for x in values if x is not None), None) for values in figures]
    known = [x for x in first if x is not None]
    return math.fsum(known) / len(known) if known else 0.0
