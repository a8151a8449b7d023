"""Chains of tasks as workflows, for tests that want one to compare with."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from opus_pipelines.generation.planning.plans import INPUT_TITLE
from opus_pipelines.generation.planning.prices import Prices
from opus_pipelines.intakes.intake import Intake
from opus_pipelines.workflow.model import INPUT, OUTPUT, InputNode, OutputNode, TaskNode, Workflow


def chain_workflow(
    tasks: Sequence[str], prices: Prices, intake: Intake, nodes: Mapping[str, TaskNode] | None = None
) -> Workflow:
    """Input → tasks → output; every task as `nodes` has it, else in its most frequent way."""
    chosen = [(nodes or {}).get(t) or prices.nodes[t][0] for t in tasks]
    first, last = InputNode(INPUT, INPUT_TITLE), OutputNode(OUTPUT, "Client output", intake.gain_usd)
    return Workflow.of([first, *chosen, last], pairwise([INPUT, *tasks, OUTPUT]))
