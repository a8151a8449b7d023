"""The verdict on held-out cases: with the task reader or without it, beside similar cases and the champion."""

from collections.abc import Sequence
from typing import cast

import numpy as np
import pytest

from opus_pipelines.lwm.fine_tuning.task_reader import TaskReader
from opus_pipelines.lwm.next_step import Written
from opus_pipelines.lwm.retrieval.case_memory import IndustryMemory
from opus_pipelines.lwm.training.judging import Figures, HeldOut, Judged, is_held_out, is_improvable
from tests.lwm.pointer.pointer_fixtures import TOOLS, asks_for, memory, plans, request

CASES = plans(40, 3)


@pytest.fixture(scope="module")
def held() -> HeldOut:
    texts = tuple(asks_for(case) for case in CASES)
    industry = IndustryMemory(memory(CASES), tuple(f"i{n}" for n in range(40)), texts, True)
    return HeldOut.of(industry, [request(text) for text in texts])


def test_equal_requests_are_held_out_together(held: HeldOut) -> None:
    asked = {one.text for one, _ in held.asked}
    assert asked
    assert asked == {asks_for(case) for case in CASES if is_held_out(asks_for(case))}
    assert asked.isdisjoint(held.part.texts)
    assert [one.text for one in held.known] == list(held.part.texts)
    assert len(held.asked) + len(held.known) == 40


def test_the_reader_is_used_where_the_mean_is_better_with_it(held: HeldOut) -> None:
    count = len(held.asked)
    alone, with_reader = np.full(count, 0.5), np.full(count, 0.5)
    with_reader[0] = 0.9
    better = held.judged(alone, with_reader, None)
    assert better.reads
    assert better.scores[:, 0].tolist() == with_reader.tolist()
    assert better.figures.model == pytest.approx(0.5 + 0.4 / count, abs=1e-6)
    assert better.scores[:, 2].tolist() == better.scores[:, 1].tolist(), "no champion: similar cases serve"

    worse = held.judged(with_reader, alone, np.full(count, 0.25))
    assert not worse.reads
    assert worse.scores[:, 0].tolist() == with_reader.tolist()
    assert worse.scores[:, 2].tolist() == [0.25] * count
    assert not held.judged(alone, alone, None).reads, "equal is not better"
    assert not held.judged(alone, None, None).reads


@pytest.mark.parametrize(
    ("mean", "low", "expected"), [(0.9, 0.01, True), (0.96, 0.01, False), (0.9, 0.0, False), (0.0, 0.0, False)]
)
def test_a_reader_is_trained_where_the_network_serves_and_may_improve(mean: float, low: float, expected: bool) -> None:
    figures = Figures(30, 10, mean, 0.5, low, 0.1)
    assert is_improvable(Judged(figures, np.zeros((10, 3)), ("a",) * 10)) is expected


class ReadsTwo:
    """A task reader that reads the first two tools in every request."""

    places = dict.fromkeys(TOOLS, 0)

    def log_odds(self, texts: Sequence[str], tasks: Sequence[str], _: np.ndarray) -> np.ndarray:
        return np.array([[6.0 if task in TOOLS[:2] else -6.0 for task in tasks] for _ in texts])


def test_a_reader_weighs_the_sequences_that_the_network_wrote(held: HeldOut) -> None:
    gold = [{TOOLS[task] for task in trace} for _, trace in held.asked]
    written = [[Written((2, 3), 0.9), Written((0, 1), 0.1)] for _ in gold]
    of = lambda tools: [2 * len(own & set(tools)) / (len(own) + 2) for own in gold]
    assert held.f1_of(written).tolist() == pytest.approx(of(TOOLS[2:4]))
    assert held.f1_of(written, cast(TaskReader, ReadsTwo())).tolist() == pytest.approx(of(TOOLS[:2]))
    assert of(TOOLS[:2]) != of(TOOLS[2:4])
