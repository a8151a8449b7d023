"""What changed since a result was made, one cause at a time and several together."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.core.schemas import INTAKES, RUNS
from opus_pipelines.core.settings import Reward, Settings
from opus_pipelines.core.versions import ALGORITHM_VERSIONS, versions_of
from opus_pipelines.generation.contracts import contracts_of
from opus_pipelines.generation.results.contract import ContractResult, publish_contract, result_table
from opus_pipelines.generation.results.ids import MadeFrom, id_of, result_id, settings_hash
from opus_pipelines.generation.results.staleness import changes_since, is_current
from opus_pipelines.intakes.decisions.record import Decision, add
from opus_pipelines.intakes.intake import discover
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lwm.history_backend import HistoryBackend

NOW = datetime(2026, 1, 31, tzinfo=UTC)
SETTINGS = Settings()
OTHER = Settings(reward=Reward(default_gain_usd=7.0))


@pytest.fixture
def document(tmp_path: Path) -> Any:
    path = tmp_path / "intakes" / "Acme" / "Retail" / "i-7" / "input" / "order.txt"
    path.parent.mkdir(parents=True)
    path.write_text("Ten chairs.")
    return path


@pytest.fixture
def folder(tmp_path: Path, document: Path) -> Any:
    return lambda: discover(tmp_path / "intakes")[0]


@pytest.fixture
def lake(tmp_path: Path) -> Any:
    return Lake(tmp_path / "lake")


@pytest.fixture(params=[1, 2])
def published(request: pytest.FixtureRequest, lake: Lake, folder: Callable[..., Any]) -> Any:
    contract = folder()
    name = result_id(contract, "w1", SETTINGS, attempt=request.param)
    result = ContractResult(
        contract.client, contract.contract, name, "w1", HistoryBackend().version, {}, attempt=request.param
    )
    run = {
        "run_id": "x",
        "generated_at": NOW,
        "settings_hash": settings_hash(SETTINGS),
        "code_version": versions_of("result"),
    }
    result.tables = {d.name: result_table(result, d, rows) for d, rows in ((INTAKES, []), (RUNS, [run]))}
    publish_contract(lake, result, NOW)
    return lake


def test_nothing_changed(published: Lake, folder: Callable[..., Any]) -> None:
    assert changes_since(published, folder(), "w1", SETTINGS) == ()


@pytest.mark.parametrize(
    ("snapshot", "settings", "text", "expected"),
    [
        ("w2", SETTINGS, "Ten chairs.", ("snapshot",)),
        ("w1", OTHER, "Ten chairs.", ("settings",)),
        ("w1", SETTINGS, "Eleven chairs.", ("files",)),
        ("w2", OTHER, "Eleven chairs.", ("snapshot", "settings", "files")),
    ],
)
def test_each_cause_is_named(
    published: Lake,
    folder: Callable[..., Any],
    document: Path,
    snapshot: str,
    settings: Settings,
    text: str,
    expected: tuple[str, ...],
) -> None:
    document.write_text(text)
    assert changes_since(published, folder(), snapshot, settings) == expected


def decide(lake: Lake, number: int) -> None:
    made = Decision("Acme", "Retail", "reject", "k", "i-7", "n", f"f{number}", "r", 1, (), NOW)
    with lake.lock():
        assert add(lake, made).number == number


def test_a_decision_makes_the_result_stale_and_is_named(
    published: Lake, folder: Callable[..., Any], document: Path
) -> None:
    decide(published, 1)
    (now,) = contracts_of(published, document.parents[4])
    assert not is_current(published, now, "w1", SETTINGS)
    assert changes_since(published, now, "w1", SETTINGS) == ("decisions",)
    assert now.fingerprint() != folder().fingerprint()
    document.write_text("Eleven chairs.")
    (now,) = contracts_of(published, document.parents[4])
    assert changes_since(published, now, "w1", SETTINGS) == (
        "files",
    )  # with other files, nothing tells which decisions it knew


def test_a_result_made_with_some_of_the_decisions_tells_that_others_came(lake: Lake, document: Path) -> None:
    decide(lake, 1)
    (contract,) = contracts_of(lake, document.parents[4])
    result = ContractResult("Acme", "Retail", result_id(contract, "w1", SETTINGS), "w1", HistoryBackend().version, {})
    run = {
        "run_id": "x",
        "generated_at": NOW,
        "settings_hash": settings_hash(SETTINGS),
        "code_version": versions_of("result"),
    }
    result.tables = {d.name: result_table(result, d, rows) for d, rows in ((INTAKES, []), (RUNS, [run]))}
    publish_contract(lake, result, NOW)
    assert is_current(lake, contract, "w1", SETTINGS)
    decide(lake, 2)
    (contract,) = contracts_of(lake, document.parents[4])
    assert changes_since(lake, contract, "w1", SETTINGS) == ("decisions",)


def test_a_raised_algorithm_version_is_named(lake: Lake, folder: Callable[..., Any]) -> None:
    now = ALGORITHM_VERSIONS["planning"]
    code = versions_of("result").replace(f"planning={now}", f"planning={now - 1}")
    publish_made_by(lake, folder(), HistoryBackend().version, code)
    assert changes_since(lake, folder(), "w1", SETTINGS) == (f"code: planning {now - 1} → {now}",)


def publish_made_by(lake: Lake, contract: Any, model: str, code: str) -> None:
    """Publishes an empty result that another model or other algorithm versions made."""
    name = id_of(contract, MadeFrom("w1", model, settings_hash(SETTINGS), code))
    result = ContractResult(contract.client, contract.contract, name, "w1", model, {})
    run = {"run_id": "x", "generated_at": NOW, "settings_hash": settings_hash(SETTINGS), "code_version": code}
    result.tables = {d.name: result_table(result, d, rows) for d, rows in ((INTAKES, []), (RUNS, [run]))}
    publish_contract(lake, result, NOW)


def test_a_result_from_before_algorithm_versions_is_read_and_stale_and_says_why(
    lake: Lake, folder: Callable[..., Any]
) -> None:
    contract, code = folder(), "0123456789abcdef0123456789abcdef"
    publish_made_by(lake, contract, "history-01234567", code)
    assert not is_current(lake, contract, "w1", SETTINGS)
    assert changes_since(lake, contract, "w1", SETTINGS) == (
        "model",
        "code: made before algorithm versions were declared",
    )


def test_another_model_is_named(lake: Lake, folder: Callable[..., Any]) -> None:
    publish_made_by(lake, folder(), "history-0", versions_of("result"))
    assert changes_since(lake, folder(), "w1", SETTINGS) == ("model",)


def test_no_result_and_no_way_to_one(lake: Lake, folder: Callable[..., Any], tmp_path: Path) -> None:
    assert changes_since(lake, folder(), "w1", SETTINGS) == ("no result yet",)
    (tmp_path / "intakes" / "Acme" / "Retail" / "contract.toml").write_text("industri = 1\n")
    (said,) = changes_since(lake, folder(), "w1", SETTINGS)
    assert "contract.toml: unknown key industri;" in said
