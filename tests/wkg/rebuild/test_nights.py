"""Nights in a row: whatever comes, changes, is pinned or goes, the published WKG is the one that a rebuild from
nothing makes.
"""

import json
import random
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from opus_pipelines.core.schemas import (
    ALIASES,
    CASES,
    EDGES,
    EMBEDDINGS,
    IMPLEMENTATION_VECTORS,
    IMPLEMENTATIONS,
    NEEDS,
    TASK_IMPLEMENTATIONS,
    TASKS,
    VARIANTS,
)
from opus_pipelines.core.settings import Paths, Settings
from opus_pipelines.history.ingestion.ingest import read_history
from opus_pipelines.lake.layout import Lake, dataset_folder, read_table
from tests.rebuilding import Rebuilt, build_snapshot, no_spark

pytestmark = pytest.mark.long
STRICT = (TASKS, TASK_IMPLEMENTATIONS, EDGES, NEEDS, ALIASES, VARIANTS, CASES)
VECTORS = (EMBEDDINGS, IMPLEMENTATION_VECTORS)
NAMES = ("Register claim", "Check cover", "Verify coverage", "Pay claim", "Close file")


class LetterEncoder:
    """Unit vectors from letter pairs: names that look alike are alike."""

    name, max_tokens, dimension = "letters", 256, 64

    def encode(self, texts: list[str], progress: Any = None) -> np.ndarray:
        rows = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for a, b in zip(text.casefold(), text.casefold()[1:], strict=False):
                row[(ord(a) * 31 + ord(b)) % self.dimension] += 1
            row[0] += 1e-3
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class World:
    """A history folder that changes from night to night, and the lake that follows it."""

    def __init__(self, folder: Path, seed: int, start: Any) -> None:
        self.history, self.lake, self.now = folder / "history", Lake(folder / "lake"), start
        self.history.mkdir(parents=True)
        self.random = random.Random(seed)
        self.settings = Settings(paths=Paths(lake=self.lake.root, history=self.history))
        self.nights = 0

    def night(self, lake: Lake | None = None) -> Rebuilt:
        lake = lake or self.lake
        self.now += timedelta(days=1)
        state = read_history(lake, self.history, self.now)
        return build_snapshot(no_spark, lake, self.settings, state, LetterEncoder, self.now)

    def sources(self) -> list[Path]:
        return sorted(f for f in self.history.iterdir() if f.is_dir())

    def add(self) -> None:
        """A source of its own way of naming."""
        self.nights += 1
        style = self.random.choice([str, str.upper, lambda name: name.lower().replace(" ", "_")])
        folder = self.history / f"source{self.nights}"
        folder.mkdir()
        industry = self.random.choice(["claims", "claims", "orders"])
        (folder / "source.toml").write_text(f'industry = "{industry}"\n[success]\ncolumn = "ended"\nequals = "well"\n')
        self.write(folder / "cases.jsonl", style)

    def write(self, file: Path, style: Callable[[str], str] = str) -> None:
        cases, draw = [], self.random
        for number in range(draw.randint(6, 12)):
            steps = draw.sample(NAMES, draw.randint(2, 4))
            figures = [
                {
                    "duration_ms": draw.uniform(0, 1e6),
                    "cost": draw.uniform(0, 9),
                    "actor_kind": draw.choice(["human", "code"]),
                }
                for _ in steps
            ]
            tasks = [{"task_key": style(step)} | figure for step, figure in zip(steps, figures, strict=True)]
            ended = draw.choice(["well", "well", "ill"])
            cases.append({"case_id": f"{file.stem}{number}", "title": "claim", "ended": ended, "tasks": tasks})
        file.write_text("".join(json.dumps(case) + "\n" for case in cases))

    def change(self) -> None:
        """One source of them gets other cases, or a second file."""
        folder = self.random.choice(self.sources())
        self.write(folder / self.random.choice(["cases.jsonl", "more.jsonl"]))

    def remove(self) -> None:
        """One source goes, if another is left."""
        if len(self.sources()) > 1:
            shutil.rmtree(self.random.choice(self.sources()))

    def pin(self) -> None:
        """A person says what two tasks are."""
        one, two = self.random.sample(self.sources(), 2) if len(self.sources()) > 1 else self.sources() * 2
        kind = self.random.choice(["same", "apart"])
        keys = [f"{folder.name}/{_first_key(folder)}" for folder in (one, two)]
        text = f"[[{kind}]]\ntasks = {json.dumps(keys)}\n" if keys[0] != keys[1] else ""
        (self.history.parent / "pins.toml").write_text(text)


