"""Spark and DuckDB mine the same rows, to the last byte, from the same queries."""

import random
import zlib
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opus_pipelines.core.settings import Spark
from opus_pipelines.lake.layout import Lake
from opus_pipelines.wkg.estimates.aggregate_columns import AGGREGATES
from opus_pipelines.wkg.mining.engines import Source, memory_limit, mine_aggregates, takes_spark
from opus_pipelines.wkg.mining.implementations import actor_groups
from opus_pipelines.wkg.rebuild.aggregates import SourcePart, mine_missing

START = datetime(2024, 3, 1, tzinfo=UTC)
KEYS = ["A", "B", "C", "Ünïcode", "", "unknown to the aliases"]
NUMBERS = [None, 0.0, -0.0, 0.5, 1.5, 2.5, -2.5, 0.0005, 0.0015, 1e-9, 7.25e3, 1e9, 1e15, 1e300, float("inf")]
NUMBERS += [float("nan"), 9.2e15, -9.3e15, 2**52 + 0.5]
GROUPS = [{}, {"role": "Clerk"}, {"role": " N/A ", "Rolle": "Prüfer"}, {"org:group": "", "role": "none"}]
GROUPS += [{"Rolle": "\t", "other": "x"}, {"role": "Boss", "org:role": "Chief", "ROLE": "-"}, {"org:group": None}]
AUTOMATIC = Spark()
ALWAYS_SPARK = Spark(mine_from_mib=0)
ROWS_TRAVEL = Spark(mine_from_mib=0, shared_files=False)


def no_spark() -> Any:
    raise AssertionError("Spark was started")


def ugly_step(draw: random.Random, steps: int) -> dict[str, Any]:
    moment = lambda: draw.choice([None, START + timedelta(microseconds=draw.randint(-(10**12), 10**12))])
    number = lambda: draw.choice([draw.choice(NUMBERS), draw.uniform(0, 1e7)])
    texts = lambda: draw.choice([None, [], ["x"], ["x", None, "y", "x"], [f"t{draw.randint(0, 99)}"]])
    places = lambda: [draw.choice([None, -1, steps, *range(steps), *range(steps)]) for _ in range(draw.randint(0, 3))]
    return {
        "task_key": draw.choice(KEYS),
        "description": draw.choice([None, "", "said", f"d{draw.randint(0, 200)}"]),
        "instructions": texts(),
        "inputs": texts(),
        "outputs": texts(),
        "actor_kind": draw.choice([None, "human", "model", "code"]),
        "model": draw.choice([None, "m"]),
        "attributes": draw.choice([None, *GROUPS]),
        "started_at": moment(),
        "ended_at": moment(),
        "cost_basis": draw.choice([None, "rate", "observed"]),
        "success": draw.choice([None, True, True, False]),
        "predecessors": draw.choice([None, None, places()]),
        **{name: number() for name in ("duration_ms", "wait_ms", "cost_usd", "cost_compute_usd", "cost_model_usd")},
        **{name: number() for name in ("cost_human_usd", "memory_gb", "threads")},
        **{name: draw.choice([None, 0, draw.randint(0, 2**40), 2**63 - 1]) for name in ("tokens_in", "tokens_out")},
    }


def ugly_cases(history: Any, seed: int, count: int = 60) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    cases = []
    for number in range(count):
        steps = draw.choice([0, 1, 2, 3, 7])
        case = history.case(
            number,
            [ugly_step(draw, steps) for _ in range(steps)],
            case_id=draw.choice([f"c{number}", f"Fall {number} ß"]),
            title=draw.choice([None, "x", "y"]),
            client=draw.choice([None, "acme"]),
            success=draw.choice([None, True, False]),
            expected_outcome=draw.choice([None, True, False]),
            weight=draw.choice([1, 1, 3]),
        )
        cases.append(case)
    return cases


def part_of(lake: Lake, written: SimpleNamespace, keys: list[str], industry: str | None) -> SourcePart:
    aliases = tuple((industry, key, f"t{place % 4}") for place, key in enumerate(keys))
    return SourcePart(written.source, written.content, written.folder, aliases)


@pytest.mark.spark
def test_both_engines_mine_the_same_bytes_of_ugly_cases(history: Any, spark: Any, tmp_path: Path) -> None:
    lakes = [Lake(tmp_path / name) for name in ("spark", "duckdb", "rows-travel")]
    parts = []
    for seed, industry in enumerate(["claims", None, "payables", None]):
        cases = ugly_cases(history, seed, 0 if seed == 3 else 60)
        written = history.write(lakes[0], f"s{seed}", cases, industry=industry)
        parts.append(part_of(lakes[0], written, KEYS[:-1], industry))
    assert mine_missing(lakes[0], parts, lambda: spark, ALWAYS_SPARK) == [part.source for part in parts]
    assert mine_missing(lakes[1], parts, no_spark, AUTOMATIC) == [part.source for part in parts]
    assert mine_missing(lakes[2], parts, lambda: spark, ROWS_TRAVEL) == [part.source for part in parts]
    for part in parts:
        files = sorted(file.name for file in part.place(lakes[0]).glob("*.parquet"))
        assert len(files) == len(AGGREGATES) + 3  # raw variants, cases, activities
        for name in files:
            one, other, third = (part.place(lake) / name for lake in lakes)
            assert one.read_bytes() == other.read_bytes() == third.read_bytes(), (part.source, name)
    assert all(pq.read_table(parts[0].place(lakes[0]) / f"{name}.parquet").num_rows > 9 for name in AGGREGATES)


