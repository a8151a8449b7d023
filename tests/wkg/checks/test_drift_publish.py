"""A source that is gone: the night warns and publishes, or, where the settings say so, blocks and leaves all as it
was.
"""

from types import SimpleNamespace
from typing import Any

import pytest

from opus_pipelines.core.errors import CheckFailed
from opus_pipelines.core.settings import Checks, Settings
from opus_pipelines.lake.layout import Lake
from opus_pipelines.reporting.wkg_graph import snapshot_pictures
from opus_pipelines.wkg.rebuild.records import EmbeddedRecord
from opus_pipelines.wkg.rebuild.steps import check_embedded, check_mined, publish, require_passed
from tests.rebuilding import make, no_spark, resolved_history

pytestmark = pytest.mark.long


@pytest.fixture
def sources(lake: Lake, history: Any) -> tuple[SimpleNamespace, SimpleNamespace]:
    claims = history.write(lake, "claims", history.claims())
    steps = [history.step("Receive order"), history.step("Ship")]
    return claims, history.write(lake, "orders", [history.case(i, steps) for i in range(3)], industry="trade")


def failed(lake: Lake) -> dict[str, bool]:
    """The failed checks of the current manifest: does each block?"""
    manifest = lake.manifest(lake.current_snapshot() or "")
    return {found["name"]: found["blocking"] for found in manifest["checks"] if not found["passed"]}


def test_a_source_gone_warns_and_is_published(lake: Lake, rebuild: Any, sources: Any) -> None:
    claims, orders = sources
    first = rebuild(lake, claims, orders)
    assert failed(lake) == {}
    assert lake.manifest(first.snapshot_id)["drift"] is None
    details = {c["name"]: c["detail"] for c in lake.manifest(first.snapshot_id)["checks"]}
    assert details["drift of tasks"] == "no other snapshot to compare with"
    second = rebuild(lake, claims)
    assert lake.current_snapshot() == second.snapshot_id
    assert failed(lake) == {"drift of tasks": False, "no industry or source vanished": False}
    drift = lake.manifest(second.snapshot_id)["drift"]
    assert (drift["from"], drift["tasks_removed"], drift["industries_gone"], drift["sources_gone"]) == (
        first.snapshot_id,
        2,
        ["trade"],
        ["orders"],
    )
    assert (drift["edges_removed"], drift["moved"]) == (1, 0.0)


def test_a_source_gone_blocks_where_settings_say_so(lake: Lake, rebuild: Any, sources: Any) -> None:
    claims, orders = sources
    first = rebuild(lake, claims, orders)
    with pytest.raises(CheckFailed, match=r"vanished \(wkg/tasks\): gone: industry trade, source orders"):
        rebuild(lake, claims, checks=Checks(drift="block"))
    assert lake.current_snapshot() == first.snapshot_id
    assert rebuild(lake, claims).snapshot_id == lake.current_snapshot() != first.snapshot_id


def test_where_drift_is_off_nothing_is_compared(lake: Lake, rebuild: Any, sources: Any) -> None:
    rebuild(lake, *sources)
    second = rebuild(lake, sources[0], checks=Checks(drift="off"))
    assert (failed(lake), lake.manifest(second.snapshot_id)["drift"]) == ({}, None)


def test_going_back_to_an_earlier_snapshot_is_drift_too(lake: Lake, rebuild: Any, sources: Any) -> None:
    claims, orders = sources
    rebuild(lake, claims)
    both = rebuild(lake, claims, orders)
    with pytest.raises(CheckFailed, match="source orders"):
        rebuild(lake, claims, checks=Checks(drift="block"))
    assert lake.current_snapshot() == both.snapshot_id


def test_recall_below_the_least_blocks(lake: Lake, history: Any, sources: Any) -> None:
    night = resolved_history(lake, Settings(), history.of(sources[0]), history.encoder)
    make(night, no_spark, history.encoder)
    checks = check_embedded(night).checks
    assert [c.passed for c in checks] == [True] * len(checks)
    tasks = night.embedded(["tasks"])
    night.save(EmbeddedRecord(tasks.counts, tasks.figures | {"recall_at_10": 0.5}), "tasks")
    with pytest.raises(CheckFailed, match=r"recall at 10 .* \(wkg/embeddings\): .*0\.5000"):
        require_passed(check_embedded(night).checks)


def test_the_pictures_of_a_run_lie_beside_the_manifest(lake: Lake, rebuild: Any, history: Any, sources: Any) -> None:
    claims, orders = sources
    rebuild(lake, claims, orders)
    drawn = []
    for _ in range(2):
        night = resolved_history(lake, Settings(), history.of(claims), history.encoder)
        make(night, no_spark, history.encoder)
        drawn.append(snapshot_pictures(night, check_mined(night).drift))
    assert drawn[0] == drawn[1]
    assert sorted(drawn[0]) == ["changes.svg", "graph.svg"]
    assert "2 went" in drawn[0]["changes.svg"]
    folder = lake.snapshot_folder(publish(night, history.now))
    assert {name: (folder / name).read_text("utf-8") for name in drawn[0]} == drawn[0]
