"""What stands for unknown costs and times while workflows are compared. It is never shown and never part of a total.

The rule, this project's own. The search minimises a sum over steps, so that every step needs a figure.
- A step that two workflows both have, done in the same way, counts the same for both: their known parts are compared on
  the other steps.
- Where another way of the same task has a known cost, a way of unknown cost counts as the dearest of them: no way is
  chosen because its
  cost is unknown.
- Any other task of unknown cost counts as the mean of the tasks of known cost in the Workflow Graph (of each task its
  most usual way of
  known cost). Counted as 0, a workflow would win by its unknown steps; counted as the dearest, one dear step would make
  every
  unknown step worth leaving out. The mean is what a step of this work costs as far as anyone knows.
- Where no task has a known cost, costs play no role at all: every unknown one counts 0. Unknown times are treated the
  same where time has a price (`cost.usd_per_hour_of_duration`). Limits on cost and time are held against the known
  parts alone: an invented figure breaks no limit; how many steps are unknown stands beside the total.
"""

import math
from collections.abc import Mapping, Sequence

from opus_pipelines.core.settings import Cost
from opus_pipelines.evaluation.cost import time_usd
from opus_pipelines.optimization.node_cost import NodeCost


def imputed_usd(costs: Mapping[str, Sequence[NodeCost]], settings: Cost) -> dict[str, tuple[float, ...]]:
    """For every task's ways, most usual first, the dollars that stand for what is unknown of each: 0.0 where all is
    known.
    """
    spent = _stand_ins({task: [c.cost_usd for c in found] for task, found in costs.items()})
    if not settings.usd_per_hour_of_duration:
        return spent
    took = _stand_ins({task: [c.duration_ms for c in found] for task, found in costs.items()})
    return {
        task: tuple(usd + time_usd(ms, settings) for usd, ms in zip(spent[task], took[task], strict=True))
        for task in spent
    }


def of_another(
    costs: Mapping[str, Sequence[NodeCost]], unknown_cost: bool, unknown_time: bool, settings: Cost
) -> float:
    """The dollars that stand for what is unknown of a step beside these tasks: a review that a plan places."""
    spent = _usual([[c.cost_usd for c in found] for _, found in sorted(costs.items())]) if unknown_cost else 0.0
    took = _usual([[c.duration_ms for c in found] for _, found in sorted(costs.items())]) if unknown_time else 0.0
    return spent + time_usd(took, settings)


def _stand_ins(figures: Mapping[str, Sequence[float | None]]) -> dict[str, tuple[float, ...]]:
    """For each figure that is None what stands for it; 0.0 for a known one."""
    other = _usual([found for _, found in sorted(figures.items())])
    dearest = {task: max((x for x in found if x is not None), default=other) for task, found in figures.items()}
    return {task: tuple(dearest[task] if x is None else 0.0 for x in found) for task, found in figures.items()}


def _usual(figures: Sequence[Sequence[float | None]]) -> float:
    """The mean over the tasks that have a known figure, of each its first; 0.0 where none has."""
    first = [next((x for x in found if x is not None), None) for found in figures]
    known = [x for x in first if x is not None]
    return math.fsum(known) / len(known) if known else 0.0
