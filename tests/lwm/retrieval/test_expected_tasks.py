"""The expected work of a request: its steps in the order of walks along the graph, and what it makes critical."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

from opus_pipelines.intakes.intake import Intake
from opus_pipelines.intakes.requirements.intention import Decoded, Intention, StatedText
from opus_pipelines.intakes.requirements.intention_encoder import IntentionEncoder
from opus_pipelines.language.embedding.texts import unit
from opus_pipelines.lwm.retrieval.expected_tasks import ExpectedWork, Told, expected_tasks, likely_tasks, stretches_of
from opus_pipelines.wkg.graph import Edge, Task, WorkGraph


def graph(*edges: tuple[str, str, float]) -> WorkGraph:
    tasks = sorted({task for edge in edges for task in edge[:2]})
    return WorkGraph.of([Task(t, t) for t in tasks], [Edge(a, b, 10, 1, 0.5, 0.5, p) for a, b, p in edges])


def test_steps_are_in_the_order_of_walks_even_where_some_are_left_out() -> None:
    work = graph(("c", "a", 1.0), ("a", "d", 0.6), ("a", "b", 0.4), ("d", "b", 0.9), ("b", "d", 0.1))
    assert likely_tasks({"a": 0.9, "b": 0.9, "c": 0.9, "d": 0.6}, work) == ("c", "a", "d", "b")
    assert likely_tasks({"a": 0.9, "b": 0.9, "c": 0.2, "d": 0.1}, work) == ("a", "b")


def test_what_few_cases_did_by_chance_is_not_required_and_likely_steps_are() -> None:
    work = ExpectedWork({"a": 0.95, "b": 0.55, "c": 0.05}, ("a", "b"))
    assert work.critical([frozenset({"a", "x"}), frozenset({"c"})]) == [frozenset({"a", "x"}), frozenset({"b"})]


def test_a_demanded_task_that_is_not_likely_joins_the_steps_in_order() -> None:
    work = graph(("a", "c", 1.0), ("c", "b", 1.0))
    assert ExpectedWork({"a": 0.9, "b": 0.9, "c": 0.1}, ("a", "b")).joined([frozenset({"c"})], work) == ("a", "c", "b")
    assert ExpectedWork({"a": 0.9}, ("a",)).joined([frozenset({"a", "b"})], work) == ("a",)


def test_a_graph_without_edges_orders_by_id() -> None:
    assert likely_tasks({"b": 0.9, "a": 0.9}, WorkGraph.of([Task("a", "a"), Task("b", "b")], [])) == ("a", "b")


class KnownVectors:
    """A snapshot of one industry with three tasks on axes of their own, each done in a fifth of the cases."""

    task_vectors: ClassVar = dict(zip("abc", np.eye(4, dtype=np.float32), strict=False))

    def task_rates(self, industry: str, client: str | None) -> dict[str, float]:
        return dict.fromkeys("abc", 0.2)


def asked(input_vector: np.ndarray) -> Intention:
    return Intention("incomplete", input_vector, "", {}, Decoded("", (), (), ()), parts={"input": input_vector[None]})


OF = Intake("i", "letter", None, (), industry="claims")
SHARP = replace(IntentionEncoder.untrained(4), logit=np.array([20.0, 0.0, -10.0], np.float32))


def test_a_stretch_adds_a_task_only_where_it_asks_for_it_surely() -> None:
    axes = np.eye(4, dtype=np.float32)
    half = unit(axes[3] + 0.75 * axes[2])  # its cosine with c is .6: P = 1 / (1 + e^-2) = .88
    told = Told(stretches=np.stack([axes[1], half]))
    before = expected_tasks(SHARP, asked(axes[0]), KnownVectors(), OF)  # type: ignore[arg-type]
    after = expected_tasks(SHARP, asked(axes[0]), KnownVectors(), OF, told)  # type: ignore[arg-type]
    assert before == pytest.approx({"a": 1.0, "b": 0.0, "c": 0.0}, abs=1e-4)
    assert after == pytest.approx({"a": 1.0, "b": 1.0, "c": 0.0}, abs=1e-4)


def test_a_task_that_the_documents_name_is_certain() -> None:
    told = Told(frozenset({"c", "unknown"}))
    found = expected_tasks(SHARP, asked(np.eye(4, dtype=np.float32)[0]), KnownVectors(), OF, told)  # type: ignore[arg-type]
    assert found == pytest.approx({"a": 1.0, "b": 0.0, "c": 1.0}, abs=1e-4)


def test_stretches_are_sentences_and_neighbours_of_one_document() -> None:
    said = [StatedText(text, element, "") for text, element in (("A.", "1"), ("B.", "1"), ("C.", "2"), ("D.", None))]
    intention = replace(asked(np.ones(4, np.float32)), decoded=Decoded("", tuple(said), (), ()))
    assert stretches_of(intention) == ["A.", "B.", "C.", "A. B."]
