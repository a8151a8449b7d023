"""What is current, what failed, and which attempt is next."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.core.schemas import INTAKES, RUNS
from opus_pipelines.core.settings import Reward, Settings
from opus_pipelines.generation.results.contract import ContractResult, publish_contract, result_table
from opus_pipelines.generation.results.ids import result_id
from opus_pipelines.generation.results.rows import broken_row
from opus_pipelines.generation.results.staleness import failed_intakes, is_current, next_attempt
from opus_pipelines.intakes.intake import ContractFolder, discover
from opus_pipelines.lake.layout import Lake

NOW = datetime(2026, 1, 31, tzinfo=UTC)
SETTINGS = Settings()


@pytest.fixture
def lake(tmp_path: Path) -> Any:
    return Lake(tmp_path / "lake")


@pytest.fixture
def contract(tmp_path: Path) -> Any:
    (tmp_path / "intakes" / "Acme" / "Retail" / "i-7" / "input").mkdir(parents=True)
    (tmp_path / "intakes" / "Acme" / "Retail" / "i-7" / "input" / "order.txt").write_text("Ten chairs.")
    return discover(tmp_path / "intakes")[0]


def publish(lake: Lake, contract: ContractFolder, attempt: int = 1, failed: bool = False, snapshot: str = "w1") -> Any:
    name = result_id(contract, snapshot, SETTINGS, attempt=attempt)
    result = ContractResult(contract.client, contract.contract, name, snapshot, "m", {}, attempt=attempt)
    row = broken_row("k1", "i-7", "it took more than 60 s") if failed else {"intake_id": "k1", "status": "generated"}
    rows = {INTAKES: [row], RUNS: [{"run_id": "x", "generated_at": NOW}]}
    result.tables = {dataset.name: result_table(result, dataset, found) for dataset, found in rows.items()}
    publish_contract(lake, result, NOW)
    return name


def test_files_are_hashed_once_however_often_a_contract_is_asked_for(lake: Lake, contract: ContractFolder) -> None:
    publish(lake, contract)
    (contract.folder / "i-7" / "input" / "order.txt").write_text("Eleven chairs.")
    assert (is_current(lake, contract, "w1", SETTINGS), next_attempt(lake, contract, "w1", SETTINGS)) == (True, 1)
    assert not is_current(lake, replace(contract), "w1", SETTINGS)


def test_a_second_attempt_has_an_id_of_its_own_and_the_first_has_the_plain_one(contract: ContractFolder) -> None:
    first, second, third = (result_id(contract, "w1", SETTINGS, attempt=n) for n in (1, 2, 3))
    assert len({first, second, third}) == 3
    assert first == result_id(contract, "w1", SETTINGS)


def test_failed_intakes_lead_to_another_attempt_which_is_current_then(lake: Lake, contract: ContractFolder) -> None:
    assert (is_current(lake, contract, "w1", SETTINGS), next_attempt(lake, contract, "w1", SETTINGS)) == (False, 1)
    publish(lake, contract, failed=True)
    assert failed_intakes(lake, contract) == [("i-7", "it took more than 60 s")]
    assert (is_current(lake, contract, "w1", SETTINGS), next_attempt(lake, contract, "w1", SETTINGS)) == (True, 2)
    publish(lake, contract, attempt=2, failed=True)
    assert (is_current(lake, contract, "w1", SETTINGS), next_attempt(lake, contract, "w1", SETTINGS)) == (True, 3)
    publish(lake, contract, attempt=3)
    assert (is_current(lake, contract, "w1", SETTINGS), failed_intakes(lake, contract)) == (True, [])


def test_other_inputs_begin_with_the_first_attempt_and_are_stale(lake: Lake, contract: ContractFolder) -> None:
    publish(lake, contract, failed=True)
    publish(lake, contract, attempt=2)
    for snapshot, settings in (("w2", SETTINGS), ("w1", Settings(reward=Reward(default_gain_usd=2.0)))):
        assert not is_current(lake, contract, snapshot, settings)
        assert next_attempt(lake, contract, snapshot, settings) == 1
    (contract.folder / "i-7" / "input" / "order.txt").write_text("Eleven chairs.")
    changed = replace(contract)
    assert not is_current(lake, changed, "w1", SETTINGS)
    assert next_attempt(lake, changed, "w1", SETTINGS) == 1


def test_back_at_inputs_at_which_an_intake_had_failed_that_result_is_not_taken_up_again(
    lake: Lake, contract: ContractFolder
) -> None:
    publish(lake, contract, failed=True)
    publish(lake, contract, snapshot="w2")
    assert not is_current(lake, contract, "w1", SETTINGS)
    assert next_attempt(lake, contract, "w1", SETTINGS) == 2


def test_a_pointer_of_an_earlier_version_names_no_attempt(lake: Lake, contract: ContractFolder) -> None:
    from opus_pipelines.lake.layout import read_json, write_json

    publish(lake, contract)
    path = lake.pointer_path("Acme", "Retail")
    write_json(path, {key: value for key, value in (read_json(path) or {}).items() if key not in ("attempt", "sha256")})
    assert is_current(lake, contract, "w1", SETTINGS)


def test_a_file_that_cannot_be_read_makes_a_contract_stale_and_not_the_question_fail(
    lake: Lake, contract: ContractFolder
) -> None:
    publish(lake, contract)
    order = contract.folder / "i-7" / "input" / "order.txt"
    order.unlink()
    order.symlink_to("/proc/self/mem")  # a file that not even the superuser can read from its beginning
    with pytest.raises(OSError, match="error"):
        order.read_bytes()
    assert not is_current(lake, replace(contract), "w1", SETTINGS)
