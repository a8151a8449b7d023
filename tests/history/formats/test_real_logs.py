"""Real event logs: counts that others have published or that datasets.md binds."""

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.core.schemas import IMPLEMENTATIONS
from opus_pipelines.lake.layout import read_table

DATA = Path(os.environ.get("OPUS_TEST_DATA", Path(__file__).parents[4] / "shared" / "data")) / "event_logs"
pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not DATA.is_dir(), reason=f"no real data in {DATA}; OPUS_TEST_DATA says where it is"),
]


def read(bench: Any, name: str, settings: str = "") -> Any:
    bench.put("s/source.toml", settings)
    (bench.history / "s" / name).write_bytes((DATA / name).read_bytes())
    state = bench.read()
    assert state.failed == []
    return state.files[0], read_table(IMPLEMENTATIONS, state.sources[0].folder, columns=["case_id", "tasks"])


def pairs(table: Any) -> Any:
    """Consecutive task keys, inside each case."""
    tasks = table["tasks"].combine_chunks()
    keys = tasks.values.field("task_key").to_pylist()
    bounds = tasks.offsets.to_pylist()
    return [pair for start, end in pairwise(bounds) for pair in pairwise(keys[start:end])]


def test_bpic2012_has_the_pairs_that_the_rules_give(bench: Any) -> None:
    row, table = read(bench, "bpic2012.xes.gz")
    found = pairs(table)
    assert (len(found), len(set(found))) == (151_422, 101)
    assert (row["records"], row["records_used"], row["records_not_work"], row["implementations"]) == (
        262_200,
        235_882,
        26_318,
        13_087,
    )


@pytest.mark.nightly
def test_bpic_2017_states_start_and_end(bench: Any) -> None:
    row, _ = read(bench, "real_start_end_BPIC_2017_W.csv.gz", 'timezone = "Europe/Amsterdam"')
    assert (row["records"], row["records_used"], row["implementations"], row["task_implementations"]) == (
        240_854,
        240_854,
        30_276,
        240_854,
    )


@pytest.mark.parametrize(
    ("name", "settings", "records", "cases", "rejected"),
    [
        ("helpdesk.xes.gz", "", 21_348, 4_580, 0),
        ("receipt_wabo.xes.gz", "", 8_577, 1_434, 0),
        ("eventdataR_traffic_fines.csv.gz", 'timezone = "Europe/Rome"', 34_724, 10_000, 0),
        ("eventdataR_hospital_billing.csv.gz", 'timezone = "Europe/Amsterdam"', 49_951, 9_999, 1),
    ],
)
def test_other_logs_load(bench: Any, name: str, settings: str, records: int, cases: int, rejected: int) -> None:
    row, _ = read(bench, name, settings)
    assert (row["records"], row["implementations"], row["records_rejected"]) == (records, cases, rejected)


def test_a_log_whose_every_time_lacks_its_zone_is_refused_with_the_cure(bench: Any) -> None:
    name = "eventdataR_traffic_fines.csv.gz"
    bench.put("s/source.toml", "")
    (bench.history / "s" / name).write_bytes((DATA / name).read_bytes())
    state = bench.read()
    row = state.files[0]
    assert (row["status"], row["records"], row["implementations"]) == (
        "rejected",
        0,
        0,
    )  # 34,724 rows: more than HOPELESS
    assert "hardly a row can be used" in row["reason"]
    assert 'timezone = "..." in source.toml says which' in row["reason"]
    assert state.failed == [f"s/{name}: {row['reason']}"]
