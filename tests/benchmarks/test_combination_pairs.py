"""The pairs of task groups, the folds that leave their cases out, and the scores of a plan."""

import gzip
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import combination_pairs as pairs  # type: ignore[import-not-found]
from combinations import scored, table  # type: ignore[import-not-found]

LOG = """<log><trace><string key="concept:name" value="a1"/>
<event><string key="concept:name" value="Check"/><string key="lifecycle:transition" value="SCHEDULE"/></event>
<event><string key="concept:name" value="Sent"/><string key="lifecycle:transition" value="COMPLETE"/></event>
<event><string key="concept:name" value="Check"/><string key="lifecycle:transition" value="START"/></event>
<event><string key="concept:name" value="Check"/><string key="lifecycle:transition" value="COMPLETE"/></event>
</trace></log>"""


def cases(*counted: tuple[str, int]) -> list[pairs.Case]:
    sequences = [steps for steps, n in counted for _ in range(n)]
    return [pairs.Case(f"c{n:03}", "log", "log", tuple(steps), None) for n, steps in enumerate(sequences)]


# w and x always occur together, d alone; 5 of 65 cases have both groups
HISTORY = cases(("rwxp", 20), ("rdp", 20), ("rp", 20), ("rwdxp", 5))


def test_a_pair_is_two_groups_that_some_cases_combine() -> None:
    (pair,) = pairs.pairs_of(HISTORY)
    assert {frozenset("wx"), frozenset("d")} == set(pair.groups)
    assert sum(pair.combined_by(case) for case in HISTORY) == 5


@pytest.mark.parametrize(
    "history",
    [
        cases(("rwxp", 20), ("rdp", 20), ("rp", 20), ("rwdxp", 4)),  # too few cases combine them
        cases(("rwxp", 20), ("rp", 20), ("rwdxp", 8)),  # one group never occurs alone
        cases(("rwxp", 10), ("rdp", 10), ("rwdxp", 20)),  # to combine them is the usual work
    ],
)
def test_other_groups_are_no_pair(history: list[pairs.Case]) -> None:
    assert pairs.pairs_of(history) == []


def test_a_log_is_read_by_the_start_of_its_work(tmp_path: Path) -> None:
    (tmp_path / "log.xes.gz").write_bytes(gzip.compress(LOG.encode()))
    (case,) = pairs.log_cases(tmp_path / "log.xes.gz")
    assert case.steps == ("Sent", "Check")


def test_a_plan_is_scored_by_tasks_and_by_ordered_pairs() -> None:
    assert scored(tuple("abc"), [tuple("abc")]) == {"set": 1.0, "order": 1.0, "kept": 1.0}
    assert scored(tuple("ba"), [tuple("abc")]) == {"set": 0.8, "order": 0.0, "kept": 0.0}
    assert scored((), [tuple("ab")]) == {"set": 0.0, "order": 0.0, "kept": 0.0}


def test_the_table_compares_pair_by_pair() -> None:
    rows = [
        {"pair": str(n), "source": "log", "system": system, "set": value, "order": value, "kept": value}
        for system, value in (("system", 0.75), ("other", 0.5))
        for n in range(3)
    ]
    assert "+0.250 [+0.250, +0.250]" in table(rows, "system")
