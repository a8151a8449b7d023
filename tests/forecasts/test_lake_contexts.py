"""Contexts of a snapshot give the counts that the source's own traces give, and those of other sources beside them."""

import numpy as np
import pyarrow as pa
import pytest

from opus_pipelines.forecasts.context_counts import MAX_DEPTH, ContextCounts, LakeContexts
from opus_pipelines.forecasts.traces import Trace, TraceTable, Vocabulary
from opus_pipelines.wkg.estimates.aggregate_columns import VARIANTS
from opus_pipelines.wkg.estimates.sequences import Sequences, context_table

CASES = ["abcb", "abd", "aab", "d"]


def traces(cases: list[str], is_open: bool = False) -> list[Trace]:
    return [
        Trace(f"{n}", list(case), [float(i) for i in range(len(case))], is_open=is_open) for n, case in enumerate(cases)
    ]


def lake(cases: list[str], **more: object) -> LakeContexts:
    rows = [{"tasks": [f"t{a}" for a in case], "implementations": 1} for case in cases]
    contexts = context_table(Sequences(pa.Table.from_pylist(rows, schema=VARIANTS)))
    return LakeContexts(contexts, {a: f"t{a}" for a in "abcdxy"}, **more)  # type: ignore[arg-type]


def counted(table: TraceTable, kinds: int) -> np.ndarray:
    return ContextCounts(table.code, table.position, table.following, kinds, MAX_DEPTH).probabilities(
        table.code, table.position
    )


@pytest.mark.parametrize("others", [[], ["xy", "xax"] * 3])
def test_the_counts_are_those_of_the_traces(others: list[str]) -> None:
    own = traces(CASES * 3)
    vocabulary = Vocabulary.of(own)
    table = vocabulary.table(own)

    found = lake(CASES * 3 + others).counts(vocabulary, table)

    assert found is not None
    if not others:
        assert found.probabilities(table) == pytest.approx(counted(table, 5))
    assert found.probabilities(table).sum(axis=1) == pytest.approx(np.ones(len(table.code)))


def test_open_cases_have_not_ended_and_cases_to_forecast_teach_nothing() -> None:
    own = traces(CASES * 3) + traces(["abc"] * 3, is_open=True)
    vocabulary = Vocabulary.of(own)
    table = vocabulary.table(own)
    forecast = tuple(traces(["abdb"] * 3))

    found = lake(CASES * 3 + ["abc"] * 3 + ["abdb"] * 3, not_learnt=forecast).counts(vocabulary, table)

    assert found is not None
    assert found.probabilities(table)[table.last[-1], 0] < 0.1  # after "abc" no case ended
    assert found.probabilities(table)[table.code == vocabulary.activities.index("d"), 0].min() > 0.8


def test_contexts_of_other_tasks_are_no_part_of_what_a_source_uses() -> None:
    def of(cases: list[str], activities: str = "abcd") -> str:
        return LakeContexts(lake(cases).rows, {a: f"t{a}" for a in activities}).content_hash

    assert of(CASES * 3) == of(CASES * 3 + ["xyxy", "yx"] * 3)
    assert len({of(CASES * 3), of(CASES * 4), of(CASES * 3, "abcde"), of([*CASES * 3, "ad", "ad", "ad"])}) == 4


def test_activities_that_became_one_task_share_its_probability() -> None:
    own = traces(["ab", "aB", "ab"] * 3)
    vocabulary = Vocabulary.of(own)
    rows = context_table(
        Sequences(pa.Table.from_pylist([{"tasks": ["ta", "tb"], "implementations": 9}], schema=VARIANTS))
    )

    found = LakeContexts(rows, {"a": "ta", "b": "tb", "B": "tb"}).counts(vocabulary, vocabulary.table(own))

    assert found is not None
    after = dict(zip(vocabulary.activities, found.probabilities(vocabulary.table(own))[0], strict=True))
    assert after["b"] == pytest.approx(2 * after["B"])


def test_an_activity_that_the_snapshot_does_not_know() -> None:
    own = traces(["az"])

    assert lake(CASES).counts(Vocabulary.of(own), Vocabulary.of(own).table(own)) is None
