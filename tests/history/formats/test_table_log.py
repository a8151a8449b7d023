"""Tables whose events do not fit into memory: the same cases, rejects and counts as from memory."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opus_pipelines.core.schemas import IMPLEMENTATIONS
from opus_pipelines.history.formats.table_log import TableLog
from opus_pipelines.history.records.assembler import Assembler, LogFile, OtherFiles, Outlets
from opus_pipelines.history.records.formats import LOG_FORMATS
from opus_pipelines.history.records.raw import Reject
from opus_pipelines.history.records.source_settings import SourceSettings
from tests.campaigns import examples

COLUMNS = (
    "case_id",
    "activity",
    "timestamp",
    "lifecycle:transition",
    "case_cost",
    "case:amount",
    "industry",
    "verdict",
)
SETTINGS = SourceSettings.model_validate(
    {
        "industry": {"column": "industry"},
        "success": {"column": "verdict", "equals": ["true"]},
        "columns": {"case_cost": "case_cost"},
    }
)
ROWS = st.lists(
    st.tuples(
        st.sampled_from("abcdef"),
        st.sampled_from(["A", "B", ""]),
        st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "soon", ""]),
        st.sampled_from(["", "", "start", "complete", "schedule"]),
        st.sampled_from(["", "3", "4.5", "dear"]),
        st.sampled_from(["", "5", "6"]),
        st.sampled_from(["", "retail", "banking"]),
        st.sampled_from(["", "true", "false"]),
    ),
    max_size=40,
)


def assembled(
    rows: list[tuple[str, ...]], in_memory: int, folder: Path
) -> tuple[list[dict[str, Any]], list[Reject], Any]:
    batches: list[pa.RecordBatch] = []
    rejects: list[Reject] = []
    outlets = Outlets(batches.append, rejects.append, folder=folder)
    sink = Assembler(
        LogFile("s", "log.csv", LOG_FORMATS.get("csv")), SETTINGS, OtherFiles(held=frozenset("f")), outlets
    )
    table = TableLog(list(COLUMNS), SETTINGS, sink, in_memory)
    for position, row in enumerate(rows, start=1):
        table.row(position, dict(zip(COLUMNS, row, strict=True)))
    table.finish()
    sink.finish()
    cases = pa.Table.from_batches(batches, IMPLEMENTATIONS.schema).to_pylist()
    held = [(part.case, part.cause) for part in sink.parts]
    return (
        sorted(cases, key=lambda case: case["case_id"]),
        sorted(rejects, key=lambda reject: reject.position),
        (sink.counts, held, sink.case_ids, sink.quarantined_ids),
    )


@pytest.mark.long
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS, in_memory=st.sampled_from([0, 3_000, 20_000]))
def test_cases_are_the_same_however_little_fits_into_memory(
    rows: list[tuple[str, ...]], in_memory: int, tmp_path: Path
) -> None:
    assert assembled(rows, in_memory, tmp_path) == assembled(rows, 1 << 28, tmp_path)


@pytest.mark.parametrize("in_memory", [0, 1 << 28])
def test_the_first_value_of_a_case_counts_and_the_last_verdict(in_memory: int, tmp_path: Path) -> None:
    rows = [
        ("a", "A", "2026-01-01T00:00:00Z", "", "3", "", "retail", "true"),
        ("b", "A", "2026-01-01T00:00:00Z", "", "", "7", "", ""),
        ("a", "B", "2026-01-02T00:00:00Z", "", "dear", "5", "banking", "false"),
    ]
    cases, rejects, _ = assembled(rows, in_memory, tmp_path / "wait")
    assert [(c["case_id"], c["industry"], c["success"], c["cost_usd"], c["attributes"]) for c in cases] == [
        ("a", "retail", False, 3.0, [("amount", "5")]),
        ("b", None, None, None, [("amount", "7")]),
    ]
    assert rejects == []
    assert (tmp_path / "wait").exists() == (in_memory == 0)
    assert not list(tmp_path.glob("wait/*"))  # the files have no name


class Failing(TableLog):
    """A reader with a mistake that one row in the log meets."""

    def _case_id(self, raw: dict[str, Any]) -> str:
        return str({"a": "1", "b": "2"}[raw["case_id"]])


def test_a_mistake_of_the_reader_costs_the_record_at_which_it_fails() -> None:
    rejects: list[Reject] = []
    log = LogFile("s", "a.csv", LOG_FORMATS.get("csv"))
    sink = Assembler(log, SourceSettings(), OtherFiles(), Outlets(lambda batch: None, rejects.append))
    table = Failing(["case_id", "activity"], SourceSettings(), sink)
    for position, case in enumerate(("a", "x", "b"), start=1):
        table.row(position, {"case_id": case, "activity": "A"})
    table.finish()
    assert [(r.position, r.code, "KeyError" in r.reason) for r in rejects] == [(2, "reader_failed", True)]
    assert (sink.counts.records, sink.counts.rejected) == (3, 1)
