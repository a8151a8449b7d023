from datetime import UTC, datetime

from opus_pipelines.cli.current import still_failed
from opus_pipelines.generation.contract import ContractResult, publish_contract, result_table
from opus_pipelines.generation.contract_settings import ContractSettings
from opus_pipelines.generation.discover import ContractFolder
from opus_pipelines.generation.rows import broken_row
from opus_pipelines.lake import Lake
from opus_pipelines.schemas import INTAKES


def test_an_intake_that_failed_is_named_again_when_nothing_changed(tmp_path):
    lake = Lake(tmp_path / "lake")
    result = ContractResult("A/B", "k", "r1", "w1", "m", {})
    rows = [broken_row("k1", "i-7", "unknown key gian"), {"intake_id": "k2", "status": "generated"}]
    result.tables = {INTAKES.name: result_table(result, INTAKES, rows)}
    publish_contract(lake, result, datetime(2026, 1, 1, tzinfo=UTC))
    contract = ContractFolder("A/B", "k", tmp_path, ContractSettings(), ())
    assert still_failed(lake, [contract]) == [
        "still failed: A/B/k/i-7: unknown key gian", "nothing changed since; `opus generate --retry-failed` tries again",
    ]


def test_without_a_result_nothing_failed(tmp_path):
    assert still_failed(Lake(tmp_path), [ContractFolder("A", "k", tmp_path, ContractSettings(), ())]) == []
