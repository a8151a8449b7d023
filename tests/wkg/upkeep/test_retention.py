"""Retention never removes what a pointer, a kept result or a rollback names, nor what a kept snapshot was made from;
the rest goes.
"""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.core.schemas import DATASETS, IMPLEMENTATIONS, OPTIMIZED, REJECTS, RUNS, SOURCES
from opus_pipelines.core.settings import Retention
from opus_pipelines.lake.layout import Lake, table_of, write_json, write_table
from opus_pipelines.wkg.upkeep.retention import expired, expired_results, named_snapshots, prune, prune_results
from opus_pipelines.wkg.upkeep.rollback import manifests_of

NOW = datetime(2026, 6, 1, tzinfo=UTC)
CLIENT = "A/B"


def snapshot_id(number: int) -> str:
    return f"w{number:016x}"


def publish(lake: Lake, number: int, hours_ago: float, contents: list[str]) -> None:
    """A snapshot made so long ago from these contents of the source `orders`."""
    sources = []
    for content in contents:
        place = {
            "source": "orders",
            "content": content,
            "folder": f"history/implementations/source_key=orders/content={content}",
            "aggregates": f"aggregates/source_key=orders/content=a{content}",
            "names": f"aggregates/source_key=orders/names=n{content}",
        }
        for name in ("aggregates", "names", "folder"):
            old(lake.root / place[name], hours_ago)
        old(lake.root / place["folder"].replace("implementations", "rejects"), hours_ago)
        sources.append(place)
    made = {"published_at": (NOW - timedelta(hours=hours_ago)).isoformat(), "inputs": {"sources": sources}}
    write_json(lake.snapshot_folder(snapshot_id(number)) / "manifest.json", made)


