"""The link scorer: what lies between parts of the work is likelier than what is only alike by its words."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from opus_pipelines.lwm.stitching import FEWEST_EDGES, LinkGraph, link_chances, links_of, masked, pair_features
from opus_pipelines.wkg.graph import Edge, Task, WorkGraph

# Two processes of six tasks each, whose tasks are done in any order, and one task that both of them do.
PROCESSES = [[*"abcdefm"], [*"uvwxyzm"]]
PAIRS = sorted(
    {p for process in PROCESSES for k in range(1, 7) for p in pairwise(process[::k] + process[::-k]) if p[0] != p[1]}
)
TASKS = sorted({task for process in PROCESSES for task in process})
MISSING = ("b", "e")
GRAPH = WorkGraph.of(
    [Task(t, t, industries=("home",), implementations=9) for t in TASKS] + [Task("far", "far", industries=("motor",))],
    [Edge(*pair, 3, 1, 0.5, 0.5, 1.0) for pair in PAIRS if set(pair) != set(MISSING)],
)
VECTORS = {task: np.eye(len(TASKS))[n] for n, task in enumerate(TASKS)}


def test_the_features_of_a_pair() -> None:
    links = LinkGraph.of(WorkGraph.of([Task(t, t) for t in "abc"], []), {"a": np.array([1.0, 0.0])}, ["a", "b", "c"])
    known = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], bool)

    found = pair_features(links, known)

    assert found.shape == (3, 3, 13)
    assert found[0, 2, 1] == pytest.approx(np.log(2))  # one common neighbour
    assert found[0, 2, 5] == pytest.approx(np.log(2))  # one path of two edges
    assert (found[1, 0, 4], found[0, 1, 4]) == (1.0, 0.0)  # the edge back
    assert (found[0, 0, 0], found[1, 1, 0]) == (1.0, 0.0)  # a task without a vector


def test_a_fifth_of_the_edges_is_taken_out_with_pairs_that_have_none() -> None:
    links = LinkGraph.of(GRAPH, VECTORS, TASKS)

    known, asked, labels = masked(links, np.random.default_rng(0))

    out = links.edges & ~known
    assert 0 < out.sum() < 0.5 * links.edges.sum()
    assert labels.sum() == out.sum()
    assert all(out[a, b] if label else not links.edges[a, b] for (a, b), label in zip(asked, labels, strict=True))


def test_a_missing_edge_inside_a_process_is_likelier_than_one_between_processes() -> None:
    chances = link_chances(LinkGraph.of(GRAPH, VECTORS, TASKS))
    place = {task: n for n, task in enumerate(TASKS)}

    inside = max(chances[place["b"], place["e"]], chances[place["e"], place["b"]])
    between = max(chances[place[one], place[other]] for one in "abcdef" for other in "uvwxyz")
    assert inside > between
    assert np.array_equal(chances, link_chances(LinkGraph.of(GRAPH, VECTORS, TASKS)))


def test_too_few_edges_teach_nothing() -> None:
    few = WorkGraph.of([Task(t, t) for t in "ab"], [Edge("a", "b", 1, 1, 0.5, 0.5, 1.0)])

    assert few.transitions(("a", "b")) < FEWEST_EDGES
    assert not link_chances(LinkGraph.of(few, {}, ["a", "b"])).any()


def test_tasks_of_other_industries_are_not_compared_and_the_scorer_is_learnt_once() -> None:
    index = SimpleNamespace(graph=GRAPH, task_vectors=VECTORS, links={})
    similarity = links_of(index, "home")

    assert similarity("a", "far") == 0.0
    assert similarity("a", "c") == similarity("c", "a") > 0.0
    assert links_of(index, "home")("a", "c") == similarity("a", "c")
    assert list(index.links) == ["home"]
    assert links_of(index, "elsewhere")("a", "c") == 0.0
