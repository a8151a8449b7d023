from typing import Any

import numpy as np
import pytest

from opus_pipelines.lwm.history_backend import HistoryBackend, first_occurrences
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


def test_sequences_that_succeeded_come_before_those_that_failed() -> None:
    cases = [case("ad", success=False, number=n) for n in range(3)] + [case("abd"), case("abcabd", success=None)]
    found = generate(cases)
    assert [s.tasks for s in found if s.source == "history"] == [("a", "b", "d"), ("a", "b", "c", "d"), ("a", "d")]
    assert found[0].score == pytest.approx(1 * (1 + 0.1) / 1.2)


def test_each_sequence_is_written_for_the_subgraph_it_shares_most_with() -> None:
    left, right = SubWKG({"a": "terminal"}, ()), SubWKG({"b": "terminal", "d": "terminal"}, ())
    found = generate([case("abd")], (left, right))
    assert [s.subgraph for s in found if s.source == "history"] == [1]


def test_the_same_request_gives_the_same_sequences() -> None:
    cases = [case("abd"), case("acd", number=1)]
    assert generate(cases) == generate(cases[::-1])