@pytest.mark.spark
@pytest.mark.model
def test_both_engines_mine_the_same_bytes_of_the_sample(sample_lake: Any, spark: Any, tmp_path: Path) -> None:
    lake = sample_lake
    snapshot = lake.snapshot_folder(lake.current_snapshot())
    aliases = pq.read_table(snapshot / "task_aliases").to_pylist()
    parts = [
        SourcePart(
            source["source"],
            source["content"],
            lake.root / source["folder"],
            tuple((a["industry"], a["task_key"], a["task_id"]) for a in aliases if a["source"] == source["source"]),
        )
        for source in lake.manifest(lake.current_snapshot())["inputs"]["sources"]
    ]
    assert len(parts) == 5
    lakes = [Lake(tmp_path / name) for name in ("spark", "duckdb")]
    for made, session, rules in ((lakes[0], lambda: spark, ALWAYS_SPARK), (lakes[1], no_spark, AUTOMATIC)):
        mine_missing(made, parts, session, rules)
    for part in parts:
        for name in AGGREGATES:
            one, other = ((part.place(made) / f"{name}.parquet").read_bytes() for made in lakes)
            assert one == other, (part.source, name)


class Counted:
    """The edges and outcomes of cases, counted step by step in Python."""

    def __init__(self, cases: list[dict[str, Any]], tasks: dict[str, str]) -> None:
        self.transitions, self.cases, self.folds = Counter[Any](), Counter[Any](), Counter[Any]()
        self.p, self.q = Counter[str](), Counter[str]()
        for case in cases:
            steps, pairs = case["tasks"], Counter[Any]()
            for place, step in enumerate(steps):
                named = step.get("predecessors")
                places = ([place - 1] if place else []) if named is None else named
                before = [steps[n] for n in dict.fromkeys(places) if n is not None and 0 <= n < len(steps)]
                for earlier in before:
                    if earlier["task_key"] in tasks and step["task_key"] in tasks:
                        pairs[tasks[earlier["task_key"]], tasks[step["task_key"]]] += 1
                if step["task_key"] in tasks and step["success"] is not None:
                    failed = any(earlier["success"] is False for earlier in before)
                    (self.q if failed else self.p)[tasks[step["task_key"]]] += case["weight"]
            for pair, times in pairs.items():
                self.transitions[pair] += times * case["weight"]
                self.cases[pair] += case["weight"]
                self.folds[*pair, zlib.crc32(case["case_id"].encode()) % 5] += times * case["weight"]


def mined(part: SourcePart, folder: Path) -> dict[str, pa.Table]:
    return mine_aggregates([Source("s", part.folder, part.aliases)], tuple(AGGREGATES), AUTOMATIC, no_spark, folder)


@pytest.mark.parametrize("seed", range(3))
def test_edges_and_outcomes_are_those_of_counting_step_by_step(history: Any, lake: Lake, seed: int) -> None:
    cases = ugly_cases(history, seed)
    part = part_of(lake, history.write(lake, "s", cases), KEYS[:-1], "claims")
    found, expected = mined(part, lake.root / "spill"), Counted(cases, {key: task for _, key, task in part.aliases})
    edges = {(row["src"], row["dst"]): row for row in found["edges"].to_pylist()}
    assert {pair: row["transitions"] for pair, row in edges.items()} == expected.transitions
    assert {pair: row["implementations"] for pair, row in edges.items()} == expected.cases
    folds, p, q = Counter[Any](), Counter[str](), Counter[str]()
    for row in found["pairs"].to_pylist():
        folds[row["src"], row["dst"], row["fold"]] += row["count"]
    assert folds == expected.folds
    for row in found["ways"].to_pylist():
        p[row["task_id"]] += row["p_n"]
        q[row["task_id"]] += row["q_n"]
    assert (p, q) == (expected.p, expected.q)
    assert sum(expected.q.values()) > 5


def test_a_source_without_cases_has_no_rows(history: Any, lake: Lake) -> None:
    part = part_of(lake, history.write(lake, "s", []), KEYS[:-1], "claims")
    assert {name: table.num_rows for name, table in mined(part, lake.root / "spill").items()} == dict.fromkeys(
        AGGREGATES, 0
    )


@given(st.lists(st.tuples(st.sampled_from([None, "human", "code"]), st.sampled_from([None, *GROUPS]))))
def test_the_group_of_an_actor_is_the_first_that_is_said_of_a_person(steps: list[tuple[Any, Any]]) -> None:
    rows = [{"actor_kind": kind, "attributes": said} for kind, said in steps]
    type_ = pa.struct([("actor_kind", pa.string()), ("attributes", pa.map_(pa.string(), pa.string()))])
    groups = [None, "Clerk", "Prüfer", None, "\t", "Chief", None]
    expected = [None if kind == "code" or not said else groups[GROUPS.index(said)] for kind, said in steps]
    made = pa.array([row | {"attributes": list((row["attributes"] or {}).items())} for row in rows], type_)
    assert actor_groups(made).to_pylist() == expected


@pytest.mark.parametrize(
    ("stated", "limit"), [("2g", "2GiB"), ("512m", "512MiB"), ("1500mb", "1500MiB"), ("1073741824", "1073741824B")]
)
def test_the_memory_of_the_driver_bounds_duckdb_too(stated: str, limit: str) -> None:
    assert memory_limit(stated) == limit


@pytest.mark.parametrize(("mib", "chosen"), [(0, True), (1, False), (512, False)])
def test_spark_mines_from_the_stated_size_on(history: Any, lake: Lake, mib: int, chosen: bool) -> None:
    written = history.write(lake, "s", history.claims())
    assert takes_spark([Source("s", written.folder, ())], Spark(mine_from_mib=mib)) is chosen
