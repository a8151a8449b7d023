"""simulate_chain against EVAL's closed form of a chain, workflows of other shapes, and refusals."""

import math
import tomllib
from typing import Any

import pytest

from opus_pipelines.core.errors import InputError
from opus_pipelines.workflow.model import InputNode, OutputNode, TaskNode, Workflow
from tests.quality.sample.simulate import (
    expected_reward,
    kind_of,
    one_after_the_other,
    simulate_chain,
    simulate_workflow,
    step_of,
    way_of,
)

pytestmark = pytest.mark.long

LARGE = "quill-large-2"
INSURANCE = "insurance claims"
COLLISION = [
    ("Register Claim", "code", None),
    ("Verify Coverage", "model", LARGE),
    ("Extract Claim Details", "model", "quill-small-2"),
    ("Determine Liability", "human", None),
    ("Check Fraud Indicators", "code", None),
    ("Inspect Vehicle", "human", None),
    ("Estimate Repair Cost", "human", None),
    ("Review Settlement", "human", None),
    ("Approve Settlement", "human", None),
    ("Issue Payment", "code", None),
    ("Notify Policyholder", "model", "quill-small-2"),
    ("Close Claim", "code", None),
]
SHORT = [step for step in COLLISION if step[0] != "Inspect Vehicle"]


def closed_form(truth: Any, industry: Any, steps: Any) -> Any:
    """(success, cost, duration) of a chain by EVAL (1)-(5)."""
    right = 1.0
    ways = [way_of(truth, industry, *step) for step in steps]
    for way in ways:
        right = way["p"] * right + way["q"] * (1 - right)
    return right, sum(w["cost_usd_mean"] for w in ways), sum(w["duration_ms_mean"] for w in ways)


def test_a_chain_has_the_closed_forms_reward(written: Any) -> None:
    success, cost, duration = closed_form(written.truth, INSURANCE, COLLISION)
    found = simulate_chain(written.truth, INSURANCE, COLLISION, gain_usd=190.0, kind="Motor collision claim")
    assert found.success_rate == pytest.approx(success, abs=5 * math.sqrt(success * (1 - success) / 10_000))
    assert found.mean_cost == pytest.approx(cost, rel=0.01)
    assert found.mean_duration_ms == pytest.approx(duration, rel=0.01)
    assert found.mean_reward == pytest.approx(190.0 * success - cost, rel=0.03)


def test_the_shortcut_costs_less_and_is_worth_less(written: Any) -> None:
    success, cost, _ = closed_form(written.truth, INSURANCE, SHORT)
    found = simulate_chain(written.truth, INSURANCE, SHORT, gain_usd=190.0)
    whole = simulate_chain(written.truth, INSURANCE, COLLISION, gain_usd=190.0)
    assert found.success_rate == pytest.approx(success * 0.18, abs=0.02)
    assert found.mean_cost == pytest.approx(cost, rel=0.01)
    assert found.mean_cost < whole.mean_cost - 30
    assert found.mean_reward < 0 < whole.mean_reward
    # What a reader of p and q alone would believe: the shortcut looks better.
    assert 190.0 * success - cost > whole.mean_reward


def test_the_same_seed_gives_the_same_result(written: Any) -> None:
    first, again = (simulate_chain(written.truth, INSURANCE, COLLISION, 190.0, runs=100, seed=3) for _ in range(2))
    assert first == again


def test_a_candidate_with_the_survey_breaks_the_contracts_limit(written: Any) -> None:
    """harbourline-mutual/motor-claims allows 96 dollars."""
    survey = [*COLLISION[:-1], ("Send Satisfaction Survey", "human", None), COLLISION[-1]]
    assert closed_form(written.truth, INSURANCE, COLLISION)[1] < 94
    assert closed_form(written.truth, INSURANCE, survey)[1] > 99


def test_every_kind_is_worth_doing(written: Any) -> None:
    folders = {i["kind"]: written.folder / i["path"] for i in written.truth["intakes"]}
    own = {
        kind: tomllib.loads((folder / "intake.toml").read_text()).get("gain_usd") for kind, folder in folders.items()
    }
    for industry, truth in written.truth["industries"].items():
        gains = {(c["client"], c["contract"]): c["gain_usd"] for c in written.truth["contracts"]}
        for kind in truth["kinds"]:
            gain = gains[kind["client"], kind["contract"]] if kind["cases"] else own[kind["kind"]]
            steps = [(t, *best_way(truth, t)) for t in kind["always"]]
            assert simulate_chain(written.truth, industry, steps, gain, runs=2000).mean_reward > 0.3 * gain


def best_way(truth: Any, name: Any) -> Any:
    way = max(next(t for t in truth["tasks"] if t["task"] == name)["ways"], key=lambda w: w["share"])
    return way["actor_kind"], way["model"]


@pytest.mark.parametrize(
    "name", ["Inspect Property", "inspect_property", "survey_damage_at_home", "Survey damage at home"]
)
def test_step_of_knows_titles_and_raw_keys(written: Any, name: Any) -> None:
    assert step_of(written.truth, INSURANCE, name) == "Inspect Property"


