"""A client out of the WKG: what there is of it, and what is left when it is taken out after a snapshot without it."""

from typing import Any

import pyarrow.parquet as pq
import pytest

from opus_pipelines.core.schemas import TASKS
from opus_pipelines.lake.layout import dataset_folder, read_table
from opus_pipelines.wkg.upkeep.client_traces import clients_of, find, words_of
from opus_pipelines.wkg.upkeep.erasure import remove_history
from opus_pipelines.wkg.upkeep.rollback import manifests_of

pytestmark = pytest.mark.long


def of(history: Any, letter: str, client: str, *extra: str) -> list[dict]:
    """Cases of one client, with a title of their own."""
    steps = [history.step(key) for key in ("Register", *extra, "Pay")]
    said = [{"case_id": f"{letter}-case-{n:03}", "client": client, "title": f"{letter} claim {n}"} for n in range(3)]
    return [history.case(n, steps) | more for n, more in enumerate(said)]


def test_a_client_is_found_and_taken_out(lake: Any, history: Any, rebuild: Any) -> None:
    z, b = of(history, "Z", "Zephyrine", "Only theirs"), of(history, "B", "Bolt")
    both, other = history.write(lake, "both", [*z, *b]), history.write(lake, "other", of(history, "C", "Bolt"))
    first = rebuild(lake, both, other).snapshot_id
    traces = find(lake, "Zephyrine")
    assert (len(traces.ids), traces.sources, traces.folders) == (3, {"both"}, [both.folder])
    assert (traces.snapshots, len(traces.tasks), traces.names) == ([first], 1, {"Only theirs"})
    assert clients_of(lake) == {"Zephyrine", "Bolt"}
    words = {(word.kind, word.text) for word in words_of(lake, traces)}
    assert {("case id", "Z-case-000"), ("title", "Z claim 0"), ("task", "Only theirs")} <= words
    assert not any(text.startswith(("B", "Register")) for _, text in words)

    second = rebuild(lake, history.write(lake, "both", b), other).snapshot_id
    (lake.root / "models" / "pointer" / "m1").mkdir(parents=True)
    removed = dict(remove_history(lake, traces))
    assert removed["identities of tasks"] == 2  # its name, and the key in its source
    assert removed["models that were trained on its cases"] == 1
    assert not (lake.root / "models").exists()
    assert list(manifests_of(lake)) == [second]
    assert find(lake, "Zephyrine").ids == set()
    assert not both.folder.exists()
    assert other.folder.exists()
    kept = set(pq.ParquetFile(lake.kept / "ids.parquet").read()["identity"].to_pylist())
    assert kept == {"register", "pay", "both//Register", "both//Pay", "other//Register", "other//Pay"}
    assert rebuild(
        lake, history.write(lake, "both", b), other
    ).snapshot.is_current  # what the others rest on is there as it was


def test_of_a_lake_that_held_nobody_else_an_empty_snapshot_stays(lake: Any, history: Any, rebuild: Any) -> None:
    own = history.write(lake, "own", of(history, "Z", "Zephyrine"))
    rebuild(lake, own)
    traces = find(lake, "Zephyrine", own=["own"])
    empty = rebuild(lake).snapshot_id
    remove_history(lake, traces)
    assert list(manifests_of(lake)) == [empty]
    assert read_table(TASKS, dataset_folder(lake.snapshot_folder(empty), TASKS)).num_rows == 0
    assert (
        not (lake.root / "history" / "implementations").exists()
        or list((lake.root / "history" / "implementations").glob("*/*")) == []
    )
