"""The customer-support case of spec A6: the durations, p and q are fitted inputs; the Rewards follow from printed
figures.
"""

from typing import Any

import pytest

from opus_pipelines.core.settings import Cost, Reward
from opus_pipelines.workflow.evaluation.reward import evaluate
from opus_pipelines.workflow.model import InputNode, OutputNode, TaskNode, Workflow

SMALL, LARGE, GAIN = 0.00016, 0.00080, 0.92

W1 = {
    "subject": ({"p": 0.90, "duration_ms": 400}, ["email"]),
    "body": ({"duration_ms": 400}, ["email"]),
    "identify": ({"p": 0.91, "cost_usd": SMALL, "actor_kind": "model", "duration_ms": 1900}, ["subject", "body"]),
    "validate": ({"duration_ms": 100}, ["account"]),
    "review identify": (
        {"p": 0.95, "q": 0.70, "cost_usd": LARGE, "actor_kind": "model", "duration_ms": 1900},
        ["identify"],
    ),
    "review validate": (
        {"p": 1.0, "q": 0.70, "cost_usd": LARGE, "actor_kind": "model", "duration_ms": 1900},
        ["validate"],
    ),
    "retrieve": ({"duration_ms": 10}, ["name"]),
    "assemble": ({"duration_ms": 10}, ["review identify", "review validate", "retrieve"]),
    "review assemble": (
        {"p": 0.95, "q": 0.70, "cost_usd": LARGE, "actor_kind": "model", "duration_ms": 1900},
        ["assemble"],
    ),
    "ticket": ({}, ["review assemble"]),
}
W2 = {
    "identify": ({"p": 0.90, "cost_usd": SMALL, "actor_kind": "model", "duration_ms": 1900}, ["email"]),
    "review": ({"p": 0.95, "q": 0.70, "cost_usd": LARGE, "actor_kind": "model", "duration_ms": 1900}, ["identify"]),
    "validate": ({"duration_ms": 100}, ["account"]),
    "retrieve": ({"duration_ms": 10}, ["name"]),
    "assemble": ({"duration_ms": 10}, ["review", "validate", "retrieve"]),
    "ticket": ({}, ["assemble"]),
}
W3 = {
    "identify": ({"p": 0.925, "cost_usd": SMALL + LARGE, "actor_kind": "model", "duration_ms": 3800}, ["email"]),
    "validate": ({"duration_ms": 100}, ["account"]),
    "retrieve": ({"duration_ms": 10}, ["name"]),
    "assemble": ({"duration_ms": 10}, ["identify", "validate", "retrieve"]),
    "ticket": ({}, ["assemble"]),
}


def build(table: dict) -> Workflow:
    names = {"name": "Customer Full Name", "email": "Customer Email File", "account": "Customer Account Number"}
    inputs = [InputNode(node, title) for node, title in names.items()]
    tasks = [TaskNode(i, i, i, **figures) for i, (figures, _) in table.items() if i != "ticket"]
    output = OutputNode("ticket", "Support Ticket Record", GAIN)
    return Workflow.of([*inputs, *tasks, output], [(u, v) for v, (_, parents) in table.items() for u in parents])


@pytest.mark.parametrize(
    ("table", "success", "reward", "cost", "duration"),
    [
        (W1, 0.9262, 0.8495, 0.00256, 6110),
        (W2, 0.9250, 0.8500, 0.00096, 3810),
        (W3, 0.9250, 0.8500, 0.00096, 3810),
    ],
    ids=["W1", "W2", "W3"],
)
def test_table_1(table: dict[str, Any], success: float, reward: float, cost: float, duration: int) -> None:
    result = evaluate(build(table), Cost(), Reward())
    assert round(result.success_probability, 4) == success
    assert round(result.reward_usd, 4) == reward
    assert result.cost_usd == pytest.approx(cost, abs=1e-12)
    assert result.cost_model_usd == result.cost_usd
    assert result.duration_ms == duration
    assert result.gain_usd == GAIN