def old(folder: Path, hours: float) -> Path:
    """A folder with a file in it, so many hours old."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "part-00000.parquet").touch()
    at = (NOW - timedelta(hours=hours)).timestamp()
    os.utime(folder, (at, at))
    return folder


def publish_result(lake: Lake, contract: str, name: str, snapshot: str, hours_ago: float, in_runs: bool = True) -> None:
    """A result; `in_runs` False: as a version wrote it whose runs did not name the snapshot."""
    where = {"client_key": CLIENT, "contract_key": contract, "result": name}
    rows: dict[Any, dict[str, Any]] = {
        RUNS: {"generated_at": NOW - timedelta(hours=hours_ago), "snapshot": snapshot if in_runs else None},
        OPTIMIZED: {"workflow_id": "f", "rank": 1, "snapshot": snapshot},
    }
    for dataset, row in rows.items():
        write_table(dataset, table_of(dataset, [row]), lake.folder(dataset, **where))


def point(lake: Lake, contract: str, name: str, snapshot: str, hours_ago: float) -> None:
    at = (NOW - timedelta(hours=hours_ago)).isoformat()
    write_json(
        lake.pointer_path(CLIENT, contract),
        {"client": CLIENT, "contract": contract, "result": name, "snapshot": snapshot, "published_at": at},
    )


LIMITS = st.builds(
    Retention,
    snapshots=st.integers(1, 4),
    days=st.integers(0, 3),
    results=st.integers(1, 3),
    grace_minutes=st.sampled_from([0, 60]),
)
SNAPSHOTS = st.lists(
    st.tuples(st.floats(0, 200), st.lists(st.sampled_from("abcd"), max_size=3, unique=True)), min_size=1, max_size=7
)


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(snapshots=SNAPSHOTS, limits=LIMITS, data=st.data())
def test_what_is_named_stays_and_what_is_not_goes_in_the_end(snapshots: Any, limits: Retention, data: Any) -> None:
    with TemporaryDirectory() as folder:
        lake = Lake(folder)
        for number, (hours, contents) in enumerate(snapshots):
            publish(lake, number, hours, contents)
        numbers = st.integers(0, len(snapshots) - 1)
        left = data.draw(st.lists(numbers.map(snapshot_id), max_size=2), "rolled back from")
        current = {
            "snapshot": snapshot_id(data.draw(numbers, "current")),
            "published_at": NOW.isoformat(),
            "rolled_back_from": left,
        }
        write_json(lake.root / "wkg" / "current.json", current)
        for contract in ("c1", "c2"):
            ages = data.draw(st.lists(st.floats(0, 200), max_size=4), f"results of {contract}")
            made = [(f"r{i}", snapshot_id(data.draw(numbers)), hours) for i, hours in enumerate(ages)]
            for (name, snapshot, hours), in_runs in zip(
                made, data.draw(st.lists(st.booleans(), min_size=4, max_size=4)), strict=False
            ):
                publish_result(lake, contract, name, snapshot, hours, in_runs)
            if made:
                point(lake, contract, *data.draw(st.sampled_from(made), f"current of {contract}"))
        named = named_snapshots(lake)
        recent = sorted(manifests_of(lake), key=lambda s: (manifests_of(lake)[s]["published_at"], s))[
            -limits.snapshots :
        ]
        gone = prune(lake, limits, NOW)
        for contract in ("c1", "c2"):
            prune_results(lake, CLIENT, contract, limits, NOW)
        kept = manifests_of(lake)
        assert named | set(recent) <= set(kept)
        assert not set(gone) & set(kept)
        assert all(
            (lake.root / source[key]).is_dir()
            for m in kept.values()
            for source in m["inputs"]["sources"]
            for key in ("folder", "aggregates", "names")
        )
        for pointer in lake.results():
            where = {"client_key": CLIENT, "contract_key": pointer["contract"], "result": pointer["result"]}
            assert all(list(lake.folder(d, **where).glob("*.parquet")) for d in (RUNS, OPTIMIZED))
        later = NOW + timedelta(days=365)
        for contract in ("c1", "c2"):
            prune_results(lake, CLIENT, contract, limits, later)
        prune(lake, limits, later)
        last = manifests_of(lake)
        assert set(last) == named_snapshots(lake) | set(recent)
        there = {f.relative_to(lake.root).as_posix() for f in lake.root.glob("history/implementations/*/*")}
        assert there == {source["folder"] for manifest in last.values() for source in manifest["inputs"]["sources"]}
        assert {f.parts[-2:] for f in lake.root.glob("history/rejects/*/*")} == {Path(f).parts[-2:] for f in there}
        assert all(
            len(list(lake.folder(RUNS, client_key=CLIENT, contract_key=c).glob("*"))) <= limits.results
            for c in ("c1", "c2")
        )


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path)
    publish(lake, 1, 100, ["a"])
    write_json(
        lake.root / "wkg" / "current.json",
        {"snapshot": snapshot_id(1), "published_at": (NOW - timedelta(hours=100)).isoformat()},
    )
    return lake


def test_rejects_of_a_source_without_cases_stay_while_it_is_there(lake: Lake) -> None:
    write_table(
        SOURCES, table_of(SOURCES, [{"source": "broken", "path": "x", "status": "rejected"}]), lake.folder(SOURCES)
    )
    for content, hours in (("old", 90), ("new", 80)):
        for dataset in (REJECTS, IMPLEMENTATIONS):
            old(lake.folder(dataset, source_key="broken", content=content), hours)
    prune(lake, Retention(), NOW)
    assert [f.name for f in (lake.root / "history/rejects/source_key=broken").iterdir()] == ["content=new"]
    write_table(SOURCES, table_of(SOURCES, [{"source": "broken", "path": "x", "status": "gone"}]), lake.folder(SOURCES))
    prune(lake, Retention(), NOW)
    assert not (lake.root / "history/rejects/source_key=broken").exists()
    assert (lake.root / "history/rejects/source_key=orders/content=a").is_dir()


def test_what_a_killed_run_left_young_enough_for_the_next_stays(lake: Lake) -> None:
    old(lake.root / "aggregates/source_key=orders/content=unused", 0.5)
    prune(lake, Retention(grace_minutes=60), NOW)
    assert (lake.root / "aggregates/source_key=orders/content=unused").is_dir()
    prune(lake, Retention(grace_minutes=10), NOW)
    assert not (lake.root / "aggregates/source_key=orders/content=unused").exists()


def test_a_snapshot_folder_without_a_manifest_goes(lake: Lake) -> None:
    half = old(lake.snapshot_folder(snapshot_id(9)), 90)
    prune(lake, Retention(), NOW)
    assert not half.exists()


def test_the_grace_of_readers_counts_from_when_a_snapshot_was_superseded() -> None:
    published = {"w1": NOW - timedelta(days=90), "w2": NOW - timedelta(minutes=30)}
    manifests = {name: {"published_at": at.isoformat()} for name, at in published.items()}
    keep_one = Retention(snapshots=1, days=0, grace_minutes=60)
    assert expired(manifests, keep_one, NOW, {"w2"}) == []
    assert expired(manifests, keep_one, NOW + timedelta(minutes=30), {"w2"}) == ["w1"]


def test_after_a_rollback_the_grace_counts_from_the_pointer() -> None:
    manifests = {
        name: {"published_at": (NOW - timedelta(days=days)).isoformat()}
        for name, days in (("w1", 9), ("w2", 5), ("w3", 2))
    }
    limits = Retention(snapshots=1, days=0, grace_minutes=60)
    assert expired(manifests, limits, NOW, {"w1"}, NOW.isoformat()) == ["w2"]


def test_the_grace_of_readers_counts_from_when_a_result_was_superseded() -> None:
    made = {"r1": NOW - timedelta(days=90), "r2": NOW - timedelta(minutes=30)}
    keep_one = Retention(results=1, grace_minutes=60)
    assert expired_results(made, "r2", keep_one, NOW, made["r2"]) == []
    assert expired_results(made, "r2", keep_one, NOW + timedelta(minutes=30), made["r2"]) == ["r1"]
    assert expired_results(made, "r1", keep_one, NOW, NOW - timedelta(minutes=10)) == []


def test_an_unfinished_result_goes_at_once_and_the_current_one_never(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    publish_result(lake, "c", "r1", snapshot_id(1), 900)
    point(lake, "c", "r1", snapshot_id(1), 900)
    half = lake.folder(OPTIMIZED, client_key=CLIENT, contract_key="c", result="r2")
    write_table(OPTIMIZED, table_of(OPTIMIZED, []), half)
    assert prune_results(lake, CLIENT, "c", Retention(results=1), NOW) == ["r2"]
    assert not half.exists()
    assert lake.folder(RUNS, client_key=CLIENT, contract_key="c", result="r1").is_dir()


def test_every_dataset_of_a_result_goes_with_it(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    for hours, name in ((900, "r1"), (800, "r2")):
        publish_result(lake, "c", name, snapshot_id(1), hours)
        for dataset in (d for d in DATASETS.values() if "result" in d.partitions and d not in (RUNS, OPTIMIZED)):
            write_table(
                dataset, table_of(dataset, []), lake.folder(dataset, client_key=CLIENT, contract_key="c", result=name)
            )
    point(lake, "c", "r2", snapshot_id(1), 800)
    assert prune_results(lake, CLIENT, "c", Retention(results=1), NOW) == ["r1"]
    assert not list(lake.root.rglob("result=r1"))
    assert len(list(lake.root.rglob("result=r2"))) == len([d for d in DATASETS.values() if "result" in d.partitions])
