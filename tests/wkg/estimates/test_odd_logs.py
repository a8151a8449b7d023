"""Every published figure is finite, in range and inside its interval, whatever a log looks like; NULL has
its reason.
"""

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from opus_pipelines.core.settings import Priors
from opus_pipelines.core.statistics import Estimate
from opus_pipelines.wkg.estimates.aggregate_columns import HISTOGRAMS, VARIANTS
from opus_pipelines.wkg.estimates.critical_tasks import critical_task_rows, lacking
from opus_pipelines.wkg.estimates.figures import (
    NO_INTERVAL,
    NOT_COMPUTED,
    difference,
    figures,
    probability,
    standard_deviations,
)
from opus_pipelines.wkg.estimates.sequences import Sequences
from opus_pipelines.wkg.estimates.success import SuccessModel, from_cases
from tests.campaigns import examples
from tests.wkg.estimates.bins import bin_of

Counted = tuple[str, int, int, int]  # tasks, a letter each; cases; of those with known outcome; of those successes
PRIORS = st.sampled_from([Priors(), Priors(p=1, q=0), Priors(p=0, q=1, strength=0.1)])
RUNS = st.one_of(st.integers(1, 5), st.sampled_from([50, 10**4, 10**9, 10**12]))


@st.composite
def logs(draw: st.DrawFn) -> list[Counted]:
    """A log by its distinct sequences. Outcomes are constant, unknown, equal to one activity (present, absent, last)
    or anything.
    """
    letters = "ABCDEF"[: draw(st.integers(1, 6))]
    sequences = draw(st.lists(st.text(letters, min_size=1, max_size=9), min_size=1, max_size=12, unique=True))
    rule = draw(
        st.sampled_from(["unknown", "success", "failure", "present", "absent", "last", "any", "any, some unknown"])
    )
    activity = draw(st.sampled_from(letters))
    rows = []
    for tasks in sequences:
        n = draw(RUNS)
        known = 0 if rule == "unknown" else draw(st.integers(0, n)) if "some" in rule else n
        present = activity in tasks
        rules = {
            "success": True,
            "failure": False,
            "present": present,
            "absent": not present,
            "last": tasks[-1] == activity,
        }
        rows.append((tasks, n, known, known * rules[rule] if rule in rules else draw(st.integers(0, known))))
    return rows


def variants(rows: list[Counted], industries: list[str | None] | None = None) -> Sequences:
    of = industries or [None]
    return Sequences(
        pa.Table.from_pylist(
            [
                {
                    "industry": of[i % len(of)],
                    "client": "c" if i % 3 else None,
                    "kind_of_case": "k" if i % 2 else None,
                    "predecessors": None,
                    "tasks": list(tasks),
                    "implementations": n,
                    "success_known": known,
                    "successes": successes,
                }
                for i, (tasks, n, known, successes) in enumerate(rows)
            ],
            schema=VARIANTS,
        )
    )


def steps_of(sequences: Sequences, judged: dict[str, tuple[int, int, int, int]] | None = None) -> list[dict[str, Any]]:
    """Rows of tasks with the counts of judged steps: p_n, p_successes, q_n, q_successes; none unless `judged`."""
    industry = {
        task: sequences.industry[row]
        for row, tasks in enumerate(sequences.rows["tasks"].to_pylist())
        for task in sorted(set(tasks))
    }
    names = ("p_n", "p_successes", "q_n", "q_successes")
    zero = (0, 0, 0, 0)
    counts = {task: dict(zip(names, (judged or {}).get(task, zero), strict=True)) for task in sequences.tasks[0]}
    return [{"task_id": task, "industry": industry[task], **of} for task, of in counts.items()]


def published(sequences: Sequences, tasks: list[dict[str, Any]], priors: Priors) -> list[dict[str, Any]]:
    """The probability columns of every task and of its one way, and the rows of needs."""
    needed = critical_task_rows(sequences)
    ways = [row | {"actor_kind": None, "model": None, "actor_group": None} for row in tasks]
    model = SuccessModel(priors, tasks, ways, from_cases(sequences, lacking(sequences, needed), tasks, priors))
    rows = [probability("p", p) | probability("q", q) for p, q in map(model.of_task, tasks)]
    of_ways = [model.of_mode(way, model.of_task(task)) for way, task in zip(ways, tasks, strict=True)]
    return [*rows, *(probability("p", p) | probability("q", q) for p, q in of_ways), *needed]


def assert_sound(row: dict[str, Any], figure: str, ends: tuple[str, str], least: float) -> None:
    value, lower, upper = row[figure], row[ends[0]], row[ends[1]]
    if value is None:
        assert (lower, upper) == (None, None)
        assert row[f"{figure}_reason"]
        return
    assert math.isfinite(value)
    assert least <= lower <= value <= upper <= 1
    assert row[f"{figure}_reason"] is None


@pytest.mark.long
@settings(max_examples=examples(40), deadline=None)
@given(logs(), st.sampled_from([[None], ["i"], ["i", None, "j"]]), PRIORS)
@example([("A", 1, 1, 1)], [None], Priors())
@example([("A", 1, 1, 0), ("A" * 9, 1, 1, 1)], [None], Priors())
@example(
    [("AB", 9_000, 9_000, 9_000), ("ARAB", 900, 900, 0), ("AR", 500, 500, 0), ("ABRB", 90, 90, 0)], ["i"], Priors()
)
def test_every_probability_and_every_lift_is_told(
    rows: list[Counted], industries: list[str | None], priors: Priors
) -> None:
    sequences = variants(rows, industries)
    for row in published(sequences, steps_of(sequences), priors):
        for figure in ("p", "q"):
            if figure in row:
                assert row[figure] is not None, row
                assert_sound(row, figure, (f"{figure}_lower", f"{figure}_upper"), 0)
        if "lift" in row:
            assert_sound(row, "lift", ("lift_lower", "lift_upper"), -1)
            assert_sound(row, "adjusted_lift", ("adjusted_lower", "adjusted_upper"), -1)
            assert (row["lift"] is None) == (row["cases_without"] == 0)


