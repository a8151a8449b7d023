"""Reviews: where they stand, who may do them, and that nothing is invented."""

import pytest

from opus_pipelines.core.settings import Cost, Priors, Reward
from opus_pipelines.generation.search.reviews import history_reviewers, is_review, review_by, with_places, with_reviews
from opus_pipelines.wkg.graph import ExecutionMode, Task
from opus_pipelines.workflow.evaluation.reward import evaluate
from opus_pipelines.workflow.model import InputNode, OutputNode, TaskNode, Workflow, review_id, validate

REVIEWER = TaskNode("review", "review", "Review", p=0.99, q=0.8, cost_usd=1.0, actor_kind="human", kind="review")
FORK = Workflow.of(
    [
        InputNode("input", "In"),
        TaskNode("a", "a", "A"),
        TaskNode("b", "b", "B"),
        TaskNode("c", "c", "C"),
        OutputNode("output", "Out", 5.0),
    ],
    [("input", "a"), ("a", "b"), ("a", "c"), ("b", "output"), ("c", "output")],
)


def test_a_review_stands_between_its_task_and_all_that_waits_for_it() -> None:
    made = with_reviews(FORK, {"a": review_by(REVIEWER, "a", "A")})
    assert made.edges == (
        ("a", "a_review"),
        ("a_review", "b"),
        ("a_review", "c"),
        ("b", "output"),
        ("c", "output"),
        ("input", "a"),
    )
    assert validate(made) == []
    review = made.by_id[review_id("a")]
    assert isinstance(review, TaskNode)
    assert (review.kind, review.title, review.task_id, review.p, review.q) == (
        "review",
        "Review: A",
        "review",
        0.99,
        0.8,
    )
    assert with_reviews(FORK, {}) == FORK


def test_every_task_has_a_place_whose_first_option_changes_nothing() -> None:
    whole, options = with_places(FORK, [REVIEWER])
    assert set(options) == {"a_review", "b_review", "c_review"}
    assert [node.actor_kind for node in options["a_review"]] == [None, "human"]
    worth, plain = (evaluate(workflow, Cost(), Reward()) for workflow in (whole, FORK))
    assert (worth.reward_usd, worth.duration_ms) == (plain.reward_usd, plain.duration_ms)
    assert with_places(FORK, []) == (FORK, {})


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Review Settlement", True),
        ("audit_code_level", True),
        ("Proofread the letter", True),
        ("Preview page", False),
        ("Approve", False),
    ],
)
def test_reviews_of_history_are_known_by_their_titles(title: str, expected: bool) -> None:
    assert is_review(Task("t", title)) is expected


def way(kind: str, model: str | None, n: int, p: float, q: float, cost: float, corrections: int = 20) -> ExecutionMode:
    return ExecutionMode(
        kind,
        model,
        implementations=n,
        p=p,
        p_n=n,
        q=q,
        q_n=corrections,
        basis="observed",
        duration_ms_mean=60_000.0,
        cost_usd_mean=cost,
    )


HISTORY = [
    Task(
        "t1",
        "Review claim",
        execution_modes=(way("human", None, 30, 0.9, 0.5, 10.0), way("model", "m", 5, 0.8, 0.4, 1.0)),
    ),
    Task(
        "t2",
        "Audit code",
        execution_modes=(way("human", None, 10, 0.98, 0.7, 2.0), way("code", None, 50, 1.0, 0.1, 0.0, corrections=3)),
    ),
    Task("t3", "Pay", execution_modes=(way("human", None, 99, 0.5, 0.5, 5.0),)),
]


def test_history_reviews_are_averaged_by_who_does_them() -> None:
    human, model = history_reviewers(HISTORY, None, None, Cost(), Priors())
    assert (human.actor_kind, human.p, human.q, human.cost_usd) == (
        "human",
        pytest.approx((30 * 0.9 + 10 * 0.98) / 40),
        pytest.approx((30 * 0.5 + 10 * 0.7) / 40),
        pytest.approx(8.0),
    )
    assert human.bases == ("estimated", "estimated", "estimated", "estimated")
    assert (model.actor_kind, model.model, model.q) == ("model", "m", 0.4)


def test_a_way_whose_corrections_were_hardly_counted_is_no_reviewer() -> None:
    assert history_reviewers(HISTORY, "code", None, Cost(), Priors()) == []
    assert [r.model for r in history_reviewers(HISTORY, None, "m", Cost(), Priors())] == ["m"]


def test_the_parts_of_a_reviews_cost_add_up() -> None:
    (model,) = history_reviewers(HISTORY, "model", None, Cost(), Priors())
    parts = (model.cost_compute_usd, model.cost_model_usd, model.cost_human_usd)
    assert sum(part or 0.0 for part in parts) == pytest.approx(model.cost_usd)
