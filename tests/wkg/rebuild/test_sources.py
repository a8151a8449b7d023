"""What holds across sources: sums, names, ids, λ, bytes, retention."""

import math
import random
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opus_pipelines.core.errors import CheckFailed, CheckResult
from opus_pipelines.core.ids import file_hash
from opus_pipelines.core.schemas import (
    ALIASES,
    CASES,
    CONTEXTS,
    EDGES,
    EMBEDDINGS,
    NEEDS,
    TASK_IMPLEMENTATIONS,
    TASKS,
    VARIANTS,
)
from opus_pipelines.core.settings import Settings, Spark
from opus_pipelines.lake.layout import Lake, dataset_folder, read_json, read_table
from opus_pipelines.wkg.checks import check_snapshot
from opus_pipelines.wkg.estimates.figures import BORDERS, NO_INTERVAL
from opus_pipelines.wkg.graph import LambdaRule
from opus_pipelines.wkg.rebuild.aggregates import SourcePart, mine_missing, read_aggregate
from opus_pipelines.wkg.rebuild.records import EMBEDDED_CHECKS, ChecksRecord, Rebuild, StagedSnapshot
from opus_pipelines.wkg.rebuild.steps import publish
from opus_pipelines.wkg.rebuild.tables import write_tables
from opus_pipelines.wkg.task_matching.names import SourceNames, count_names
from opus_pipelines.wkg.task_matching.resolve import Resolution
from tests.rebuilding import make, resolved_history
from tests.wkg.estimates.bins import bin_of
from tests.wkg.task_matching.resolved import resolve

pytestmark = pytest.mark.spark
STRICT = (TASKS, TASK_IMPLEMENTATIONS, EDGES, NEEDS, VARIANTS, CONTEXTS)


def no_spark() -> Any:
    raise AssertionError("Spark was started though nothing had to be mined")


def random_cases(history: Any, seed: int) -> list[dict[str, Any]]:
    draw = random.Random(seed)

    def steps() -> list[dict[str, Any]]:
        return [
            history.step(
                draw.choice("ABCDE"),
                draw.choice([True, True, False, None]),
                duration_ms=draw.choice([None, draw.uniform(0, 1e7)]),
                cost_usd=draw.choice([None, draw.uniform(0, 3)]),
                wait_ms=draw.uniform(0, 1e9),
                actor_kind=draw.choice(["human", "code"]),
            )
            for _ in range(draw.randint(1, 7))
        ]

    return [
        history.case(
            i,
            steps(),
            success=draw.choice([True, False, None]),
            title=draw.choice(["x", "y", None]),
            weight=draw.randint(1, 3),
        )
        for i in range(40)
    ]


def tables_of(lake: Lake, parts: list[SourcePart], resolution: Resolution, folder: Path) -> dict[str, Any]:
    snapshot = StagedSnapshot("w", lake, folder, is_new=True, is_held=False)
    rule = LambdaRule(None, "transition", "", kept=False)
    write_tables(Rebuild(Settings(), lake, lake, (), snapshot, tuple(parts), resolution, rule))
    tables = {dataset.name: read_table(dataset, dataset_folder(folder, dataset)) for dataset in STRICT}
    tables[TASKS.name] = tables[TASKS.name].drop_columns(["sources"])
    return tables


def test_the_sum_over_sources_is_mining_everything_at_once(
    lake: Lake, history: Any, spark: Any, tmp_path: Path
) -> None:
    groups = []
    for seed in range(4):
        cases, draw = random_cases(history, seed), random.Random(seed)
        share = [draw.randrange(3) for _ in cases]
        split = [[c for c, s in zip(cases, share, strict=True) if s == k] for k in range(3)]
        whole = history.write(lake, f"whole{seed}", cases)
        groups.append(([whole], [history.write(lake, f"part{seed}{k}", part) for k, part in enumerate(split) if part]))
    sources = [source for group in groups for side in group for source in side]
    resolution = resolve([SourceNames(s.source, True, counts(s.folder)) for s in sources], {}, "normalised")
    parts = {
        s.source: SourcePart(s.source, s.content, s.folder, tuple(resolution.of_source(s.source))) for s in sources
    }
    mine_missing(lake, parts.values(), lambda: spark)
    for place_, (whole, split) in enumerate(groups):
        one, many = (
            tables_of(lake, [parts[s.source] for s in side], resolution, tmp_path / f"{place_}{len(side)}")
            for side in (whole, split)
        )
        assert one == many
    assert mine_missing(lake, parts.values(), no_spark) == []


