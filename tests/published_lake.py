"""A small lake made without Spark: one snapshot with its history, the results of two contracts, and kept files."""

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from opus_pipelines.core.schemas import (
    CASES,
    DECISIONS,
    EMBEDDINGS,
    IMPLEMENTATION_VECTORS,
    IMPLEMENTATIONS,
    PROCEDURE_VECTORS,
    REJECTS,
    RESULT_TABLES,
    RUNS,
    SOURCES,
    TASKS,
    Dataset,
)
from opus_pipelines.generation.results.contract import ContractResult, publish_contract, result_table
from opus_pipelines.lake.layout import PART, Lake, dataset_folder, table_of, write_json, write_table
from opus_pipelines.reporting.views import write_views_sql
from opus_pipelines.wkg.checks import SNAPSHOT_DATASETS
from opus_pipelines.wkg.upkeep.rollback import point

NOW = datetime(2026, 1, 31, tzinfo=UTC)
SNAPSHOT = "w" + "1" * 16
CONTRACTS = (("Acme", "Retail"), ("Nord/wind 50%", "007"))
VECTORS = (EMBEDDINGS, IMPLEMENTATION_VECTORS, PROCEDURE_VECTORS)


def publish(lake: Lake) -> None:
    """Publishes everything through the functions that the pipeline publishes with."""
    with lake.lock():
        write_views_sql(lake)
        _history(lake)
        publish_snapshot(lake)
        for client, contract in CONTRACTS:
            _result(lake, client, contract)


def _history(lake: Lake) -> None:
    for dataset in (IMPLEMENTATIONS, REJECTS):
        with lake.staging() as staged:
            write_table(dataset, dataset.schema.empty_table(), staged / "new")
            lake.publish(staged / "new", lake.folder(dataset, source_key="s", content="c1"))
    with lake.staging() as staged:
        (staged / "new").mkdir()
        pq.write_table(pa.table({"src": ["a"], "dst": ["b"]}), staged / "new" / "edges.parquet")
        lake.publish(staged / "new", lake.root / "aggregates" / "source_key=s" / "content=c1")
    rows = table_of(SOURCES, [{"source": "s", "path": "a.csv", "status": "loaded", "content": "c1"}])
    lake.replace(lake.folder(SOURCES) / PART, lambda path: pq.write_table(rows, path), copy=False)
    ids = pa.table({"industry": ["retail"], "identity": ["check"], "task_id": ["t1"]})
    lake.replace(lake.kept / "ids.parquet", lambda path: pq.write_table(ids, path))
    lake.replace_json(lake.kept / "lambda.json", {"cases": {"lambda": 0.25, "chosen_from": "x"}})
    decided = table_of(DECISIONS, [{"client": "Acme", "contract": "Retail", "decision": "accept"}])
    lake.publish_file(
        lambda path: write_table(DECISIONS, decided, path.parent, path.name),
        lake.folder(DECISIONS, client_key="Acme", contract_key="Retail") / "decision-000001.parquet",
        copy=True,
    )


def publish_snapshot(lake: Lake, snapshot: str = SNAPSHOT, now: datetime = NOW) -> None:
    """Publishes one snapshot, and points to it; the caller holds the lock of the lake."""
    with lake.staging() as staged:
        made = staged / "snapshot"
        for dataset in SNAPSHOT_DATASETS:
            write_table(dataset, _rows(dataset), dataset_folder(made, dataset))
        (made / "index").mkdir()
        (made / "index" / "index.faiss").write_bytes(bytes(range(256)) * 16)
        folders = {"folder": "history/implementations/source_key=s/content=c1", "source": "s", "content": "c1"}
        parts = {"aggregates": "aggregates/source_key=s/content=c1", "names": "aggregates/source_key=s/content=c1"}
        write_json(
            made / "manifest.json",
            {
                "snapshot": snapshot,
                "published_at": now.isoformat(),
                "inputs": {"sources": [folders | parts], "ledger": "x"},
                "counts": {},
                "lambda": 0.25,
                "gamma_unit": "cases",
            },
        )
        lake.publish(made, lake.snapshot_folder(snapshot))
    point(lake, snapshot, now)


def _rows(dataset: Dataset) -> pa.Table:
    if dataset is TASKS:
        return table_of(dataset, [{"task_id": "t1", "title": "Check", "implementations": 3}])
    if dataset is CASES:
        return table_of(dataset, [{"implementation_id": "i1", "source": "s", "tasks": ["t1"], "weight": 1}])
    schema = dataset.with_dimension(4) if dataset in VECTORS else dataset.schema
    return schema.empty_table()


def _result(lake: Lake, client: str, contract: str) -> None:
    result = ContractResult(client, contract, "r1", SNAPSHOT, "m", {})
    rows: dict[Dataset, list[dict[str, object]]] = {dataset: [] for dataset in RESULT_TABLES}
    rows[RUNS] = [{"run_id": "x", "generated_at": NOW, "snapshot": SNAPSHOT}]
    result.tables = {dataset.name: result_table(result, dataset, found) for dataset, found in rows.items()}
    publish_contract(lake, result, NOW)


def published_files(lake: Lake) -> list[Path]:
    """Returns every published file, without copies, and without what only speeds work up."""
    found = []
    for path in sorted(lake.root.rglob("*")):
        parts = path.relative_to(lake.root).parts
        if path.is_file() and "_copies" not in parts and parts[0] not in (".lock", "lake.json", "views.sql"):
            found.append(path)
    return found


def readable(file: Path) -> dict[str, object]:
    """Returns the object of a JSON file."""
    value: dict[str, object] = json.loads(file.read_text("utf-8"))
    return value


def as_older_version(lake: Lake) -> None:
    """Takes every list, copy, hash and statement of columns from a lake, as a version without them published it."""
    for path in [*lake.root.rglob("_files.json"), *lake.root.rglob("_copies")]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for pointer in lake.pointers():
        newer = {"files", "columns", "sha256"}
        pointer.write_text(json.dumps({k: v for k, v in readable(pointer).items() if k not in newer}))
    pointer = lake.root / "wkg" / "current.json"
    pointer.write_text(json.dumps({"snapshot": readable(pointer)["snapshot"]}))
