"""A proposal worked out into a Workflow: which steps wait for which, how each is carried out, where reviews stand."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from opus_pipelines.generation.intake import Intake
from opus_pipelines.generation.prices import Prices
from opus_pipelines.generation.situation import Plan, Proposal, Situation
from opus_pipelines.wfg.algorithm1 import INPUT, OUTPUT
from opus_pipelines.workflow.model import InputNode, OutputNode, TaskNode, Workflow


def plan(situation: Situation, proposal: Proposal) -> Plan:
    """The proposal as a chain."""
    workflow = chain_workflow(proposal.tasks, situation.prices, situation.intake, proposal.nodes)
    return Plan(workflow, proposal.tasks, gap_usd=proposal.gap_usd)


def chain_workflow(tasks: Sequence[str], prices: Prices, intake: Intake, nodes: Mapping[str, TaskNode] | None = None) -> Workflow:
    """The chain input → tasks → output as a Workflow; every task as `nodes` has it, else in its most frequent way."""
    chosen = [(nodes or {}).get(t) or prices.usual(t) for t in tasks]
    ends = InputNode(INPUT, intake.title or "Client input"), OutputNode(OUTPUT, "Client output", intake.gain_usd)
    return Workflow.of([ends[0], *chosen, ends[1]], pairwise([INPUT, *tasks, OUTPUT]))