def test_the_nearest_kind_is_taken(written: Any) -> None:
    assert kind_of(written.truth, INSURANCE, [name for name, _, _ in SHORT])["kind"] == "Motor collision claim"


@pytest.mark.parametrize(
    ("industry", "step", "kind", "message"),
    [
        ("farming", ("Register Claim", "code", None), None, "farming.*insurance claims"),
        (INSURANCE, ("Milk Cows", "code", None), None, "Milk Cows.*Register Claim"),
        (
            INSURANCE,
            ("Inspect Vehicle", "model", LARGE),
            None,
            "Inspect Vehicle is never done by model quill-large-2; its ways are: human",
        ),
        (INSURANCE, ("Register Claim", "code", None), "Hail", "Hail.*Motor glass claim"),
    ],
)
def test_what_the_truth_does_not_know_is_refused(
    written: Any, industry: Any, step: Any, kind: Any, message: Any
) -> None:
    with pytest.raises(InputError, match=message):
        simulate_chain(written.truth, industry, [step], 1.0, runs=10, kind=kind)


def test_a_chain_as_a_workflow_earns_what_the_chain_earns(written: Any) -> None:
    chain = [
        ("Receive Invoice", "code", None),
        ("Extract Invoice Fields", "model", "quill-small-2"),
        ("Archive Document", "code", None),
    ]
    nodes = [
        TaskNode(f"t{i}", f"t{i}", name, actor_kind=kind, model=model) for i, (name, kind, model) in enumerate(chain)
    ]
    workflow = Workflow.of(
        [InputNode("in", "In"), *nodes, OutputNode("out", "Out", 60.0)],
        [("in", "t0"), ("t0", "t1"), ("t1", "t2"), ("t2", "out")],
    )
    kind = written.truth["industries"]["accounts payable"]["kinds"][0]["kind"]
    one = simulate_workflow(written.truth, "accounts payable", workflow, kind, runs=200_000)
    other = simulate_chain(written.truth, "accounts payable", chain, 60.0, 200_000, kind=kind)
    assert one.mean_reward == pytest.approx(other.mean_reward, abs=0.2)
    assert one.mean_cost == pytest.approx(other.mean_cost, rel=0.01)
    assert one.success_rate == pytest.approx(other.success_rate, abs=0.005)
    assert one.mean_duration_ms == pytest.approx(other.mean_duration_ms, rel=0.01)


def test_work_side_by_side_is_seen_as_a_graph_or_in_the_order_of_its_starts(written: Any) -> None:
    """A person's second look mends what the program before it spoilt only where it comes after it."""
    nodes = [
        TaskNode("a", "a", "Assign Ledger Account", actor_kind="model", model="quill-small-2", duration_ms=5.0),
        TaskNode("b", "b", "Review Posting", actor_kind="human", duration_ms=9.0),
    ]
    edges = [("in", "a"), ("in", "b"), ("a", "out"), ("b", "out")]
    workflow = Workflow.of([InputNode("in", "In"), *nodes, OutputNode("out", "Out", 60.0)], edges)
    kind = written.truth["industries"]["accounts payable"]["kinds"][0]
    order = one_after_the_other(workflow, {"a": 0.0, "b": 1.0})
    assert order == {"a": [], "b": ["a"], "out": ["b"]}
    graph, line = (
        simulate_workflow(written.truth, "accounts payable", workflow, kind["kind"], parents, 200_000).success_rate
        for parents in (None, order)
    )
    whole = math.prod(1 - needed["damage"] for needed in kind["needed"])
    assert graph == pytest.approx(whole * 0.91 * 0.985, abs=0.005)
    assert line == pytest.approx(whole * (0.91 * 0.985 + 0.09 * 0.5), abs=0.005)
    spent = sum(
        way_of(written.truth, "accounts payable", node.title, node.actor_kind, node.model)["cost_usd_mean"]
        for node in nodes
    )
    exact = expected_reward(written.truth, "accounts payable", workflow, kind["kind"], {"a": 0.0, "b": 1.0})
    assert exact == pytest.approx(60 * whole * (0.91 * 0.985 + 0.09 * 0.5) - spent)


def test_a_review_unknown_to_the_truth_has_its_own_figures_and_another_task_is_refused(written: Any) -> None:
    def workflow(kind: Any) -> Any:
        node = TaskNode("r", "r", "Look again at everything", p=0.5, q=0.0, cost_usd=3.0, duration_ms=7.0, kind=kind)
        return Workflow.of([InputNode("in", "In"), node, OutputNode("out", "Out", 10.0)], [("in", "r"), ("r", "out")])

    kinds = written.truth["industries"]["medical coding"]["kinds"]
    found = simulate_workflow(written.truth, "medical coding", workflow("review"), kinds[0]["kind"])
    assert (found.mean_cost, found.mean_duration_ms) == (3.0, 7.0)
    whole = math.prod(1 - needed["damage"] for needed in kinds[0]["needed"])
    assert (
        expected_reward(written.truth, "medical coding", workflow("review"), kinds[0]["kind"], {"r": 0.0})
        == 10 * 0.5 * whole - 3
    )
    with pytest.raises(InputError, match=r"'Look again at everything' .* medical coding"):
        simulate_workflow(written.truth, "medical coding", workflow("task"), kinds[0]["kind"])
