"""Everything EVAL says about one workflow in one record: success, schedule, cost and Reward (7)."""

import math
from dataclasses import dataclass

from opus_pipelines.core.settings import Cost, Reward
from opus_pipelines.evaluation.bayesian_network import exact_success
from opus_pipelines.evaluation.cost import workflow_cost
from opus_pipelines.evaluation.schedule import peaks, schedule
from opus_pipelines.evaluation.success import product_success
from opus_pipelines.workflow.model import Workflow


@dataclass(frozen=True)
class Evaluation:
    """What a workflow is worth; names are those of `workflows/optimized`, the maps are by node.

    cost_usd == cost_compute_usd + cost_model_usd + cost_human_usd + cost_time_usd + cost_held_usd, to the last bit.
    Costs, times and the Reward are of what is known; `imputed_usd` stands for the rest where workflows are compared
    (`optimization.imputed_figures`). Gain, expected gain and Reward are None where nobody states what a right output is
    worth.
    """

    reward_usd: float | None
    gain_usd: float | None
    expected_gain_usd: float | None
    success_probability: float
    cost_usd: float
    cost_compute_usd: float
    cost_model_usd: float
    cost_human_usd: float
    cost_time_usd: float
    cost_held_usd: float
    duration_ms: float
    peak_memory_gb: float
    peak_threads: float
    success: dict[str, float]
    start_ms: dict[str, float]
    finish_ms: dict[str, float]
    imputed_usd: float = 0.0

    @property
    def worth(self) -> float:
        """What the search makes the most of: the Reward, less what stands for unknown costs and times; without a
        stated gain P_succ(W).
        """
        return self.success_probability if self.reward_usd is None else self.reward_usd - self.imputed_usd

    @property
    def imputed_worth(self) -> float:
        """What stands in `worth` for unknown costs and times."""
        return 0.0 if self.reward_usd is None else self.imputed_usd


def evaluate(workflow: Workflow, cost: Cost, reward: Reward) -> Evaluation:
    """EVAL (1)-(7). `gain_usd` is the sum of the outputs' gains, `reward_usd` the expected gain less the cost.

    Success is inferred as `reward.inference` says: by the paper's product form, or exactly
    (`evaluation.bayesian_network`).
    """
    success = exact_success(workflow) if reward.inference == "exact" else product_success(workflow)
    times = schedule(workflow)
    held = peaks(workflow, times)
    spent = workflow_cost(workflow, times.duration_ms, held, cost)
    gains = [(n.gain_usd, success.nodes[n.id]) for n in workflow.outputs if n.gain_usd is not None]
    stated = workflow.states_gain
    expected = math.fsum(gain * right for gain, right in gains) if stated else None
    return Evaluation(
        reward_usd=None if expected is None else expected - spent.cost_usd,
        gain_usd=math.fsum(gain for gain, _ in gains) if stated else None,
        expected_gain_usd=expected,
        success_probability=success.workflow,
        cost_usd=spent.cost_usd,
        cost_compute_usd=spent.cost_compute_usd,
        cost_model_usd=spent.cost_model_usd,
        cost_human_usd=spent.cost_human_usd,
        cost_time_usd=spent.cost_time_usd,
        cost_held_usd=spent.cost_held_usd,
        duration_ms=times.duration_ms,
        peak_memory_gb=held.memory_gb,
        peak_threads=held.threads,
        success=success.nodes,
        start_ms=times.start_ms,
        finish_ms=times.finish_ms,
        imputed_usd=math.fsum(task.imputed_usd for task in workflow.tasks),
    )