def _first_key(folder: Path) -> str:
    key: str = json.loads((folder / "cases.jsonl").read_text().splitlines()[0])["tasks"][0]["task_key"]
    return key


def tables(lake: Lake) -> dict[str, pa.Table]:
    folder = lake.snapshot_folder(lake.current_snapshot() or "")
    return {dataset.name: read_table(dataset, dataset_folder(folder, dataset)) for dataset in (*STRICT, *VECTORS)}


def assert_same(one: Lake, two: Lake) -> None:
    assert one.current_snapshot() == two.current_snapshot()
    first, second = tables(one), tables(two)
    assert all(first[dataset.name].num_rows for dataset in STRICT)
    for dataset in STRICT:
        assert first[dataset.name] == second[dataset.name], dataset.name
    for dataset in VECTORS:
        a, b = first[dataset.name], second[dataset.name]
        key = dataset.key[0]
        assert a[key] == b[key]
        flat = [np.array(t["vector"].combine_chunks().flatten()) for t in (a, b)]
        assert np.allclose(*flat, atol=1e-6)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(1, 6))])
def test_any_sequence_of_nights_ends_where_a_rebuild_from_nothing_ends(tmp_path: Path, history: Any, seed: int) -> None:
    world = World(tmp_path / "world", seed, history.now)
    world.add()
    world.add()
    world.night()
    for number in range(4):
        for _ in range(world.random.randint(1, 2)):
            world.random.choice([world.add, world.change, world.remove, world.pin])()
        world.night()
        fresh = Lake(tmp_path / f"fresh{number}")
        shutil.copytree(world.lake.kept, fresh.kept)
        world.night(fresh)
        assert_same(world.lake, fresh)
        sources = {f.name for f in world.sources()}
        assert set(tables(world.lake)[ALIASES.name]["source"].to_pylist()) == sources
        assert set(tables(world.lake)[CASES.name]["source"].to_pylist()) == sources


def test_one_changed_source_of_many_is_the_only_one_read_and_mined(tmp_path: Path, history: Any) -> None:
    world = World(tmp_path, 7, history.now)
    for _ in range(8):
        world.add()
    assert len(world.night().mined) == 8
    untouched = {f.name: _files(world, f.name) for f in world.sources() if f.name != "source3"}
    world.write(world.history / "source3" / "cases.jsonl")
    lines: list[str] = []
    world.now += timedelta(days=1)
    state = read_history(world.lake, world.history, world.now, progress=lines.append)
    assert {row["source"] for row in state.files if row["last_read"] == world.now} == {"source3"}
    assert all(line.startswith("source3/") for line in lines)
    build = build_snapshot(no_spark, world.lake, world.settings, state, LetterEncoder, world.now)
    assert set(build.mined) <= {"source3", *_sources_whose_aliases_changed(world, build)}
    assert "source3" in build.mined
    assert {name: _files(world, name) for name in untouched} == untouched


def _files(world: World, source: str) -> dict[str, int]:
    """What the lake holds of a source's implementations, with the times of the files."""
    folder = world.lake.root / IMPLEMENTATIONS.name / f"source_key={source}"
    return {str(f.relative_to(folder)): f.stat().st_mtime_ns for f in folder.rglob("*.parquet")}


def _sources_whose_aliases_changed(world: World, build: Rebuilt) -> set[str]:
    """Sources of which some key means another task than in the snapshot before."""
    folders = sorted((world.lake.root / "wkg").glob("w*"), key=lambda f: f.stat().st_mtime)
    before = next(f for f in reversed(folders) if f.name != build.snapshot_id)
    old, new = (
        {
            (r["source"], r["industry"], r["task_key"]): r["task_id"]
            for r in read_table(ALIASES, dataset_folder(f, ALIASES)).to_pylist()
        }
        for f in (before, world.lake.snapshot_folder(build.snapshot_id))
    )
    return {key[0] for key in new if new[key] != old.get(key)}
