"""From source files to figures: what a source.toml says of weight and kind, and the largest values that a reader lets
through.
"""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.core.schemas import EDGES, TASKS, Dataset
from opus_pipelines.history.ingestion.ingest import read_history
from opus_pipelines.lake.layout import Lake, dataset_folder, read_table
from opus_pipelines.wkg.checks import check_snapshot

pytestmark = pytest.mark.long


@pytest.fixture
def night(tmp_path: Path, lake: Lake, history: Any, rebuild: Any) -> Callable[..., dict[Dataset, list[dict[str, Any]]]]:
    """Writes files of history, rebuilds, and gives the rows of tasks and edges."""

    def run(files: dict[str, str], **settings: Any) -> dict[Dataset, list[dict[str, Any]]]:
        for path, text in files.items():
            file = tmp_path / "history" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        state = read_history(lake, tmp_path / "history", history.now)
        assert state.failed == []
        rebuild(lake, *state.sources, **settings)
        folder = lake.snapshot_folder(lake.current_snapshot() or "")
        assert [c for c in check_snapshot(folder) if not c.passed] == []
        return {d: read_table(d, dataset_folder(folder, d)).to_pylist() for d in (TASKS, EDGES)}

    return run


FLOW = json.dumps(
    {
        "name": "F",
        "nodes": [{"name": "A", "type": "t"}, {"name": "B", "type": "t"}],
        "connections": {"A": {"main": [[{"node": "B"}]]}},
    }
)
LOG = "case,activity,runs\n1,A,2\n1,B,2\n2,A,1\n2,B,1\n2,C,1\n"


@pytest.mark.parametrize(("unit", "counted"), [("transition", 4), ("variant", 1)])
def test_a_model_stands_for_as_many_runs_as_its_settings_say(
    night: Callable[..., Any], unit: str, counted: int
) -> None:
    rows = night({"flows/source.toml": "weight = 4", "flows/f.json": FLOW}, wkg={"gamma_unit": unit, "lambda": 0.5})
    (edge,) = rows[EDGES]
    assert (edge["transitions"], edge["implementations"], edge["variants"]) == (4, 4, 1)
    assert edge["gamma"] == pytest.approx(1 - math.exp(-0.5 * counted))
    assert {task["implementations"] for task in rows[TASKS]} == {4}


@pytest.mark.parametrize(("unit", "counted"), [("transition", 3), ("variant", 2)])
def test_a_column_tells_how_many_runs_a_case_stands_for(night: Callable[..., Any], unit: str, counted: int) -> None:
    toml = 'weight = { column = "runs" }\nkind = "model"'
    rows = night({"log/source.toml": toml, "log/l.csv": LOG}, wkg={"gamma_unit": unit, "lambda": 0.5})
    names = {task["task_id"]: task["title"] for task in rows[TASKS]}
    edges = {names[e["src"]] + names[e["dst"]]: e for e in rows[EDGES]}
    counts = {pair: (e["transitions"], e["variants"], e["implementations"]) for pair, e in edges.items()}
    assert counts == {"AB": (3, 2, 3), "BC": (1, 1, 1)}
    assert edges["AB"]["gamma"] == pytest.approx(1 - math.exp(-0.5 * counted))
    assert {names[t["task_id"]]: t["implementations"] for t in rows[TASKS]} == {"A": 3, "B": 3, "C": 1}


def test_the_largest_values_that_a_reader_takes_do_not_break_the_night(night: Callable[..., Any]) -> None:
    """A reader that let through more would lose a whole night to one cell: Spark fails where a sum leaves its type."""
    task = {"activity": "A", "start": "0001-01-01T00:00:00Z", "end": "9999-12-31T23:59:59.999999Z"}
    most = {"cost": 1e12, "duration": 1e14, "memory": 1e12, "tokens": 10**12, "model": "m", "actor_kind": "model"}
    records = [
        {"case_id": str(n), "runs": 10**9, "tasks": [task, task | most, task | {"model": "m", "tokens": 10**12}]}
        for n in range(3)
    ]
    names = {"cost": "cost", "duration_ms": "duration", "memory_gb": "memory", "threads": "memory"}
    names |= {"tokens_in": "tokens", "tokens_out": "tokens"}
    settings = (
        'weight = { column = "runs" }\n[rates]\nm = { tokens_in = 1e6, tokens_out = 1e6 }\n[task]\nmodel = "model"\n'
        + "".join(f'{name} = "{path}"\n' for name, path in names.items())
    )
    rows = night({"s/source.toml": settings, "s/log.jsonl": "".join(json.dumps(r) + "\n" for r in records)})
    assert [t["implementations"] for t in rows[TASKS]] == [9 * 10**9]
    assert rows[TASKS][0]["cost_usd_mean"] == pytest.approx(1.5e12)
    assert [e["transitions"] for e in rows[EDGES]] == [6 * 10**9]
