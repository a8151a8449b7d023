"""What history says of a task behind another one: mined by Spark, published with the edges, read into the graph."""

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opus_pipelines.core.schemas import EDGES
from opus_pipelines.lake.layout import Lake
from opus_pipelines.wkg.graph import PairShift, load, pair_shift
from opus_pipelines.wkg.snapshot import Snapshot

TASK = {"p": 0.5, "q": 0.2, "duration_ms_mean": 60.0, "cost_usd_mean": None}
COUNTS = {"dst_p_n": 99, "dst_q_n": 0, "dst_p_gamma": 0.8, "dst_q_gamma": 0.0}
SAME = COUNTS | {"dst_p": 0.5, "dst_q": 0.2, "dst_duration_ms_mean": 60.0, "dst_cost_usd_mean": None}
UNKNOWN = dict.fromkeys(SAME)


@pytest.mark.parametrize("edge", [SAME, UNKNOWN, SAME | {"dst_q": None}])
def test_an_edge_that_tells_nothing_more_has_no_shift(edge: dict[str, Any]) -> None:
    assert pair_shift(edge, TASK) is None


def test_a_shift_is_in_log_odds_and_factors() -> None:
    found = pair_shift(SAME | {"dst_p": 0.9, "dst_duration_ms_mean": 30.0}, TASK)
    assert found == PairShift(pytest.approx(math.log(9)), 0.0, 0.5, None, pytest.approx(0.8 * 0.03), 0.0)
    certain = pair_shift(SAME | {"dst_p": 1.0}, TASK)
    assert certain is not None
    assert certain.p_log_odds == pytest.approx(math.log(9999))


def order_matters(history: Any) -> list[dict[str, Any]]:
    """Forty cases: `Post` is right behind `Match` and mostly wrong behind `Guess`, and takes twice the time there."""
    step, cases = history.step, []
    for number in range(40):
        first, right = ("Match", True) if number % 2 else ("Guess", number % 8 == 0)
        took = {"duration_ms": 1_000.0 if number % 2 else 2_000.0, "cost_usd": 0.5}
        cases.append(history.case(number, [step(first, True), step("Post", right, **took)], success=right))
    return cases


@pytest.mark.long
def test_the_outcomes_of_a_pair_are_counted_and_stand_in_the_graph(tmp_path: Path, history: Any, rebuild: Any) -> None:
    lake = Lake(tmp_path / "lake")
    cases = order_matters(history)
    rebuild(lake, history.write(lake, "first", cases[:25]), history.write(lake, "second", cases[25:]))
    snapshot = Snapshot.open(lake)
    graph = load(snapshot.folder, 0.1)
    titles = {task.title: name for name, task in graph.tasks.items()}
    pair = lambda src: (titles[src], titles["Post"])
    rows = {(r["src"], r["dst"]): r for r in pq.read_table(snapshot.folder / "edges").to_pylist()}
    told = lambda src: tuple(rows[pair(src)][f"dst_{n}"] for n in ("p_n", "p_successes", "q_n", "duration_ms_observed"))
    assert told("Match") == (20, 20, 0, 1_000.0)
    assert told("Guess") == (20, 5, 0, 2_000.0)
    assert rows[pair("Match")]["dst_cost_usd_observed"] == 0.5
    assert graph.shifts[pair("Match")].p_log_odds > 1 > -0.5 > graph.shifts[pair("Guess")].p_log_odds
    assert graph.shifts[pair("Match")].duration_factor < 0.8


@pytest.mark.long
def test_a_snapshot_without_these_columns_opens_and_shifts_nothing(tmp_path: Path, history: Any, rebuild: Any) -> None:
    lake = Lake(tmp_path / "lake")
    rebuild(lake, history.write(lake, "only", order_matters(history)))
    snapshot = Snapshot.open(lake)
    for file in sorted((snapshot.folder / "edges").glob("*.parquet")):
        table: pa.Table = pq.read_table(file)
        pq.write_table(table.drop_columns([n for n in EDGES.schema.names if n.startswith("dst_")]), file)
    graph = load(snapshot.folder, 0.1)
    assert len(graph.edges) == 2
    assert graph.shifts == {}