@pytest.mark.long
@settings(max_examples=examples(30), deadline=None)
@given(logs(), st.data())
def test_judged_steps_beside_outcomes_of_cases(rows: list[Counted], data: st.DataObject) -> None:
    sequences = variants(rows)
    counts = st.one_of(st.just(0), RUNS)
    judged = {}
    for task in data.draw(st.sets(st.sampled_from(sequences.tasks[0]))):
        p_n, q_n = data.draw(counts), data.draw(counts)
        judged[task] = (
            p_n,
            data.draw(st.sampled_from([0, p_n // 2, p_n])),
            q_n,
            data.draw(st.sampled_from([0, q_n // 2, q_n])),
        )
    for row in published(sequences, steps_of(sequences, judged), Priors()):
        for figure in {"p", "q"} & set(row):
            assert row[figure] is not None
            assert_sound(row, figure, (f"{figure}_lower", f"{figure}_upper"), 0)


MICROSECONDS = st.one_of(st.integers(0, 3), st.sampled_from([10**6, 2**40, 2**62, 10**17]))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(MICROSECONDS, RUNS), min_size=1, max_size=12))
def test_times_and_costs_of_any_size(values: list[tuple[int, int]]) -> None:
    bins: dict[int, list[tuple[int, int]]] = {}
    for value, n in values:
        bins.setdefault(bin_of(value), []).append((value, n))
    table = pa.Table.from_pylist(
        [
            {
                "task_id": "t",
                "actor_kind": None,
                "model": None,
                "actor_group": None,
                "measure": "duration",
                "bin": bin_,
                "count": sum(n for _, n in of),
                "sum": Decimal(sum(value * n for value, n in of)),
                "value_min": min(of)[0],
                "value_max": max(of)[0],
            }
            for bin_, of in bins.items()
        ],
        schema=HISTOGRAMS,
    )
    found = figures(table, ("task_id",))["t",]["duration"]
    assert found.p50 is not None
    assert found.p90 is not None
    assert min(v for v, _ in values) <= found.p50 <= found.p90 <= max(v for v, _ in values)
    assert found.n == sum(n for _, n in values)
    spread = standard_deviations(table, ("task_id",))
    assert found.n == 1 or 0 <= spread["t",]["duration"] < math.inf


@pytest.mark.parametrize(
    ("estimate", "expected"),
    [
        (Estimate(0.5, 0.25, 0.75, "estimated", 3), (0.5, 0.25, 0.75, "estimated", None)),
        (Estimate(1.0 + 1e-12, 0.5, 1.0, "observed", 3), (1.0, 0.5, 1.0, "observed", None)),
        (Estimate(0.5, math.nan, 0.75, "estimated", 3), (0.5, None, None, "estimated", NO_INTERVAL)),
        (Estimate(0.5, 0.6, 0.75, "estimated", 3), (0.5, None, None, "estimated", NO_INTERVAL)),
        (Estimate(math.nan, 0.25, 0.75, "estimated", 3), (None, None, None, None, NOT_COMPUTED)),
        (Estimate(1.5, 0.25, 0.75, "estimated", 3), (None, None, None, None, NOT_COMPUTED)),
    ],
)
def test_what_cannot_be_told_is_null_with_its_reason(estimate: Estimate, expected: tuple[Any, ...]) -> None:
    told = probability("p", estimate)
    assert tuple(told[name] for name in ("p", "p_lower", "p_upper", "p_basis", "p_reason")) == expected
    assert told["p_n"] == 3


def test_a_difference_with_nothing_to_compare_says_so() -> None:
    names = ("lift", "lift_lower", "lift_upper")
    assert difference(names, None, "all have it") == {
        "lift": None,
        "lift_lower": None,
        "lift_upper": None,
        "lift_reason": "all have it",
    }
    assert difference(names, (0.1, 0.0, float(np.inf)), "-")["lift_reason"] == NO_INTERVAL
    assert difference(names, (0.1, -0.2, 0.3), "-") == {
        "lift": 0.1,
        "lift_lower": -0.2,
        "lift_upper": 0.3,
        "lift_reason": None,
    }


@pytest.mark.long
def test_more_tasks_than_the_dense_system_takes() -> None:
    """600 tasks: the intervals come from the sequences that tell most. A rejection stands in a tenth of the cases and
    decides them.
    """
    random = np.random.default_rng(5)
    names = [chr(0x100 + i) for i in range(600)]
    rows: dict[str, tuple[str, int, int, int]] = {}
    for _ in range(400):
        tasks = [names[i] for i in random.integers(0, 599, 6)]
        rejected = bool(random.random() < 0.1)
        sequence = "".join([*tasks, names[599]] if rejected else tasks)
        n = int(random.integers(1, 50))
        rows[sequence] = (sequence, n, n, 0 if rejected else n)
    sequences = variants(list(rows.values()), ["i"])
    for row in published(sequences, steps_of(sequences), Priors()):
        for figure in {"p", "q"} & set(row):
            assert row[figure] is not None
            assert_sound(row, figure, (f"{figure}_lower", f"{figure}_upper"), 0)
