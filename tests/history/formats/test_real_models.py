"""Real models and exports: every file is used or rejected with its reason, and what came of it agrees with counts made
another way.
"""

import gzip
import json
import os
import re
import tarfile
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.core.schemas import IMPLEMENTATIONS
from opus_pipelines.lake.layout import read_table

DATA = Path(os.environ.get("OPUS_TEST_DATA", Path(__file__).parents[4] / "shared" / "data"))
pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not DATA.is_dir(), reason=f"no real data in {DATA}; OPUS_TEST_DATA says where it is"),
]


def read(bench: Any, archive: str) -> Any:
    source = bench.history / "s"
    source.mkdir()
    with tarfile.open(DATA / archive) as packed:
        packed.extractall(source, filter="data")
    state = bench.read()
    files = [f for f in source.rglob("*") if f.is_file()]
    assert len(state.files) == len(files)
    for row in state.files:
        assert row["records"] == row["records_used"] + row["records_not_work"] + row["records_rejected"]
        assert (row["status"] == "rejected") == bool(row["reason"])
        assert row["records"] or row["reason"]
    made = {row["case_id"]: row for row in read_table(IMPLEMENTATIONS, state.sources[0].folder).to_pylist()}
    assert sum(row["implementations"] for row in state.files) == len(made)
    assert sum(row["records_rejected"] for row in state.files) == len(bench.rejects())
    return state, files, made


def total(state: Any, column: str) -> int:
    return sum(row[column] for row in state.files)


def test_every_bpmn_model_loads(bench: Any) -> None:
    state, files, made = read(bench, "bpmn/models.tar.gz")
    assert state.failed == []
    texts = [f.read_text() for f in files]
    assert total(state, "records") == sum(len(re.findall(r"<(?:\w+:)?process ", t)) for t in texts) > 0
    assert total(state, "task_implementations") == sum(
        len(re.findall(r"<(?:\w+:)?(?:task|\w+Task|callActivity) ", t)) for t in texts
    )
    assert {r["reason_code"] for r in bench.rejects()} <= {"no_tasks"}
    assert {case["kind"] for case in made.values()} == {"model"}
    assert all(p < t["position"] for case in made.values() for t in case["tasks"] for p in t["predecessors"])
    found = sum(len(case_pairs(case)) for case in made.values())
    assert (
        found
        == sum(len(pairs(p)) for t in texts for p in re.findall(r"(?s)<(?:bpmn:)?process .*?</(?:bpmn:)?process>", t))
        > 0
    )


def case_pairs(case: Any) -> set[tuple[str, str]]:
    """Element ids of a task and one that it follows or may lead back to."""
    tasks = case["tasks"]
    ids = {t["title"]: dict(t["attributes"])["id"] for t in tasks}
    found = {
        (dict(tasks[p]["attributes"])["id"], dict(t["attributes"])["id"]) for t in tasks for p in t["predecessors"]
    }
    back = ((dict(t["attributes"])["id"], dict(t["attributes"]).get("loop_back_to", "")) for t in tasks)
    return found | {(last, ids[title]) for last, titles in back for title in titles.split("; ") if title}


def pairs(process: str) -> set[tuple[str, str]]:
    """The same by searching from every task along the flows written in one process (these models have no
    sub-processes).
    """
    tasks = set(re.findall(r'<(?:bpmn:)?\w*[tT]ask\b[^>]*? id="([^"]+)"', process))
    after: dict[str, set[str]] = {}
    for flow in re.findall(r"<(?:bpmn:)?sequenceFlow [^>]*>", process):
        src, dst = (re.search(rf'{end}="([^"]+)"', flow) for end in ("sourceRef", "targetRef"))
        if src and dst:
            after.setdefault(src[1], set()).add(dst[1])
    for host, event in re.findall(
        r'<(?:bpmn:)?boundaryEvent (?=[^>]*attachedToRef="([^"]+)")[^>]*? id="([^"]+)"', process
    ):
        after.setdefault(host, set()).add(event)
    found = set()
    for task in tasks:
        waiting, seen = list(after.get(task, ())), set()
        while waiting:
            if (node := waiting.pop()) not in seen:
                seen.add(node)
                waiting += () if node in tasks else after.get(node, ())
        found |= {(task, node) for node in seen & tasks}
    return found


def test_every_n8n_export_loads_as_its_index_says(bench: Any) -> None:
    state, files, made = read(bench, "n8n/workflows.tar.gz")
    assert state.failed == []
    assert len(made) == len(files)
    with gzip.open(DATA / "n8n" / "index.jsonl.gz", "rt") as lines:
        index = {row["path"]: row for row in map(json.loads, lines)}
    assert total(state, "task_implementations") == sum(
        not n["disabled"] for row in index.values() for n in row["nodes"]
    )
    compared = 0
    for path, case in made.items():
        names = [n["name"] for n in index[path]["nodes"]]
        assert case["title"] == ((index[path]["name"] or "").strip() or None)
        if len(set(names)) < len(names) or any(n["disabled"] for n in index[path]["nodes"]):
            continue
        tasks = case["tasks"]
        ours = {(tasks[p]["title"], t["title"]) for t in tasks for p in t["predecessors"]}
        back = {
            (t["title"], to) for t in tasks for to in dict(t["attributes"]).get("loop_back_to", "").split("; ") if to
        }
        drawn = {(src, dst) for src, dst, *_ in index[path]["edges"]}
        assert ours | back == {pair for pair in drawn if set(pair) <= set(names)}, path
        compared += 1
    assert compared > 0.9 * len(made)
