"""A lake with one source, `claims`: forty ended cases `a b c`, and a running one that did `a b`."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from opus_pipelines.core.schemas import IMPLEMENTATIONS
from opus_pipelines.lake.layout import Lake, table_of, write_json, write_table

BEGIN = datetime(2024, 3, 4, 8, tzinfo=UTC)


def case(number: int, names: list[str], running: str = "no") -> dict[str, Any]:
    begin = BEGIN + timedelta(hours=number)
    tasks = [
        {
            "task_key": name,
            "position": n,
            "started_at": begin + timedelta(hours=n),
            "ended_at": begin + timedelta(hours=n),
        }
        | {"actor": "ann", "cost_usd": 1.0}
        for n, name in enumerate(names)
    ]
    return {
        "implementation_id": f"i{number:03d}",
        "source": "claims",
        "case_id": f"c{number:03d}",
        "kind": "executed",
        "client": "Northwind",
        "attributes": [("state", running)],
        "success": None if running == "yes" else True,
        "tasks": tasks,
    }


def claims_lake(root: Path) -> Lake:
    """Writes the lake into a new folder."""
    lake = Lake(root)
    rows = [case(n, ["a", "b", "c"]) for n in range(40)] + [case(40, ["a", "b"], "yes")]
    folder = lake.folder(IMPLEMENTATIONS, source_key="claims", content="h1")
    write_table(IMPLEMENTATIONS, table_of(IMPLEMENTATIONS, rows), folder)
    manifest = {"inputs": {"sources": [{"source": "claims", "folder": folder.relative_to(lake.root).as_posix()}]}}
    write_json(lake.root / "wkg" / "w1" / "manifest.json", manifest)
    write_json(lake.root / "wkg" / "current.json", {"snapshot": "w1"})
    return lake
