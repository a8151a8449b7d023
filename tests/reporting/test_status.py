"""What `opus status` says of contracts: what became of them, and what changed since."""

from typing import Any

from opus_pipelines.lake.layout import Lake
from opus_pipelines.reporting.status import Changes, contracts
from opus_pipelines.reporting.views import connect
from tests.reporting.conftest import CLIENT, CONTRACT


def told(lake: Lake, changes: Changes | None) -> list[tuple[Any, ...]]:
    found = contracts(connect(lake), changes)
    rows = [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]
    return [
        tuple(row[name] for name in ("client", "contract", "result", "stale", "changed", "intakes", "refused"))
        for row in rows
    ]


def test_nothing_changed(lake: Lake) -> None:
    assert told(lake, {(CLIENT, CONTRACT): ()}) == [(CLIENT, CONTRACT, "r2", False, None, 2, 1)]


def test_what_changed_is_named_and_contracts_without_a_result_are_there(lake: Lake) -> None:
    changes = {(CLIENT, CONTRACT): ("settings", "files"), ("Acme", "Retail"): ("no result yet",)}
    assert told(lake, changes) == [
        (CLIENT, CONTRACT, "r2", True, "settings, files", 2, 1),
        ("Acme", "Retail", None, True, "no result yet", 0, 0),
    ]


def test_a_result_whose_folder_is_gone_is_stale(lake: Lake) -> None:
    assert told(lake, {}) == [(CLIENT, CONTRACT, "r2", True, "its folder is gone", 2, 1)]


def test_without_a_folder_only_a_newer_snapshot_tells(lake: Lake) -> None:
    assert told(lake, None) == [(CLIENT, CONTRACT, "r2", False, None, 2, 1)]
    pointer = lake.root / "wkg" / "current.json"
    pointer.write_text(pointer.read_text().replace("w1", "w2"))
    assert told(lake, None) == [(CLIENT, CONTRACT, "r2", True, "snapshot", 2, 1)]


def test_the_tasks_that_a_catalogue_declares_are_counted(lake: Lake) -> None:
    found = contracts(connect(lake), {(CLIENT, CONTRACT): ()}, {(CLIENT, CONTRACT): 31})
    assert dict(zip(found.columns, found.fetchall()[0], strict=True))["declared_tasks"] == 31
