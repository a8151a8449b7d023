"""Evaluates one workflow by EVAL: success, schedule, cost and Reward (7) in one record."""

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
    """The figures of a workflow, named as in `workflows/optimized`; the maps are by node.

    cost_usd == cost_compute_usd + cost_model_usd + cost_human_usd + cost_time_usd + cost_held_usd, to the last bit.
    Costs, times and the Reward cover known figures only; `imputed_usd` stands for the rest where workflows are compared
    (`optimization.imputed_figures`). Gain, expected gain and Reward are None where no gain is stated.
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
        """The value that the search maximises: the Reward less imputed dollars, or P_succ(W) without a stated gain."""
        return self.success_probability if self.reward_usd is None else self.reward_usd - self.imputed_usd

    @property
    def imputed_worth(self) -> float:
        """The part of `worth` that stands for unknown costs and times."""
        return 0.0 if self.reward_usd is None else self.imputed_usd


def evaluate(workflow: Workflow, cost: Cost, reward: Reward) -> Evaluation:
    """Evaluates EVAL (1)-(7) of one workflow.

    `gain_usd` is the sum of the outputs' gains, and `reward_usd` is the expected gain less the cost. `reward.inference`
    selects the inference of success: the paper's product form, or exact (`evaluation.bayesian_network`).
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
