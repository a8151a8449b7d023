"""The verdict on held-out cases: with the task reader or without it, beside similar cases and the champion."""

import numpy as np
import pytest

from opus_pipelines.retrieval.case_memory import IndustryMemory
from opus_pipelines.training.judging import HeldOut, is_improvable
from opus_pipelines.training.promotion import is_held_out
from tests.lwm.pointer.pointer_fixtures import asks_for, memory, plans, request

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
    ("scores", "expected"), [([0.9, 0.9], True), ([0.94, 0.96], False), ([0.2], False), ([], False)]
)
def test_a_reader_is_trained_where_it_may_help(scores: list[float], expected: bool) -> None:
    assert is_improvable(np.array(scores)) is expected
