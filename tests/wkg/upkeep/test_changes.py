"""wkg/changes: what differs between two nights, and because of which cases."""

import shutil
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from opus_pipelines.core.schemas import WKG_CHANGES
from opus_pipelines.core.settings import Retention
from opus_pipelines.lake.layout import Lake, read_json, read_table
from opus_pipelines.reporting.views import connect, run, write_views_sql
from opus_pipelines.wkg.upkeep.changes import write_changes
from opus_pipelines.wkg.upkeep.retention import prune
from opus_pipelines.wkg.upkeep.rollback import roll_back

pytestmark = pytest.mark.long


def rows(lake: Lake, snapshot: str) -> dict[tuple[str, str | None, str], dict[str, Any]]:
    """By title of src and dst and figure."""
    found = read_table(WKG_CHANGES, lake.folder(WKG_CHANGES, snapshot=snapshot)).to_pylist()
    return {(row["title"], row["dst_title"], row["figure"]): row for row in found}


@pytest.fixture(scope="module")
def two_nights(
    tmp_path_factory: pytest.TempPathFactory, history: Any, rebuild: Callable[..., Any]
) -> tuple[Lake, str, str]:
    """The second night: case 0 is paid without a check, case 9 is gone, a new case is inspected; another source stays
    as it was.
    """
    lake = Lake(tmp_path_factory.mktemp("nights"))
    other = history.write(lake, "other", [history.case(1, [history.step("Sort", True)], success=True)], industry="post")
    cases = history.claims()
    first = rebuild(lake, history.write(lake, "claims", cases), other)
    step = history.step
    changed = [
        history.case(0, [step("Register", True), step("Pay", True)], success=True, title="claim"),
        *cases[1:9],
        history.case(
            10, [step("Register", True), step("Inspect", True), step("Pay", True)], success=True, title="claim"
        ),
    ]
    second = rebuild(lake, history.write(lake, "claims", changed), other, now=history.now + timedelta(days=1))
    return lake, first.snapshot_id, second.snapshot_id


@pytest.fixture
def nights(lake: Lake, two_nights: tuple[Lake, str, str]) -> tuple[str, str]:
    """A copy of the two nights for each test, for tests roll back and prune."""
    shutil.copytree(two_nights[0].root, lake.root)
    return two_nights[1:]


def test_what_changed_from_what_to_what_because_of_which_cases(lake: Lake, nights: tuple[str, str]) -> None:
    before, after = nights
    found = rows(lake, after)
    assert {(row["snapshot"], row["before"]) for row in found.values()} == {(after, before)}
    came = found["Inspect", None, "implementations"]
    assert (came["kind"], came["change"], came["value_before"], came["value_after"]) == ("task", "added", None, 1.0)
    assert (came["because"], came["sources"], came["cases_added"], came["cases_changed"]) == ("cases", ["claims"], 1, 0)
    assert len(came["implementation_ids"]) == 1
    checks = found["Check", None, "implementations"]
    assert (checks["change"], checks["value_before"], checks["value_after"]) == ("changed", 8.0, 5.0)
    assert (checks["cases_added"], checks["cases_removed"], checks["cases_changed"]) == (0, 1, 1)
    edge = found["Check", "Check", "transitions"]
    assert (edge["kind"], edge["change"], edge["value_before"], edge["value_after"]) == ("edge", "removed", 1.0, None)
    assert (edge["cases_removed"], edge["sources"]) == (1, ["claims"])
    assert ("Sort", None, "implementations") not in found
    assert found["Check", None, "critical_in"]["value_before"] > found["Check", None, "critical_in"]["value_after"]


def test_the_first_snapshot_has_no_changes(lake: Lake, nights: tuple[str, str]) -> None:
    assert not lake.folder(WKG_CHANGES, snapshot=nights[0]).exists()


def test_after_a_rollback_the_changes_are_those_back(lake: Lake, nights: tuple[str, str], history: Any) -> None:
    before, after = nights
    write_views_sql(lake)
    forth = run(connect(lake), "changes")
    assert forth is not None
    assert ("task", "Inspect", "added") in {row[:3] for row in forth.fetchall()}
    with lake.lock():
        roll_back(lake, before, history.now + timedelta(days=2))
    assert (read_json(lake.root / "wkg" / "current.json") or {})["before"] == after
    assert rows(lake, before)["Inspect", None, "implementations"]["change"] == "removed"
    back = run(connect(lake), "changes")
    assert back is not None
    assert ("task", "Inspect", "removed") in {row[:3] for row in back.fetchall()}


def test_the_same_pair_gives_the_same_bytes_and_goes_with_its_snapshot(
    lake: Lake, nights: tuple[str, str], history: Any
) -> None:
    before, after = nights
    file = lake.folder(WKG_CHANGES, snapshot=after) / f"part-{before}.parquet"
    written = file.read_bytes()
    file.unlink()
    with lake.lock():
        write_changes(lake, before, after)
        assert file.read_bytes() == written
        roll_back(lake, before, history.now + timedelta(days=2))
        prune(lake, Retention(snapshots=1, days=0, grace_minutes=0), history.now + timedelta(days=9))
    assert lake.snapshot_folder(after).exists()  # a rollback names it
    with lake.lock():
        write_changes(lake, "w0000000000000000", before)  # a snapshot that is not there
    assert [f.name for f in lake.folder(WKG_CHANGES, snapshot=before).glob("*.parquet")] == [f"part-{after}.parquet"]
