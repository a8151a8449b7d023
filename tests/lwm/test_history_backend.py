import math
from typing import Any

import numpy as np
import pytest

from opus_pipelines.lwm.history_backend import HistoryBackend, beam, first_occurrences
from opus_pipelines.lwm.interface import LwmRequest, SimilarCase
from opus_pipelines.wkg.graph import Edge, Task, WorkGraph
from opus_pipelines.wkg.subgraphs import SubWKG


def edge(src: str, dst: str, probability: float) -> Any:
    return Edge(src, dst, 10, 1, 0.5, 0.5, probability)


GRAPH = WorkGraph.of(
    [Task(t, t.upper()) for t in "abcd"],
    [edge("a", "b", 0.75), edge("a", "c", 0.25), edge("b", "d", 1.0), edge("c", "d", 1.0)],
)
WHOLE = SubWKG(dict.fromkeys("abcd", "terminal"), tuple(GRAPH.edges.values()))


def case(tasks: str, success: bool | None = True, weight: float = 1.0, number: int = 0) -> Any:
    nothing = (None,) * len(tasks)
    return SimilarCase(
        f"i{number}{tasks}",
        0.9,
        weight,
        success,
        None,
        None,
        "Claim",
        tuple(tasks),
        tuple(tasks),
        nothing,
        nothing,
        nothing,
    )


def generate(cases: list[SimilarCase], subgraphs: tuple[SubWKG, ...] = (WHOLE,)) -> Any:
    return HistoryBackend().generate(LwmRequest(np.ones(2), GRAPH, subgraphs, cases))


def test_a_loop_is_planned_once() -> None:
    assert first_occurrences("abcabd") == ("a", "b", "c", "d")


def test_the_beam_walks_by_probability() -> None:
    walks = beam(GRAPH, WHOLE, [case("abd")])
    assert [w.tasks for w in walks][:2] == [("a", "b", "d"), ("a", "c", "d")]
    end = 1 / 1.5  # one near case ended at d, of one visit, half a visit smoothed
    assert walks[0].log_probability == pytest.approx((math.log(0.75) + math.log(1) + math.log(end)) / 4, abs=1e-6)


def test_a_walk_comes_back_to_a_task_as_often_as_a_similar_case_did() -> None:
    loop = WorkGraph.of(
        [Task(t, t.upper()) for t in "abc"], [edge("a", "b", 0.5), edge("b", "a", 1.0), edge("a", "c", 0.5)]
    )
    inside = SubWKG(dict.fromkeys("abc", "terminal"), tuple(loop.edges.values()))
    walks = beam(loop, inside, [case("abac")])
    assert [w.tasks for w in walks] == [("a", "b", "c"), ("a", "c")]
    there_and_back = math.log(0.5) + math.log(1) + math.log(1)  # b was visited, so that only c is left behind a
    assert walks[0].log_probability == pytest.approx((there_and_back + math.log(1 / 1.5)) / 5, abs=1e-6)
    assert ("a", "b", "c") not in [w.tasks for w in beam(loop, inside, [case("ac")])], "no similar case came back"


def test_the_beam_stays_inside_the_subgraph() -> None:
    part = SubWKG({"a": "terminal", "c": "connector", "d": "terminal"}, ())
    assert [w.tasks for w in beam(GRAPH, part, [case("abd")])] == [("a", "c", "d")]


def test_sequences_that_succeeded_come_before_those_that_failed() -> None:
    cases = [case("ad", success=False, number=n) for n in range(3)] + [case("abd"), case("abcabd", success=None)]
    found = generate(cases)
    assert [s.tasks for s in found if s.source == "history"] == [("a", "b", "d"), ("a", "b", "c", "d"), ("a", "d")]
    assert found[0].score == pytest.approx(1 * (1 + 0.1) / 1.2)


def test_the_beam_adds_a_sequence_that_no_near_case_took() -> None:
    assert [s.tasks for s in generate([case("abd")]) if s.source == "lwm"] == [("a", "c", "d")]


def test_each_sequence_is_written_for_the_subgraph_it_shares_most_with() -> None:
    left, right = SubWKG({"a": "terminal"}, ()), SubWKG({"b": "terminal", "d": "terminal"}, ())
    found = generate([case("abd")], (left, right))
    assert [s.subgraph for s in found if s.source == "history"] == [1]


def test_the_same_request_gives_the_same_sequences() -> None:
    cases = [case("abd"), case("acd", number=1)]
    assert generate(cases) == generate(cases[::-1])
