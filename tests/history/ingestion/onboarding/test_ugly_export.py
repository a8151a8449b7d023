"""A German export with everything that went wrong once is read as proposed."""

import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest

from opus_pipelines.cli.main import main
from opus_pipelines.core.schemas import IMPLEMENTATIONS
from opus_pipelines.history.ingestion.ingest import HistoryOptions, read_history
from opus_pipelines.lake.layout import Lake, read_table
from tests import ugly


def test_files_of_several_encodings_are_each_detected(tmp_path: Path) -> None:
    first = ugly.write(tmp_path / "a.csv", ugly.synthetic(9))
    second = tmp_path / "b.csv"
    second.write_bytes(first.read_bytes().decode("cp1252").replace("R-1", "Q-1").encode("utf-8"))
    assert main(["init", str(first), str(second), "--to", str(tmp_path / "h" / "s"), "--yes"]) == 0
    settings = tomllib.loads((tmp_path / "h" / "s" / "source.toml").read_text("utf-8"))
    assert "encoding" not in settings
    assert settings["delimiter"] == ";"
    state = read_history(Lake(tmp_path / "lake"), tmp_path / "h", datetime(2026, 1, 1, tzinfo=UTC))
    assert [(row["records_rejected"], row["implementations"]) for row in state.files] == [(0, 9), (0, 9)]


def test_the_ugly_export(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    export = ugly.write(tmp_path / "export.csv", ugly.synthetic())
    source = tmp_path / "history" / "travel"
    assert main(["init", str(export), "--to", str(source), "--yes"]) == 0
    shown = capsys.readouterr().out
    assert "timezone         assumed" in shown
    assert "no rate for EUR" in shown
    settings = tomllib.loads((source / "source.toml").read_text("utf-8"))
    assert settings == {
        "encoding": "cp1252",
        "delimiter": ";",
        "decimal": ",",
        "timezone": "Europe/Berlin",
        "columns": {
            "case": "Vorgangsnummer",
            "activity": "Aktivität",
            "time": "Zeitpunkt",
            "actor": "Bearbeiter",
            "actor_group": "Rolle",
            "cost": "Kosten",
            "attributes": ["Betrag"],
        },
        "activities": {"event": ["Beginn der Reise", "Ende der Reise"], "outcome": ["Antrag abgelehnt"]},
    }
    state = read_history(
        Lake(tmp_path / "lake"),
        tmp_path / "history",
        datetime(2026, 1, 1, tzinfo=UTC),
        HistoryOptions(usd_per_unit={"EUR": 2.0}),
    )
    assert (state.failed, state.files[0]["records_used"], state.files[0]["records_rejected"]) == ([], 444, 0)
    rows = {row["case_id"]: row for row in read_table(IMPLEMENTATIONS, state.sources[0].folder).to_pylist()}
    starts = {case: rows[case]["tasks"][0] for case in ("R-1000", "R-1001", "R-1002")}
    assert {case: task["started_at"] for case, task in starts.items()} == {
        "R-1000": datetime(2023, 1, 2, 7, 15, 30, tzinfo=UTC),
        "R-1001": datetime(2023, 1, 5, 7, 15, 30, tzinfo=UTC),
        "R-1002": datetime(2023, 1, 8, 7, 15, tzinfo=UTC),
    }
    assert (starts["R-1000"]["actor"], starts["R-1000"]["cost_usd"]) == ("Jürgen Groß", 18.34)
