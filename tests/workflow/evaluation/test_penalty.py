"""EVAL (8)-(10): the printed figures of spec A6, bounds, the complement, refusals."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opus_pipelines.core.errors import WorkflowError
from opus_pipelines.core.settings import Reward
from opus_pipelines.workflow.evaluation.penalty import Scores, cip, joint_penalty, penalties, sip
from opus_pipelines.workflow.model import InputNode, OutputNode, TaskNode, Workflow

share = st.floats(0, 1)
free = st.builds(Scores, share, share, share, share)


def workflow(n: int) -> Workflow:
    tasks = [TaskNode(f"t{i}", "t", "T") for i in range(n)]
    ids = ["in", *(t.id for t in tasks), "out"]
    return Workflow.of([InputNode("in", "In"), *tasks, OutputNode("out", "Out", 1.0)], itertools.pairwise(ids))


@pytest.mark.parametrize(
    ("first", "second", "printed"),
    [
        (0.2525, 0.2500, 0.2513),
        (0.2520, 0.2573, 0.2547),
        (0.2570, 0.2848, 0.2713),
    ],
    ids=["W1", "W2", "W3"],
)
def test_the_printed_penalties_follow_from_the_printed_cip_and_sip(first: float, second: float, printed: float) -> None:
    assert (
        joint_penalty(first - 5e-5, second - 5e-5) - 5e-5
        <= printed
        <= joint_penalty(first + 5e-5, second + 5e-5) + 5e-5
    )
    assert round(joint_penalty(first, second) + 1e-9, 4) == printed


@pytest.mark.parametrize(
    ("coupling", "observability", "first", "second", "joint"),
    [
        ([0.45] * 9, [0.5] * 9, 0.2525, 0.2500, 0.2513),
        ([0.50, 0.60, 0.5, 0.5, 0.5], [0.52, 0.69, 0.5, 0.5, 0.5], 0.2520, 0.2573, 0.2547),
        ([0.66, 0.54, 0.52, 0.52], [0.86, 0.58, 0.54, 0.54], 0.2570, 0.2848, 0.2713),
    ],
    ids=["W1", "W2", "W3"],
)
def test_the_fitted_scores_give_table_1(
    coupling: list[float], observability: list[float], first: float, second: float, joint: float
) -> None:
    scores = {
        f"t{i}": Scores.of(coupling=c, observability=o)
        for i, (c, o) in enumerate(zip(coupling, observability, strict=True))
    }
    found = penalties(workflow(len(scores)), scores, Reward())
    assert (found.cip, found.sip, found.penalty) == pytest.approx((first, second, joint), abs=5e-5 + 1e-9)


@given(st.lists(free, max_size=8), share, share, share)
def test_bounds_of_free_scores(scores: list[Any], alpha: float, beta: float, lambda_: float) -> None:
    weights = Reward(alpha=alpha, beta=beta, **{"lambda": lambda_})
    found = penalties(workflow(len(scores)), {f"t{i}": s for i, s in enumerate(scores)}, weights)
    assert 0 <= found.cip <= 1
    assert 0 <= found.sip <= 1
    assert min(found.cip, found.sip) - 1e-12 <= found.penalty <= max(found.cip, found.sip) + 1e-12
    assert found.penalty <= 1


@given(st.lists(st.tuples(share, share), min_size=1, max_size=8), share)
def test_under_the_complement(pairs: list[Any], weight: float) -> None:
    scores = [Scores.of(cohesion=1 - coupling, hygiene=h) for coupling, h in pairs]
    square = sum((s.coupling - weight) ** 2 for s in scores) / len(scores)
    assert cip(scores, weight) == pytest.approx(weight * (1 - weight) + square)
    square = sum((s.hygiene - weight) ** 2 for s in scores) / len(scores)
    assert sip(scores, weight) == pytest.approx(weight * (1 - weight) + square)


@given(free, share, st.sampled_from(["cohesion", "coupling", "observability", "hygiene"]))
def test_a_worse_score_never_lowers_the_penalty(scores: Scores, worse: float, name: str) -> None:
    better = min(getattr(scores, name), worse)
    lower, higher = ({"t0": Scores(**{**vars(scores), name: x})} for x in (better, max(getattr(scores, name), worse)))
    assert penalties(workflow(1), lower, Reward()).penalty <= penalties(workflow(1), higher, Reward()).penalty + 1e-12


def test_each_weight_weighs_its_own_pair() -> None:
    scores = {"t0": Scores(1.0, 0.0, 0.0, 1.0), "t1": Scores(0.5, 0.0, 0.0, 0.5)}
    found = penalties(workflow(2), scores, Reward(alpha=0.8, beta=0.2, **{"lambda": 0.25}))
    assert (found.cip, found.sip) == pytest.approx((0.8 * 0.625, 0.8 * 0.625))
    scores["t1"] = Scores(0.5, 0.0, 0.0, 0.0)
    found = penalties(workflow(2), scores, Reward(alpha=0.8, beta=0.2, **{"lambda": 0.25}))
    assert (found.cip, found.sip) == pytest.approx((0.5, 0.4))
    assert found.penalty == pytest.approx((0.25 * 0.25 + 0.75 * 0.16) ** 0.5)


def test_best_and_worst() -> None:
    for extreme in (0.0, 1.0):
        found = penalties(workflow(2), {f"t{i}": Scores(*[extreme] * 4) for i in range(2)}, Reward())
        assert (found.cip, found.sip, found.penalty) == (extreme,) * 3


def test_an_absent_score_is_the_others_complement_and_a_given_one_stays() -> None:
    assert Scores.of(coupling=0.25, hygiene=0.75) == Scores(0.75, 0.25, 0.25, 0.75)
    assert Scores.of(cohesion=0.25, coupling=0.25, observability=0.0) == Scores(0.25, 0.25, 0.0, 1.0)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Scores(0.5, 1.5, 0.5, float("nan")), "coupling is 1.5, hygiene is nan"),
        (lambda: Scores.of(cohesion=0.5), "neither observability nor hygiene is known"),
        (lambda: penalties(workflow(3), {"t1": Scores(0, 0, 0, 0)}, Reward()), "no scores for 't0', 't2'"),
    ],
)
def test_refusals(make: Callable[..., Any], complaint: str) -> None:
    with pytest.raises(WorkflowError, match=complaint):
        make()
