"""Evaluates one workflow by EVAL: success, schedule, cost and Reward (7) in one record."""

import math
from dataclasses import dataclass

from opus_pipelines.core.settings import Cost, Reward
from opus_pipelines.workflow.evaluation.bayesian_network import inferred_success
from opus_pipelines.workflow.evaluation.cost import workflow_cost
from opus_pipelines.workflow.evaluation.schedule import peaks, schedule
from opus_pipelines.workflow.evaluation.success import Success
from opus_pipelines.workflow.model import Workflow


@dataclass(frozen=True)
class Evaluation:
    """The figures of a workflow, named as in `workflows/optimized`; the maps are by node.

    cost_usd == cost_compute_usd + cost_model_usd + cost_human_usd + cost_time_usd + cost_held_usd, to the last bit.
    Costs, times and the Reward cover known figures only; `imputed_usd` stands for the rest where workflows are compared
    (`generation.search.imputed_figures`). Gain, expected gain and Reward are None where no gain is stated.
    `success_inference` is exact, product or simulated (`bayesian_network.Inferred`); the figures that end with the word
    product are the paper's, EVAL (4) and (7), which take the predecessors of a step for independent.
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
    success_inference: str
    success_probability_product: float
    reward_product_usd: float | None
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
    selects the inference of success: exact (`workflow.evaluation.bayesian_network`), or the paper's product form. Where
    exact inference is too wide, success is simulated.
    """
    inferred = inferred_success(workflow, reward.inference)
    success = inferred.success
    times = schedule(workflow)
    held = peaks(workflow, times)
    spent = workflow_cost(workflow, times.duration_ms, held, cost)
    gains = [(n.id, n.gain_usd) for n in workflow.outputs if n.gain_usd is not None]
    stated = workflow.states_gain

    def expected_gain(of: Success) -> float | None:
        return math.fsum(gain * of.nodes[output] for output, gain in gains) if stated else None

    expected, by_product = expected_gain(success), expected_gain(inferred.product)
    return Evaluation(
        reward_usd=None if expected is None else expected - spent.cost_usd,
        gain_usd=math.fsum(gain for _, gain in gains) if stated else None,
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
        success_inference=inferred.method,
        success_probability_product=inferred.product.workflow,
        reward_product_usd=None if by_product is None else by_product - spent.cost_usd,
    )
