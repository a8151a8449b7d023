"""Small histories, written as history/implementations has them, and a rebuild without the sentence encoder."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from opus_pipelines.core.ids import digest, make_id
from opus_pipelines.core.schemas import IMPLEMENTATIONS
from opus_pipelines.core.settings import Settings
from opus_pipelines.lake.layout import Lake, table_of, write_table
from tests.rebuilding import Rebuilt, build_snapshot

START = datetime(2024, 1, 1, tzinfo=UTC)
NOW = datetime(2024, 6, 1, 2, tzinfo=UTC)


class HashEncoder:
    """Unit vectors from the text's hash: stands where the meaning of a text does not matter."""

    name, max_tokens, dimension = "hash", 256, 8

    def encode(self, texts: list[str], progress: Any = None) -> np.ndarray:
        rows = [np.random.default_rng(int(digest(text)[:8], 16)).normal(size=8) for text in texts]
        return np.array([row / np.linalg.norm(row) for row in rows], np.float32).reshape(len(texts), 8)


def step(key: str, success: bool | None = None, **more: Any) -> dict[str, Any]:
    """One Task Implementation; `more` are columns."""
    return {"task_key": key, "success": success, **more}


def case(number: int, steps: Iterable[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """One implementation, a step an hour; `more` are columns."""
    start = START + timedelta(days=number)
    tasks = [
        {
            "position": i,
            "title": s["task_key"],
            "started_at": start + timedelta(hours=i),
            "ended_at": start + timedelta(hours=i),
            **s,
        }
        for i, s in enumerate(steps)
    ]
    return {"case_id": str(number), "kind": "executed", "weight": 1, "tasks": tasks, **more}


def write_source(
    lake: Lake, source: str, cases: list[dict[str, Any]], industry: str | None = "claims", merge: bool = True
) -> SimpleNamespace:
    """The source's implementations in the lake, as history.ingest leaves and reports them."""
    content = digest(cases, industry, merge)
    rows = [
        {"source": source, "industry": industry, **c, "implementation_id": make_id("i", source, c["case_id"])}
        for c in cases
    ]
    rows = [row | {"content_hash": digest(row)} for row in rows]
    folder = lake.folder(IMPLEMENTATIONS, source_key=source, content=content)
    write_table(IMPLEMENTATIONS, table_of(IMPLEMENTATIONS, rows), folder)
    return SimpleNamespace(
        source=source,
        folder=folder,
        content=content,
        industry=industry,
        merge=merge,
        status="loaded",
        implementations=len(rows),
        stated={},
        by_activities=False,
        open_cases=(),
    )


def history_of(*sources: SimpleNamespace) -> SimpleNamespace:
    return SimpleNamespace(sources=list(sources), files=[], changed=True, failed=[])


def claims(**more: Any) -> list[dict[str, Any]]:
    """Ten claims: six checked, one checked twice for the first check failed, three paid unchecked, which failed."""
    register = step("Register", True)
    figures = {"duration_ms": 1_000.0, "cost_usd": 0.1, "cost_basis": "rate", "instructions": ["compare the sum"]}
    small = step("Check", True, actor_kind="model", model="m-small", **figures)
    person = small | {"actor_kind": "human", "model": None, "duration_ms": 2_000.0, "cost_usd": 0.4}
    again = {"case_id": "9", "success": True}
    cases = [case(i, [register, small if i < 4 else person, step("Pay", True)], success=True) for i in range(6)]
    cases += [case(i, [register, step("Pay", False)], success=False) for i in range(6, 9)]
    cases += [case(9, [register, person | {"success": False}, person, step("Pay", True)]) | again]
    return [c | {"title": "claim"} | more for c in cases]


@pytest.fixture(scope="session")
def history() -> SimpleNamespace:
    """The functions above."""
    return SimpleNamespace(
        step=step, case=case, claims=claims, write=write_source, of=history_of, now=NOW, encoder=HashEncoder
    )


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


@pytest.fixture(scope="session")
def rebuild(request: pytest.FixtureRequest) -> Callable[..., Rebuilt]:
    """rebuild(lake, *sources, **settings): the four steps, without Dagster. Spark starts only where settings ask."""

    def run(lake: Lake, *sources: Any, now: datetime = NOW, reset_lambda: bool = False, **settings: Any) -> Rebuilt:
        state: Any = history_of(*sources)
        session = lambda: request.getfixturevalue("spark")
        return build_snapshot(session, lake, Settings(**settings), state, HashEncoder, now, reset_lambda)

    return run
