"""What the scores are measured from, on a small Work Knowledge Graph by hand and on the sample's tasks."""

import itertools
from dataclasses import replace
from typing import Any

import pytest

from opus_pipelines.core.settings import Reward, ScoreRules, Settings
from opus_pipelines.generation.planning.ranking import TaskFactIndex, penalty_scores
from opus_pipelines.generation.results.ids import settings_hash
from opus_pipelines.quality.sample.industries import read_industry
from opus_pipelines.wkg.graph import Edge, Task, WorkGraph
from opus_pipelines.workflow.evaluation.penalty import TaskFacts, penalties
from opus_pipelines.workflow.model import InputNode, Node, OutputNode, TaskNode, Workflow


def edge(src: str, dst: str, transitions: int) -> Edge:
    return Edge(src, dst, transitions, 1, 0.5, 0.5, 1.0)


GRAPH = WorkGraph.of(
    [
        Task("a", "Read invoice", "Read it. Note it.", implementations=10, p_n=6, q_n=2, community="a"),
        Task("b", "Match order", implementations=10, community="a"),
        Task("c", "Pay", implementations=10, community="c"),
    ],
    [edge("a", "b", 6), edge("b", "a", 1), edge("b", "c", 3), edge("b", "b", 50)],
)
READ = TaskNode(
    "n1",
    "a",
    "Read invoice",
    p_basis="observed",
    q=0.25,
    q_basis="observed",
    cost_basis="rate",
    duration_basis="prior",
    inputs=("The Invoice",),
    outputs=("invoice_fields", "Bank account", "Invoice Fields"),
    instructions=("Open it; type it in.",),
)


def chain(*tasks: TaskNode) -> Workflow:
    nodes: list[Node] = [InputNode("in", "In"), *tasks, OutputNode("out", "Out", 1.0)]
    return Workflow.of(nodes, itertools.pairwise(n.id for n in nodes))


def test_facts_of_a_task() -> None:
    assert TaskFactIndex(GRAPH).of(READ) == TaskFacts(
        statements=(
            "Read invoice",
            "the invoice, invoice fields, bank account",
            "Read it.",
            "Note it.",
            "Open it;",
            "type it in.",
        ),
        inputs=("the invoice",),
        outputs=("invoice fields", "bank account"),
        private=frozenset({"bank account"}),
        community="a",
        leaving=0.0,
        outcomes=0.8,
        figures=0.5,
        q=0.25,
    )


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (TaskNode("n", "b", "Match order", q=0.5), {"leaving": 0.3, "q": 0.0, "outcomes": 0.0, "figures": 0.0}),
        (TaskNode("n", "c", "Pay", success_criterion="the money is there"), {"leaving": 1.0, "outcomes": 1.0}),
        (replace(READ, p_basis="estimated"), {"outcomes": 0.4}),
        (TaskNode("n", "new", "Call"), {"leaving": None, "community": None, "outcomes": 0.0, "statements": ("Call",)}),
        (TaskNode("n", "review", "Review", kind="review"), {"is_review": True, "community": None}),
    ],
)
def test_what_is_not_known_is_not_made_up(node: Any, expected: Any) -> None:
    facts = TaskFactIndex(GRAPH).of(node)
    assert {name: getattr(facts, name) for name in expected} == expected


def test_the_same_step_is_looked_up_once() -> None:
    book = TaskFactIndex(GRAPH)
    assert book.of(READ) is book.of(replace(READ))


def test_scores_and_penalty_go_together_and_obey_the_settings() -> None:
    workflow = chain(READ, TaskNode("n2", "c", "Pay"), TaskNode("n3", "review", "Review", kind="review"))
    scores, found = penalty_scores(workflow, TaskFactIndex(GRAPH), Settings())
    assert list(scores) == ["n1", "n2", "n3"]
    assert found == penalties(workflow, scores, Reward())
    weighed = Reward(alpha=1, beta=1, **{"lambda": 1})
    other, alone = penalty_scores(
        workflow, TaskFactIndex(GRAPH), Settings(reward=weighed, scores=ScoreRules(cohesion=0.5))
    )
    assert {s.cohesion for s in other.values()} == {0.5}
    assert (alone.cip, alone.penalty) == (0.25, 0.25)


def sample_graph(*tasks: Task) -> WorkGraph:
    return WorkGraph.of([replace(t, community="desk") for t in tasks], [])


def sample_task(name: str) -> tuple[Task, TaskNode]:
    of = read_industry("coding").industry.tasks[name]
    task = Task(name, name, of.description, inputs=of.inputs, outputs=of.outputs)
    return task, TaskNode(
        name, name, name, inputs=of.inputs, outputs=of.outputs, instructions=(next(iter(of.instructions.values())),)
    )


def as_one(first: str, second: str) -> tuple[Task, TaskNode]:
    (a, left), (b, right) = sample_task(first), sample_task(second)
    title = f"{first} and {second}"
    inputs, outputs = tuple(i for i in {*a.inputs, *b.inputs} if i not in a.outputs), (*a.outputs, *b.outputs)
    task = Task(title, title, f"{a.description} {b.description}", inputs=inputs, outputs=outputs)
    told = (*left.instructions, *right.instructions)
    return task, TaskNode(title, title, title, inputs=inputs, outputs=outputs, instructions=told)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Verify Patient Identity", "Count Data Points"),
        ("Count Data Points", "Check Payer Edits"),
        ("Query Physician", "Release Charge"),
    ],
)
def test_splitting_a_task_that_does_two_things_lowers_cip(first: Any, second: Any) -> None:
    (a, left), (b, right), (c, both) = sample_task(first), sample_task(second), as_one(first, second)
    _, whole = penalty_scores(chain(both), TaskFactIndex(sample_graph(c)), Settings())
    _, split = penalty_scores(chain(left, right), TaskFactIndex(sample_graph(a, b)), Settings())
    assert split.cip < whole.cip


def test_a_review_after_a_task_of_the_sample_lowers_its_observability_score() -> None:
    (a, left), (b, right) = sample_task("Count Data Points"), sample_task("Determine Visit Level")
    knows = TaskFactIndex(sample_graph(a, b))
    review = TaskNode("Count Data Points~review", "review", "Review", kind="review")
    plain, _ = penalty_scores(chain(left, right), knows, Settings())
    reviewed, _ = penalty_scores(chain(left, review, right), knows, Settings())
    assert reviewed[left.id].observability == plain[left.id].observability - 0.25


def test_a_task_of_the_sample_that_emits_the_whole_note_is_less_hygienic_than_one_that_emits_the_points() -> None:
    (a, left), (b, right) = sample_task("Count Data Points"), sample_task("Determine Visit Level")
    knows = TaskFactIndex(sample_graph(a, b))
    whole, _ = penalty_scores(
        chain(replace(left, outputs=("data points", "visit note", "orders")), right), knows, Settings()
    )
    points, _ = penalty_scores(chain(left, right), knows, Settings())
    assert (points[left.id].hygiene, whole[left.id].hygiene) == (0.0, pytest.approx(2 / 3))


def test_a_result_depends_on_how_scores_come_about() -> None:
    other = Settings(scores=ScoreRules(hygiene=0.5))
    assert settings_hash(Settings()) != settings_hash(other)