@pytest.mark.parametrize("mine_from_mib", [0, 512], ids=["spark", "duckdb"])
def test_both_engines_bin_integers_as_python_does(lake: Lake, history: Any, spark: Any, mine_from_mib: int) -> None:
    near_borders = [
        b + d for b in BORDERS[::7] for d in (-1, 0, 1) if 0 <= b + d < 2**52
    ]  # microseconds that a float of ms holds
    steps = [history.step("A", duration_ms=value / 1000, wait_ms=5.0, tokens_in=5) for value in [0, 1, *near_borders]]
    source = history.write(lake, "a", [history.case(1, steps, weight=3)])
    resolution = resolve([SourceNames("a", True, counts(source.folder))], {}, "normalised")
    part = SourcePart("a", source.content, source.folder, tuple(resolution.of_source("a")))
    mine_missing(lake, [part], lambda: spark, Spark(mine_from_mib=mine_from_mib))
    found = read_aggregate(lake, [part], "histograms").to_pylist()
    durations = Counter(bin_of(value) for value in [0, 1, *near_borders])
    assert {r["bin"]: r["count"] for r in found if r["measure"] == "duration"} == {
        b: 3 * n for b, n in durations.items()
    }
    assert all(
        bin_of(r["value_min"]) == bin_of(r["value_max"]) == r["bin"] for r in found if r["measure"] == "duration"
    )
    totals = {
        r["measure"]: (r["bin"], r["count"], int(r["sum"])) for r in found if r["measure"] in ("wait", "tokens_in")
    }
    assert totals == {
        "wait": (bin_of(5_000), 3 * len(steps), 15_000 * len(steps)),
        "tokens_in": (None, 3 * len(steps), 15 * len(steps)),  # nobody asks for its quantiles
    }


def counts(folder: Path) -> dict[tuple[str | None, str, str], int]:
    return {(r["industry"], r["task_key"], r["title"]): r["count"] for r in count_names(folder).to_pylist()}


def test_two_lakes_of_the_same_inputs_hold_the_same_bytes(
    tmp_path: Path, history: Any, rebuild: Callable[..., Any]
) -> None:
    hashes = []
    for name in ("one", "two"):
        lake = Lake(tmp_path / name)
        sources = [history.write(lake, s, random_cases(history, i)) for i, s in enumerate(["a", "b"])]
        rebuild(lake, *(sources if name == "one" else reversed(sources)))
        folder = lake.snapshot_folder(lake.current_snapshot() or "")
        kept = [lake.kept / "ids.parquet", lake.kept / "lambda.json"]
        files = sorted(f for f in folder.rglob("*") if f.is_file() and f.name not in ("manifest.json", "_files.json"))
        hashes.append({str(f.relative_to(lake.root)): file_hash(f) for f in [*files, *kept]})
    assert len(hashes[0]) == 17  # thirteen datasets, the index's two files, two kept files
    assert hashes[0] == hashes[1]


def test_nights_ids_lambda_and_retention(lake: Lake, history: Any, rebuild: Callable[..., Any], spark: Any) -> None:
    first = history.write(lake, "first", history.claims())
    night_1 = rebuild(lake, first)
    ids = titles(lake)
    lambda_ = read_json(lake.kept / "lambda.json")["transition"]["lambda"]

    again = resolved_history(lake, Settings(), history.of(first)).snapshot
    assert (again.snapshot_id, again.is_new, again.is_current) == (night_1.snapshot_id, False, True)

    other = history.write(
        lake, "other", [history.case(1, [history.step("register"), history.step("PayOut")], title="claim")]
    )
    night_2 = rebuild(lake, first, other, now=history.now + timedelta(days=40))
    assert night_2.mined == ["other"]
    assert titles(lake) == ids | {"PayOut": titles(lake)["PayOut"]}
    aliases = read_table(ALIASES, dataset_folder(lake.snapshot_folder(night_2.snapshot_id), ALIASES)).to_pylist()
    assert {(a["source"], a["task_key"]): a["method"] for a in aliases if a["task_id"] == ids["Register"]} == {
        ("first", "Register"): "exact",
        ("other", "register"): "normalised",
    }
    assert lake.manifest(night_2.snapshot_id)["lambda"] == lambda_
    assert resolved_history(lake, Settings(), history.of(first, other), reset_lambda=True).snapshot.is_new

    # A night without the second source is the first snapshot again: pointed to, nothing mined.
    back = resolved_history(lake, Settings(), history.of(first))
    assert (back.snapshot.is_new, back.snapshot.is_current) == (False, False)
    make(back, no_spark, history.encoder)
    assert publish(back, history.now + timedelta(days=40)) == night_1.snapshot_id == lake.current_snapshot()

    # Everything is older than the settings allow, but for what is current.
    late = {"retention": {"snapshots": 1, "days": 0, "grace_minutes": 0}}
    night = resolved_history(lake, Settings(**late, wkg={"lambda": 0.5}), history.of(first))
    make(night, no_spark, history.encoder)
    latest = publish(night, history.now + timedelta(days=9_999))
    assert [f.name for f in sorted((lake.root / "wkg").glob("w*"))] == [latest]
    assert [f.name for f in (lake.root / "aggregates").iterdir()] == ["source_key=first"]
    assert [f.name for f in (lake.root / "history" / "implementations").iterdir()] == ["source_key=first"]
    assert lake.manifest(latest)["lambda"] == 0.5


