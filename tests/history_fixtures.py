"""Writes sources of history and reads them into a lake of its own."""

import gzip
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.core.schemas import IMPLEMENTATIONS, REJECTS
from opus_pipelines.history.ingestion.ingest import HistoryOptions, HistoryState, read_history
from opus_pipelines.lake.layout import Lake, read_table

NIGHT = datetime(2026, 1, 2, 2, 0, tzinfo=UTC)


class Bench:
    """A history folder and a lake; `put` writes files, `read` runs a night."""

    def __init__(self, folder: Path) -> None:
        self.history = folder / "history"
        self.history.mkdir()
        self.lake = Lake(folder / "lake")

    def put(self, path: str, content: str | bytes) -> Path:
        file = self.history / path
        file.parent.mkdir(parents=True, exist_ok=True)
        data = content.encode() if isinstance(content, str) else content
        file.write_bytes(gzip.compress(data) if path.endswith(".gz") else data)
        return file

    def read(self, **options: Any) -> HistoryState:
        """`max_quarantined_share`: 1, for most tests are about a few records of which one is bad; test_versions.py is
        about the limit.
        """
        options.setdefault("max_quarantined_share", 1.0)
        now, progress = options.pop("now", NIGHT), options.pop("progress", lambda line: None)
        return read_history(self.lake, self.history, now, HistoryOptions(**options), progress)

    def cases(self, source: str = "s") -> dict[str, dict[str, Any]]:
        """Implementations of the newest state, by case id."""
        folders = [s.folder for s in self.read().sources if s.source == source]
        return {row["case_id"]: row for row in read_table(IMPLEMENTATIONS, *folders).to_pylist()}

    def rejects(self) -> list[dict[str, Any]]:
        folders = sorted((self.lake.root / REJECTS.name).glob("*/*"))
        return read_table(REJECTS, *folders).to_pylist()

    def one(
        self, name: str, content: str | bytes, settings: str = ""
    ) -> tuple[dict[str, dict[str, Any]], list[dict[str, Any]], HistoryState]:
        """Cases, rejects and state of a source `s` with one file."""
        self.put("s/source.toml", settings)
        self.put(f"s/{name}", content)
        state = self.read()
        return self.cases(), self.rejects(), state


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def make_bench(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Bench]:
    return lambda: Bench(tmp_path_factory.mktemp("bench"))


@pytest.fixture
def keys() -> Callable[[dict[str, Any]], list[str]]:
    return lambda case: [task["task_key"] for task in case["tasks"]]
