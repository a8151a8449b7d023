import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.cli.current import changes, split_stale, still_failed
from opus_pipelines.core.schemas import INTAKES
from opus_pipelines.core.settings import Paths, Settings
from opus_pipelines.generation.contracts import contracts_of
from opus_pipelines.generation.results.contract import ContractResult, publish_contract, result_table
from opus_pipelines.generation.results.ids import result_id
from opus_pipelines.generation.results.rows import broken_row
from opus_pipelines.intakes.contract_settings import ContractSettings
from opus_pipelines.intakes.intake import ContractFolder
from opus_pipelines.lake.layout import Lake, write_json
from opus_pipelines.reporting.views import write_views_sql


def test_an_intake_that_failed_is_named_again_when_nothing_changed(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    result = ContractResult("A/B", "k", "r1", "w1", "m", {})
    rows = [broken_row("k1", "i-7", "unknown key gian"), {"intake_id": "k2", "status": "generated"}]
    result.tables = {INTAKES.name: result_table(result, INTAKES, rows)}
    publish_contract(lake, result, datetime(2026, 1, 1, tzinfo=UTC))
    contract = ContractFolder("A/B", "k", tmp_path, ContractSettings(), ())
    failed, remedy = still_failed(lake, [contract])
    assert "A/B/k/i-7: unknown key gian" in failed
    assert "`opus generate --retry-failed`" in remedy


def test_without_a_result_nothing_failed(tmp_path: Path) -> None:
    assert still_failed(Lake(tmp_path), [ContractFolder("A", "k", tmp_path, ContractSettings(), ())]) == []


@pytest.fixture
def settings(tmp_path: Path) -> Any:
    lake, intakes = tmp_path / "lake", tmp_path / "intakes"
    write_json(lake / "wkg" / "current.json", {"snapshot": "w1"})
    for place, text in (
        ("acme/retail", 'client = "Acme"'),
        ("acme/broken", 'client = "Acme"\nindustri = "x"'),
        ("bolt/broken", "x = ["),
    ):
        (intakes / place).mkdir(parents=True)
        (intakes / place / "contract.toml").write_text(text)
    return Settings(paths=Paths(lake=lake, history=tmp_path / "history", intakes=intakes))


def test_a_contract_that_cannot_be_read_is_not_passed_over_beside_its_clients_others(settings: Settings) -> None:
    wanted, _ = split_stale(settings, "Acme", None, None)
    assert [(c.client, c.contract, c.problem is None) for c in wanted] == [
        ("Acme", "broken", False),
        ("Acme", "retail", True),
    ]
    wanted, _ = split_stale(settings, "Acme", "retail", None)
    assert [c.contract for c in wanted] == ["retail"]


def test_what_changed_of_every_contract(settings: Settings) -> None:
    found = changes(settings)
    assert found["Acme", "retail"] == ("no result yet",)
    assert found["Acme", "broken"][0].endswith("unknown key industri; did you mean industry?")
    assert (
        changes(
            settings.model_copy(
                update={"paths": settings.paths.model_copy(update={"lake": settings.paths.lake / "none"})}
            )
        )
        is None
    )


# What `opus status` must not load: NumPy and the code of models alone were a quarter of its CPU time.
NOT_FOR_STATUS = (
    "dagster",
    "faiss",
    "mlflow",
    "networkx",
    "numpy",
    "pandas",
    "pyarrow",
    "pyspark",
    "scipy",
    "sklearn",
    "torch",
    "yaml",
    "opus_pipelines.lwm.fine_tuning",
    "opus_pipelines.lwm.history_backend",
    "opus_pipelines.lwm.pointer",
    "opus_pipelines.lwm.step_writing",
    "opus_pipelines.intakes.requirements.intention_encoder",
    "opus_pipelines.wkg",
)


@pytest.mark.long
def test_what_is_up_to_date_is_found_out_without_a_model_or_an_engine(settings: Settings) -> None:
    lake = Lake(settings.paths.lake)
    contract = next(c for c in contracts_of(lake, settings.paths.intakes) if c.contract == "retail")
    result = ContractResult("Acme", "retail", result_id(contract, "w1", settings), "w1", "history-5", {})
    publish_contract(lake, result, datetime(2026, 1, 1, tzinfo=UTC))
    write_views_sql(lake)
    folders = [f"--lake={lake.root}", "status", f"--intakes={settings.paths.intakes}"]
    code = (
        "import json, sys\n"
        "from opus_pipelines.cli.main import main\n"
        f"assert main({folders!r}) == 0\n"
        f"print(json.dumps([m for m in {NOT_FOR_STATUS!r} if m in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert (changes(settings) or {})["Acme", "retail"] == ()
    assert json.loads(done.stdout.splitlines()[-1]) == []
