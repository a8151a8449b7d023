"""Tables beside assets in Dagster."""

from pathlib import Path

import dagster as dg

from assets.metadata import best_table, page_of, sources_table
from opus_pipelines.core.schemas import OPTIMIZED
from opus_pipelines.lake.layout import Lake, table_of, write_table
from opus_pipelines.lake.results import ResultKey


def test_a_row_for_each_source() -> None:
    files = [
        {"source": "b", "status": "loaded", "records": 7, "records_rejected": 2},
        {"source": "a", "status": "rejected", "records": None, "records_rejected": None},
        {"source": "b", "status": "gone", "records": 1, "records_rejected": 0},
        {"source": "of a forgotten client", "status": "gone", "records": 80, "records_rejected": 0},
    ]
    table = sources_table(files)
    assert table is not None
    assert [dict(record.data) for record in table.records] == [
        {"source": "a", "files": 1, "records": 0, "rejected": 0},
        {"source": "b", "files": 1, "records": 7, "rejected": 2},
    ]
    assert sources_table([]) is None


def test_the_best_workflow_of_each_goal(tmp_path: Path) -> None:
    lake, result = Lake(tmp_path), ResultKey("Acme", "Retail", "r1")
    where = {"client_key": "Acme", "contract_key": "Retail", "result": "r1"}
    assert best_table(lake, result) is None
    rows = [
        {"workflow_id": "a", "rank": 1, "feasible": True, "title": "Ship", "reward_usd": None},
        {"workflow_id": "b", "rank": 1, "feasible": True, "title": "Pay", "reward_usd": 3.5},
        {"workflow_id": "c", "rank": 2, "feasible": True, "title": "Pay", "reward_usd": 3.0},
        {"workflow_id": "d", "rank": 1, "feasible": False, "title": "Ask", "reward_usd": 9.0},
    ]
    write_table(OPTIMIZED, table_of(OPTIMIZED, rows), lake.folder(OPTIMIZED, **where))
    table = best_table(lake, result)
    assert table is not None
    assert [(record.data["title"], record.data["reward_usd"]) for record in table.records] == [
        ("Pay", 3.5),
        ("Ship", "–"),
    ]


def test_the_page_of_a_contract_is_a_link_where_pages_are_served_else_a_command() -> None:
    result = ResultKey("Bolt & Sons", "Claims", "r1")
    assert page_of(result, "").value == "opus report --client 'Bolt & Sons' --contract Claims"
    linked = page_of(result, "https://reports.example.org/opus/")
    assert isinstance(linked, dg.UrlMetadataValue)
    assert linked.value == "https://reports.example.org/opus/Bolt_20_26_20Sons__Claims.html"
