"""A night's resolution: what is counted of a source, what is kept, and when the encoder is asked."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.settings import Settings
from opus_pipelines.lake.layout import Lake
from opus_pipelines.wkg.task_matching import names
from opus_pipelines.wkg.task_matching.id_ledger import Entry, ledger_table, read_ledger
from opus_pipelines.wkg.task_matching.names import SourceNames
from opus_pipelines.wkg.task_matching.resolve import NightlyResolution
from tests.rebuilding import resolved_history
from tests.wkg.task_matching.resolved import resolve


class Letters:
    """Vectors from how often each letter stands in a text."""

    name, max_tokens, dimension = "letters", 256, 128
    asked = 0

    def encode(self, texts: list[str], progress: Any = None) -> np.ndarray:
        self.asked += 1
        rows = np.array([[text.count(chr(i)) for i in range(128)] for text in texts], np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_what_a_source_shows_is_counted(lake: Lake, history: Any) -> None:
    steps = [
        history.step("A", description=" do a "),
        history.step("B", instructions=["x", "y"]),
        history.step("C", predecessors=[0, 0, 9]),
    ]
    model = history.case(2, [history.step("A"), history.step("C")], kind="model", weight=5)
    source = history.write(lake, "s", [history.case(1, steps, weight=2), model])
    found = {
        name: [tuple(row.values()) for row in table.to_pylist()]
        for name, table in names.count_evidence(source.folder).items()
    }
    assert found["said"] == [
        ("claims", "A", "description", " do a ", 2),
        ("claims", "B", "instruction", "x", 2),
        ("claims", "B", "instruction", "y", 2),
    ]
    assert sorted(found["follows"], key=repr) == sorted(
        [
            ("claims", None, "A", 7),
            ("claims", "A", "B", 2),
            ("claims", "A", "C", 7),
            ("claims", "B", None, 2),
            ("claims", "C", None, 7),
        ],
        key=repr,
    )
    scopes = {key: {scope for _, k, scope in found["scopes"] if k == key} for key in "ABC"}
    assert scopes["B"] == {""}
    assert scopes["A"] == scopes["C"]
    assert len(scopes["A"]) == 2


def test_of_neighbours_and_values_only_the_most_frequent_are_kept(lake: Lake, history: Any) -> None:
    cases = [
        history.case(i, [history.step("A", description=f"text {i:02}"), history.step(f"N{i:02}")]) for i in range(20)
    ]
    found = names.count_evidence(history.write(lake, "s", cases).folder)
    assert [row["value"] for row in found["said"].to_pylist()] == [f"text {i:02}" for i in range(8)]
    pairs = {(row["before"], row["after"]) for row in found["follows"].to_pylist()}
    assert {("A", f"N{i:02}") for i in range(20)} <= pairs  # each N has A among its few predecessors
    assert names.count_evidence(Path("nowhere"))["follows"].num_rows == 0


def test_the_encoder_is_asked_once_and_only_where_names_can_be_compared(lake: Lake, history: Any) -> None:
    letters = Letters()
    alone = [history.write(lake, "a", [history.case(1, [history.step("Send reminder"), history.step("Pay")])])]
    NightlyResolution(lake, Settings(), alone).resolution(lambda: letters)
    assert letters.asked == 0
    both = [*alone, history.write(lake, "b", [history.case(1, [history.step("send_reminders"), history.step("Pay")])])]
    assert not NightlyResolution(lake, Settings(), both).is_known
    first = NightlyResolution(lake, Settings(), both).resolution(lambda: letters)
    assert letters.asked == 1
    assert {(r["task_key"], r["method"]) for r in first.aliases.to_pylist() if r["source"] == "b"} == {
        ("Pay", "exact"),
        ("send_reminders", "embedding"),
    }
    again = NightlyResolution(lake, Settings(), both[::-1])
    assert again.is_known
    assert again.resolution(lambda: pytest.fail("the encoder was asked again")).aliases == first.aliases
    assert not NightlyResolution(lake, Settings(wkg={"merge_threshold": 0.99}), both).is_known
    assert not NightlyResolution(lake, Settings(encoder={"model": "other"}), both).is_known


def test_pins_change_the_snapshot_and_what_they_name_in_vain_is_said(
    lake: Lake, history: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state = history.of(history.write(lake, "a", [history.case(1, [history.step("Pay"), history.step("Give")])]))
    settings = Settings(paths={"history": tmp_path / "history"})
    before = resolved_history(lake, settings, state)
    (tmp_path / "pins.toml").write_text(
        '[[same]]\ntasks = ["a/Pay", "a/Give"]\n[[apart]]\ntasks = ["a/Pya", "z/x"]\n', "utf-8"
    )
    after = resolved_history(lake, settings, state)
    assert len(after.resolution.titles) == 1
    assert after.snapshot.snapshot_id != before.snapshot.snapshot_id
    assert "did you mean 'a/Pay'?" in caplog.text
    assert "no source 'z' is in history now" in caplog.text


@pytest.mark.long
def test_an_unchanged_night_loads_no_model(lake: Lake, history: Any, tmp_path: Path) -> None:
    keys = {"a": "Send bill", "b": "Send bills"}
    sources = [
        history.write(lake, s, [history.case(1, [history.step(key), history.step("Pay")])]) for s, key in keys.items()
    ]
    NightlyResolution(lake, Settings(), sources).resolution(Letters)
    states = [(s.source, s.content, str(s.folder)) for s in sources]
    code = (
        "import sys; from pathlib import Path; from types import SimpleNamespace as N; from "
        "opus_pipelines.lake.layout import Lake\n"
        "from opus_pipelines.core.settings import Settings\n"
        "from opus_pipelines.wkg.rebuild.steps import resolve\n"
        "from opus_pipelines.wkg.rebuild.records import HistoryRecord\n"
        "same = {'merge': True, 'stated': {}, 'by_activities': False, 'open_cases': ()}\n"
        f"sources = [N(source=s, content=c, folder=Path(f), **same) for s, c, f in {states!r}]\n"
        f"resolve(Settings(), Lake({str(lake.root)!r}), HistoryRecord(tuple(sources), ()))\n"
        "print(sorted({'torch', 'faiss', 'pyspark', 'pandas', 'transformers'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True, cwd=tmp_path)
    assert done.stdout == "[]\n"


def test_the_ledger_is_read_in_every_form_and_refused_where_it_is_broken(tmp_path: Path) -> None:
    path = tmp_path / "ids.parquet"
    assert read_ledger(path) == {}
    old = pa.table({"industry": ["i", None], "identity": ["pay", "a/pay"], "task_id": ["t1", "t2"]})
    pq.write_table(old, path)
    assert read_ledger(path) == {("i", "pay"): Entry("t1"), (None, "a/pay"): Entry("t2")}
    pay = SourceNames("a", True, {("i", "Pay", "Pay"): 1})
    assert set(resolve([pay], read_ledger(path), "normalised").titles) == {"t1"}
    entries = {("i", "pay"): Entry("t1", ("t0",)), ("i", "check"): Entry("t3", (), False)}
    pq.write_table(ledger_table(entries), path)
    assert read_ledger(path) == entries
    for broken in (
        pa.concat_tables([old, old]),
        old.set_column(2, "task_id", pa.array([None, "t2"])),
        old.drop_columns(["identity"]),
    ):
        pq.write_table(broken, path)
        with pytest.raises(LakeError, match="restore it from a backup"):
            read_ledger(path)
    path.write_bytes(b"no Parquet")
    with pytest.raises(LakeError, match="is not an id ledger"):
        read_ledger(path)
