"""A German office's export (semicolons, cp1252, three forms of dates, "9,17 €") goes from `opus init` to a rank 1
untouched.
"""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from opus_pipelines.cli.main import main
from opus_pipelines.core.schemas import OPTIMIZED, WORKFLOW_TASKS
from opus_pipelines.core.settings import Settings
from opus_pipelines.history.ingestion.ingest import read_history
from opus_pipelines.intakes.intake import discover
from opus_pipelines.lake.layout import Lake
from opus_pipelines.language.embedding.cache import CachedEncoder
from opus_pipelines.language.embedding.encoder import TextEncoder
from tests import ugly
from tests.generation.contracts import ContractGenerator
from tests.rebuilding import build_snapshot, no_spark

NOW = datetime(2026, 1, 31, tzinfo=UTC)


@pytest.mark.model
def test_the_proposal_untouched_leads_to_a_plausible_plan(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    encoder: TextEncoder,
) -> None:
    monkeypatch.chdir(tmp_path)
    ugly.write(tmp_path / "export.csv", ugly.synthetic())
    assert main(["init", "export.csv", "--to", "history/travel", "--industry", "travel expenses", "--yes"]) == 0
    assert main(["check", "history/travel"]) == 0
    shown = capsys.readouterr().out
    assert "444 records: 444 used, 0 no work, 0 rejected" in shown
    assert "activities       9: 6 steps, 2 events, 1 outcome" in shown
    folder = tmp_path / "intakes" / "Acme" / "travel"
    for place, text in (
        ("input", "Reimburse the trip of Ms Weber to Hamburg, 412 EUR."),
        ("output", "The expenses are paid."),
    ):
        (folder / "example" / place).mkdir(parents=True)
        (folder / "example" / place / "text.md").write_text(text, "utf-8")
    (folder / "contract.toml").write_text('industry = "travel expenses"\n', "utf-8")
    lake = Lake(tmp_path / "lake")
    state = read_history(lake, tmp_path / "history", NOW)
    assert state.failed == []
    cached = CachedEncoder(encoder, lake.kept / "embeddings")
    build_snapshot(no_spark, lake, Settings(), state, lambda: cached, NOW)
    (contract,) = discover(tmp_path / "intakes")
    with ContractGenerator(lake, Settings(), cached, tmp_path / "generated") as generate:
        tables = generate(contract).tables

    (first,) = [row for row in tables[OPTIMIZED.name].to_pylist() if row["rank"] == 1]
    steps = [
        t
        for t in tables[WORKFLOW_TASKS.name].to_pylist()
        if t["workflow_id"] == first["workflow_id"] and t["kind"] == "task"
    ]
    assert [t["title"] for t in sorted(steps, key=lambda t: t["position"])] == [
        "Antrag eingereicht",
        "Antrag geprüft",
        "Antrag genehmigt",
        "Erklärung eingereicht",
        "Erklärung genehmigt",
        "Zahlung veranlasst",
    ]
    assert {t["actor_group"] for t in steps} == {"MITARBEITER", "VERWALTUNG"}
    assert (first["feasible"], first["verdict"], first["success_probability"]) == (True, "undecided", None)
    assert (first["cost_usd"], first["cost_unknown_steps"]) == (None, 6)  # no rate says what a euro is worth