def titles(lake: Lake) -> dict[str, str]:
    tasks = read_table(TASKS, dataset_folder(lake.snapshot_folder(lake.current_snapshot() or ""), TASKS))
    return dict(zip(tasks["title"].to_pylist(), tasks["task_id"].to_pylist(), strict=True))


def test_a_failed_check_publishes_nothing(lake: Lake, history: Any, spark: Any) -> None:
    night = resolved_history(lake, Settings(), history.of(history.write(lake, "a", history.claims())), history.encoder)
    make(night, lambda: spark, history.encoder)
    folder = night.snapshot.folder
    assert all(check.passed for check in check_snapshot(folder))
    corrupted = [
        (
            EDGES,
            "every task exists",
            lambda t: t.set_column(t.schema.get_field_index("dst"), "dst", [["t0000"] * t.num_rows]),
        ),
        (TASKS, "probabilities lie in [0, 1]", lambda t: with_column(t, "p", 1.5)),
        (TASKS, "probabilities lie in [0, 1]", lambda t: with_column(t, "p_lower", math.nan)),
        (TASKS, "figures are finite", lambda t: with_column(t, "wait_ms_mean", math.nan)),
        (TASKS, "intervals hold their figures", lambda t: with_column(t, "q_upper", 0.0)),
        (TASK_IMPLEMENTATIONS, "missing figures have a reason", lambda t: with_column(t, "p_upper", None)),
        (NEEDS, "missing figures have a reason", lambda t: with_column(t, "adjusted_lift_reason", None)),
        (CASES, "task implementations add up to the cases'", lambda t: t.slice(1)),
        (TASK_IMPLEMENTATIONS, "schema", lambda t: t.drop_columns(["basis"])),
        (EMBEDDINGS, "every task has a vector", lambda t: t.slice(1)),
    ]
    for dataset, name, spoil in corrupted:
        file = dataset_folder(folder, dataset) / "part-00000.parquet"
        good = file.read_bytes()
        pq.write_table(spoil(pq.ParquetFile(file).read()), file)
        assert name in {check.name for check in check_snapshot(folder) if not check.passed and check.blocking}
        file.write_bytes(good)
    # A figure that could not be told is NULL with its reason: a warning, and the snapshot is published.
    for dataset in (TASKS, TASK_IMPLEMENTATIONS):
        file = dataset_folder(folder, dataset) / "part-00000.parquet"
        table = with_column(pq.ParquetFile(file).read(), "p_reason", NO_INTERVAL)
        pq.write_table(with_column(with_column(table, "p_lower", None), "p_upper", None), file)
    failed = [check for check in check_snapshot(folder) if not check.passed]
    assert {(check.name, check.dataset, check.blocking) for check in failed} == {
        ("every figure could be told", "wkg/tasks", False),
        ("every figure could be told", "wkg/task_implementations", False),
    }
    assert failed[0].detail == "1 wrong: p in 3 rows"
    night.save(ChecksRecord((CheckResult("range", False, "p is 2", TASKS.name),)), EMBEDDED_CHECKS)
    with pytest.raises(CheckFailed, match=r"nothing was published: range \(wkg/tasks\): p is 2"):
        publish(night, history.now)
    assert lake.current_snapshot() is None
    night.save(ChecksRecord(tuple(failed)), EMBEDDED_CHECKS)
    assert publish(night, history.now) == lake.current_snapshot()


def with_column(table: Any, name: str, value: Any) -> Any:
    """The table with one value in all rows of a column."""
    place_ = table.schema.get_field_index(name)
    return table.set_column(
        place_, table.schema.field(place_), pa.array([value] * table.num_rows, table.schema.field(place_).type)
    )
