"""Whatever table is given, the proposal is one that can be read, or an InputError that says what to do."""

import csv
import io
import tempfile
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.settings import parse
from opus_pipelines.history.ingestion.onboarding.propose import propose_settings
from opus_pipelines.history.ingestion.onboarding.report import Stated
from opus_pipelines.history.records.source_settings import SourceSettings

NAMES = st.sampled_from(
    [
        "Fall",
        "Aktivität",
        "Datum",
        "start",
        "end",
        "resource",
        "Kosten",
        "cost",
        "status",
        "success",
        "x",
        "",
        "concept:name",
        "(case)_a",
        'a "quoted" name',
        "lifecycle:transition",
        "currency",
        "activity",
        "timestamp",
    ]
)
CELLS = st.one_of(
    st.sampled_from(
        [
            "",
            "a",
            "b",
            "2024-01-02T03:04:05Z",
            "03/04/2024",
            "1,5 €",
            "true",
            "no",
            "SYSTEM",
            "\x00",
            "x" * 99,
            "\u202e",
        ]
    ),
    st.text(max_size=8),
)
PLAIN = tuple(map(st.sampled_from, (["1", "2", "3"], ["Check", "Pay", "Rejected"], ["2024-01-02 03:04", "5.6.2024"])))


@st.composite
def tables(draw: Any) -> bytes:
    """A table of any columns; mostly with a case, an activity and a time, so that a proposal is made."""
    header = draw(st.lists(NAMES, min_size=1, max_size=5))
    cells = [CELLS] * len(header)
    if draw(st.integers(0, 3)):
        header, cells = ["case_id", "activity", "timestamp", *header], [*PLAIN, *cells]
    rows = draw(st.lists(st.tuples(*cells), max_size=12))
    text = io.StringIO()
    csv.writer(text, delimiter=draw(st.sampled_from(",;"))).writerows([header, *rows])
    return text.getvalue().encode(draw(st.sampled_from(["utf-8", "cp1252"])), "replace")


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@example(b"case_id,activity,timestamp,Fall,concept:name\n" + b"1,Check,2024-01-02 03:04,,\n" * 2)
@given(tables())
def test_any_table_is_proposed_or_refused_in_words(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "export.csv"
        file.write_bytes(content)
        with suppress(InputError), propose_settings("s", [file], Stated()) as proposal:
            settled = parse(SourceSettings, tomllib.loads(proposal.toml), "source.toml")
            assert proposal.findings.cases > 0
            assert settled.columns.case
            assert settled.columns.activity
